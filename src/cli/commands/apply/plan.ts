/** What a deployment has against what a file wants of it: the changes, each by itself, and how each is made. */
import type { Api } from '../../../api/api.js';
import { need } from '../../../api/capabilities.js';
import { ApiError, listFieldErrors } from '../../../api/errors.js';
import { withoutPassword } from '../../../api/quote.js';
import type { Uuid, WebhookType } from '../../../api/records.js';
import type { LocalEngine } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { onlyLocal, UsageError } from '../../frame/errors.js';
import { keepAll, walk } from '../../verbs/listing.js';
import { explained } from '../../verbs/refusals.js';
import type { Change } from './columns.js';
import { type Declaration, type Declared, type Kind, kinds, type Value } from './declaration.js';

type Values = Readonly<Record<string, Value>>;

/** A change, and the call that makes it. */
export interface Step {
	change: Change;
	make(): Promise<unknown>;
}

/** A record that is there; `values` by the keys that a file may have, null where the name is all of it. */
interface Existing {
	name: string;
	values: Values | null;
	delete(): Promise<unknown>;
	patch(values: Values): Promise<unknown>;
}

/** One kind of resource of a deployment. */
interface Resource {
	all(): Promise<Existing[]>;
	create(values: Values): Promise<unknown>;
}

/** Values that are never printed. */
const hidden = '********';

/**
 * All changes, deletions last, made in this order. Reads only. Throws `MissingExtension` and `UsageError` for kinds that
 * the deployment does not have.
 */
export async function planSteps(
	cx: CommandContext,
	declaration: Declaration,
	{ prune }: { prune: boolean },
): Promise<Step[]> {
	const { api, local } = await cx.connection();
	const steps: Step[] = [];
	const deletions: Step[] = [];
	for (const kind of kinds) {
		const declared = declaration[kind];
		if (declared === undefined) continue;
		if (kind === 'settings') {
			if (local === null) throw onlyLocal('settings in the file');
			steps.push(...(await settingSteps(local, declared)));
			continue;
		}
		const resource = await resources[kind](api, cx.signal, declared);
		const there = await resource.all();
		const found = compare(kind, resource, { declared, there });
		steps.push(...found);
		if (prune) deletions.unshift(...surplus(kind, declared, there));
	}
	return [...steps, ...deletions];
}

function compare(
	kind: Kind,
	resource: Resource,
	{ declared, there }: { declared: readonly Declared[]; there: readonly Existing[] },
): Step[] {
	const steps: Step[] = [];
	for (const one of declared) {
		const { name, values, where } = one;
		const [same, other] = counterparts(one, there);
		if (other !== undefined && kind !== 'webhooks')
			throw new UsageError(`${where}: there are several ${kind} called "${name}": rename one of them`);
		if (same === undefined) {
			if (kind === 'webhooks' && values['login'] !== undefined && values['password'] === undefined)
				throw new UsageError(`${where}: a login wants a password: give password or password_file`);
			steps.push(
				step({ action: 'create', kind, name, changes: between({}, values) }, values, () =>
					createOrPatch(resource, one),
				),
			);
			continue;
		}
		const found = differing(same, values);
		if (found === null) continue;
		const { changes, patch } = found;
		steps.push(step({ action: 'update', kind, name, changes }, patch, same.patch));
	}
	return steps;
}

/** null: nothing differs. */
function differing(same: Existing, values: Values): { changes: Change['changes']; patch: Values } | null {
	if (same.values === null) return null;
	const changes = between(same.values, values);
	const patch = Object.fromEntries(Object.entries(values).filter(([key]) => key in changes));
	return Object.keys(patch).length > 0 ? { changes, patch } : null;
}

/** Another call may have created it since the plan was made: then it is updated to what is declared. */
async function createOrPatch(resource: Resource, one: Declared): Promise<unknown> {
	try {
		return await resource.create(one.values);
	} catch (error) {
		if (!isTaken(error)) throw error;
		const [same] = counterparts(one, await resource.all());
		if (same === undefined) throw error;
		const found = differing(same, one.values);
		return found === null ? undefined : await same.patch(found.patch);
	}
}

function isTaken(error: unknown): boolean {
	return (
		error instanceof ApiError && listFieldErrors(error.fields ?? {}).some(({ code }) => code === 'unique')
	);
}

function counterparts({ name, was }: Declared, there: readonly Existing[]): readonly Existing[] {
	const same = there.filter((one) => one.name === name);
	return same.length > 0 ? same : there.filter((one) => one.name === was);
}

function surplus(kind: Kind, declared: readonly Declared[], there: readonly Existing[]): Step[] {
	const wanted = new Set(declared.flatMap((one) => counterparts(one, there)));
	return there
		.filter((one) => !wanted.has(one))
		.map((one) => ({
			change: shown({ action: 'delete', kind, name: one.name, changes: {} }),
			make: () => one.delete(),
		}));
}

function step(change: Change, values: Values, make: (values: Values) => Promise<unknown>): Step {
	return { change: shown(change), make: () => explained(make(values), { input: values }) };
}

/** A webhook is called by its URL, which may hold a password. */
function shown({ name, changes, ...change }: Change): Change {
	const text = (value: Value) => (typeof value === 'string' ? withoutPassword(value) : value);
	const pairs = Object.entries(changes).map(([key, { from, to }]) => [
		key,
		{ from: text(from), to: text(to) },
	]);
	return { ...change, name: withoutPassword(name), changes: Object.fromEntries(pairs) };
}

function between(from: Values, to: Values): Change['changes'] {
	return Object.fromEntries(
		Object.entries(to)
			.filter(([key, value]) => (from[key] ?? null) !== value)
			.map(([key, value]) => {
				const isSecret = key === 'password';
				const old = from[key] ?? null;
				return [key, { from: isSecret && old !== null ? hidden : old, to: isSecret ? hidden : value }];
			}),
	);
}

async function settingSteps(local: LocalEngine, declared: readonly Declared[]): Promise<Step[]> {
	const { names } = local.settings;
	const [values, masked] = [await local.settings.get({ reveal: true }), await local.settings.get()];
	return declared.flatMap(({ name, values: { value = null }, where }) => {
		if (!Object.hasOwn(names, name))
			throw new UsageError(`${where}: there is no setting "${name}"`, {
				hint: `settings: ${Object.keys(names).join(', ')}`,
			});
		const old = values[name] ?? null;
		if (old === value) return [];
		const isSecret = secretNames.test(name);
		const to = isSecret && value !== null ? hidden : value;
		const change: Change = {
			action: value === null ? 'delete' : old === null ? 'create' : 'update',
			kind: 'settings',
			name,
			changes: { value: { from: isSecret && old !== null ? hidden : (masked[name] ?? null), to } },
		};
		const text = value === null ? null : String(value);
		return [step(change, { [name]: text }, () => local.settings.set({ [name]: text }))];
	});
}

/** The password of the mail server, and its URL, which may hold one. */
const secretNames = /^smtp_(?:password|url)$/;

const resources: Readonly<
	Record<
		Exclude<Kind, 'settings'>,
		(api: Api, signal: AbortSignal, declared: readonly Declared[]) => Promise<Resource>
	>
> = {
	senders: async (api, signal) => {
		const senders = await need(api, 'senders', 'senders in the file');
		return {
			all: () =>
				collect(walk(senders, {}, { signal }), ({ id, email }) => ({
					name: email.toLowerCase(),
					// One that differs in case alone is the same.
					values: null,
					delete: () => senders.delete(id, { signal }),
					patch: async () => undefined,
				})),
			create: ({ email }) => senders.create({ email: String(email) }, { signal }),
		};
	},
	fields: async ({ fields }, signal) => ({
		all: () =>
			collect(walk(fields, {}, { signal }), ({ id, variable, name }) => ({
				name: variable,
				values: { variable, name },
				delete: () => fields.delete(id, { signal }),
				patch: (values) => fields.patch(id, texts(values), { signal }),
			})),
		create: ({ variable, name }) =>
			fields.create({ variable: String(variable), name: String(name) }, { signal }),
	}),
	lists: async (api, signal, declared) => {
		const { lists } = api;
		// A request a list: only for those whose public name is declared.
		const named = new Set(declared.filter(({ values }) => 'public_name' in values).map(({ name }) => name));
		const details = named.size === 0 ? null : await need(api, 'lists', 'public_name in the file');
		const put = async (id: number, public_name: Value | undefined) =>
			public_name === undefined
				? undefined
				: details?.patch(id, { public_name: textOrNull(public_name) }, { signal });
		return {
			all: async () => {
				const all: Existing[] = [];
				for (const { id, name, email_reason } of await keepAll(walk(lists, {}, { signal }))) {
					const more = named.has(name) ? await details?.get(id, { signal }) : undefined;
					all.push({
						name,
						values: { name, email_reason, public_name: more?.public_name ?? null },
						delete: () => lists.delete(id, { signal }),
						patch: async ({ public_name, ...values }) => {
							if (Object.keys(values).length > 0) await lists.patch(id, texts(values), { signal });
							return put(id, public_name);
						},
					});
				}
				return all;
			},
			create: async ({ name, email_reason, public_name }) => {
				const input = { name: String(name), email_reason: String(email_reason) };
				const { id } = await lists.create(input, { signal });
				return put(id, public_name ?? undefined);
			},
		};
	},
	templates: async (api, signal) => {
		const templates = await need(api, 'templates', 'templates in the file');
		return {
			all: () =>
				collect(walk(templates, {}, { signal }), ({ id, name, text_body, html_body }) => ({
					name,
					values: { name, text_body, html_body },
					delete: () => templates.delete(id as Uuid, { signal }),
					patch: (values) => templates.patch(id, texts(values), { signal }),
				})),
			create: (values) => templates.create({ name: '', ...texts(values) }, { signal }),
		};
	},
	webhooks: async ({ webhooks }, signal) => ({
		all: () =>
			collect(walk(webhooks, {}, { signal }), ({ id, url, type, is_auth_enabled, login, password }) => ({
				name: `${type} ${url}`,
				values: { url, type, is_auth_enabled, login, password },
				delete: () => webhooks.delete(id, { signal }),
				patch: (values) => webhooks.patch(id, hook(values), { signal }),
			})),
		create: (values) =>
			webhooks.create(
				{
					url: '',
					type: 'OPENED',
					...(values['login'] !== undefined && { is_auth_enabled: true }),
					...hook(values),
				},
				{ signal },
			),
	}),
};

async function collect<T extends object>(
	records: AsyncIterable<T>,
	of: (record: T) => Existing,
): Promise<Existing[]> {
	return (await keepAll(records)).map(of);
}

function textOrNull(value: Value): string | null {
	return value === null ? null : String(value);
}

/** Values of texts alone, as the shapes of the file promise. */
function texts(values: Values): Record<string, string> {
	return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, String(value)]));
}

function hook({ is_auth_enabled, type, ...rest }: Values) {
	return {
		...texts(rest),
		...(typeof type === 'string' && { type: type as WebhookType }),
		...(typeof is_auth_enabled === 'boolean' && { is_auth_enabled }),
	};
}
