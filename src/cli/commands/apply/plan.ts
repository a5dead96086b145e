import type { Api } from '../../../api/api.js';
import { need } from '../../../api/capabilities.js';
import { ApiError, invalid, listFieldErrors } from '../../../api/errors.js';
import { withoutPassword, withoutSecrets } from '../../../api/quote.js';
import type { Uuid, WebhookType } from '../../../api/records.js';
import { confirmChange } from '../../config/profiles.js';
import type { LocalEngine } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { onlyLocal, UsageError } from '../../frame/errors.js';
import { counted } from '../../render/units.js';
import { collect, walk } from '../../verbs/listing.js';
import { explained } from '../../verbs/refusals.js';
import { whatGoes } from '../../verbs/retention.js';

export const kinds = ['settings', 'senders', 'fields', 'lists', 'templates', 'webhooks'] as const;
export type Kind = (typeof kinds)[number];

export type Value = string | boolean | null;

/** A resource that the file declares. `values` has the API's keys; `apply` does not change absent keys. */
export interface Declared {
	name: string;
	/** A former name: if no resource has the new name, rename the one with this name. */
	was?: string;
	values: Readonly<Record<string, Value>>;
	where: string;
}

/** Kinds that are not in the file stay as they are. */
export type Declaration = Partial<Record<Kind, readonly Declared[]>>;

export interface Change {
	action: 'create' | 'update' | 'delete';
	kind: Kind;
	name: string;
	changes: Readonly<Record<string, { from: Value; to: Value }>>;
}

export interface Step {
	change: Change;
	subscribers?: number | undefined;
	make(): Promise<unknown>;
}

const hidden = '********';

/**
 * Returns all changes in the order in which `carryOut` makes them, deletions last. Changes nothing. Throws
 * `MissingExtension` and `UsageError` for kinds that the service lacks.
 */
export async function planSteps(
	cx: CommandContext,
	declaration: Declaration,
	prune: boolean,
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
		for (const one of declared) steps.push(...stepsOf(kind, resource, one, there));
		const wanted = new Set(declared.flatMap((one) => counterparts(one, there)));
		const surplus = prune ? there.filter((one) => !wanted.has(one)) : [];
		const deleted = surplus.map(({ name, subscribers, delete: make }) => {
			const change = shown({ action: 'delete', kind, name, changes: {} });
			return { change, subscribers, make };
		});
		deletions.unshift(...deleted);
	}
	return [...steps, ...deletions];
}

function stepsOf(kind: Kind, resource: Resource, one: Declared, there: readonly Existing[]): Step[] {
	const { name, values, where } = one;
	const [same, other] = counterparts(one, there);
	if (other !== undefined && kind !== 'webhooks')
		throw new UsageError(`${where}: several ${kind} are called "${name}": rename one of them`);
	if (same !== undefined) {
		const { changes, patch } = differing(same, values);
		if (Object.keys(patch).length === 0) return [];
		return [step({ action: 'update', kind, name, changes }, patch, same.patch)];
	}
	if (kind === 'webhooks' && values['login'] !== undefined && values['password'] === undefined)
		throw new UsageError(`${where}: a login needs a password: give password or password_file`);
	const change: Change = { action: 'create', kind, name, changes: between({}, values) };
	return [step(change, values, () => createOrPatch(resource, one))];
}

/** Creates a resource, or updates it if another process has created it since the plan. */
async function createOrPatch(resource: Resource, one: Declared): Promise<void> {
	try {
		await resource.create(one.values);
	} catch (error) {
		const isTaken =
			error instanceof ApiError && listFieldErrors(error.fields ?? {}).some(({ code }) => code === 'unique');
		const [same] = isTaken ? counterparts(one, await resource.all()) : [];
		if (same === undefined) throw error;
		const { patch } = differing(same, one.values);
		if (Object.keys(patch).length > 0) await same.patch(patch);
	}
}

function differing(same: Existing, values: Values): { changes: Change['changes']; patch: Values } {
	const changes = same.values === null ? {} : between(same.values, values);
	return { changes, patch: Object.fromEntries(Object.entries(values).filter(([key]) => key in changes)) };
}

function counterparts({ name, was }: Declared, there: readonly Existing[]): readonly Existing[] {
	const same = there.filter((one) => one.name === name);
	return same.length > 0 ? same : there.filter((one) => one.name === was);
}

function step(change: Change, values: Values, make: (values: Values) => Promise<unknown>): Step {
	return { change: shown(change), make: () => explained(make(values), { input: values }) };
}

/** Masks the URL of a webhook, which may contain secrets. */
function shown({ name, changes, ...change }: Change): Change {
	const mask = change.kind === 'webhooks' ? withoutSecrets : withoutPassword;
	const text = (value: Value) => (typeof value === 'string' ? mask(value) : value);
	const pairs = Object.entries(changes).map(([key, { from, to }]) => [
		key,
		{ from: text(from), to: text(to) },
	]);
	return { ...change, name: mask(name), changes: Object.fromEntries(pairs) };
}

function between(from: Values, to: Values): Change['changes'] {
	const changed = Object.entries(to).filter(([key, value]) => (from[key] ?? null) !== value);
	return Object.fromEntries(
		changed.map(([key, value]) => {
			const old = from[key] ?? null;
			const isSecret = key === 'password';
			return [key, { from: isSecret && old !== null ? hidden : old, to: isSecret ? hidden : value }];
		}),
	);
}

async function settingSteps({ settings }: LocalEngine, declared: readonly Declared[]): Promise<Step[]> {
	const [values, masked] = [await settings.get({ reveal: true }), await settings.get()];
	const steps: Step[] = [];
	for (const { name, values: given, where } of declared) {
		const { value = null } = given;
		if (!Object.hasOwn(settings.names, name))
			throw new UsageError(`${where}: unknown setting "${name}"`, {
				hint: `settings: ${Object.keys(settings.names).join(', ')}`,
			});
		const old = values[name] ?? null;
		const text = value === null ? null : await settings.normalOf(name, String(value));
		if (old === text) continue;
		const message = text === null ? null : await settings.whyNot(name, text);
		if (message !== null) {
			const refused = invalid({ [name]: [{ code: 'invalid', message }] });
			await explained(Promise.reject(refused), { input: { [name]: text } });
		}
		const mask = (one: string | null) => (secretNames.test(name) && one !== null ? hidden : one);
		const changes = { value: { from: mask(masked[name] ?? null), to: mask(text) } };
		const action = text === null ? 'delete' : old === null ? 'create' : 'update';
		const change: Change = { action, kind: 'settings', name, changes };
		steps.push(step(change, { [name]: text }, () => settings.set({ [name]: text })));
	}
	return steps;
}

/** `smtp_url` may contain a password too. */
const secretNames = /^smtp_(?:password|url)$/;

const mostNamed = 10;

/** Asks to confirm deletions. Without deletions, asks only if the profile is protected. */
export async function agree(cx: CommandContext, command: string, steps: readonly Step[]): Promise<void> {
	const isDeletion = ({ change }: Step) => change.action === 'delete' && change.kind !== 'settings';
	const deleted = steps.filter(isDeletion);
	if (deleted.length === 0) {
		if (steps.length > 0) await confirmChange(cx, command);
		return;
	}
	const names = deleted.slice(0, mostNamed).map(({ change: { kind, name }, subscribers = 0 }) => {
		const people = subscribers === 0 ? '' : ` with ${counted(subscribers, 'subscriber')}`;
		return `the ${kind.slice(0, -1)} "${name}"${people}`;
	});
	const more = deleted.length > mostNamed ? ` and ${deleted.length - mostNamed} more` : '';
	const others = sentence(steps.filter((one) => !isDeletion(one)).map(({ change }) => change));
	const what = [`delete ${names.join(', ')}${more}`, ...(others === null ? [] : [others])].join('; and ');
	const isSevere = deleted.some(({ change: { kind } }) => kind === 'lists' || kind === 'fields');
	await cx.confirm(isSevere ? { kind: 'severe', what, name: 'prune' } : { kind: 'mild', what });
}

/** After an error, earlier changes stay, and the next run makes the remaining changes. */
export async function carryOut(cx: CommandContext, steps: readonly Step[]): Promise<void> {
	for (const [made, { change, make }] of steps.entries()) {
		try {
			cx.signal.throwIfAborted();
			await make();
		} catch (error) {
			const at = `while trying to ${change.action} the ${change.kind.slice(0, -1)} "${change.name}"`;
			await cx.warn(
				`stopped after ${made} of ${counted(steps.length, 'change')}, ${at}: run the command again to go on`,
			);
			throw error;
		}
	}
}

/** Returns what a shorter retention period deletes, to complete "This will …"; null if it deletes nothing. */
export async function retentionIn(cx: CommandContext, changes: readonly Change[]): Promise<string | null> {
	const { local } = await cx.connection();
	const settings = changes.filter(({ kind }) => kind === 'settings');
	const values = settings.map(({ name, changes: { value } }): [string, string | null] => [
		name,
		value?.to == null ? null : String(value.to),
	]);
	return local === null ? null : whatGoes(local, Object.fromEntries(values));
}

/** `create 1 list and 2 fields, delete 1 list`, or in the past tense `created 1 list …`. Null without changes. */
export function sentence(changes: readonly Change[], isPast = false): string | null {
	const parts = (['create', 'update', 'delete'] as const).flatMap((action) => {
		const done = changes.filter((one) => one.action === action).map(({ kind }) => kind);
		const counts = [...new Set(done)].map((kind) =>
			counted(done.filter((one) => one === kind).length, kind.slice(0, -1)),
		);
		const last = counts.pop();
		if (last === undefined) return [];
		const first = counts.length === 0 ? '' : `${counts.join(', ')} and `;
		return [`${action}${isPast ? 'd' : ''} ${first}${last}`];
	});
	return parts.length === 0 ? null : parts.join(', ');
}

type Values = Readonly<Record<string, Value>>;

interface Existing {
	name: string;
	values: Values | null;
	subscribers?: number;
	delete(): Promise<unknown>;
	patch(values: Values): Promise<unknown>;
}

interface Resource {
	all(): Promise<Existing[]>;
	create(values: Values): Promise<unknown>;
}

type ResourceOf = (api: Api, signal: AbortSignal, declared: readonly Declared[]) => Promise<Resource>;

const resources: Readonly<Record<Exclude<Kind, 'settings'>, ResourceOf>> = {
	senders: async ({ senders }, signal) => ({
		all: () =>
			existing(walk(senders, {}, { signal }), ({ id, from_email }) => ({
				name: from_email.toLowerCase(),
				values: null,
				delete: () => senders.delete(id, { signal }),
				patch: async () => undefined,
			})),
		create: ({ email }) => senders.create({ from_email: String(email) }, { signal }),
	}),
	fields: async ({ fields }, signal) => ({
		all: () =>
			existing(walk(fields, {}, { signal }), ({ id, variable, name }) => ({
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
		// Reading a public name needs a request per list, so read it only if the file declares it.
		const named = new Set(declared.filter(({ values }) => 'public_name' in values).map(({ name }) => name));
		const details = named.size === 0 ? null : await need(api, 'lists', 'public_name in the file');
		const put = async (id: number, public_name: Value | undefined) =>
			public_name === undefined
				? undefined
				: details?.patch(id, { public_name: public_name === null ? null : String(public_name) }, { signal });
		return {
			all: async () => {
				const all: Existing[] = [];
				for (const list of await collect(walk(lists, {}, { signal }))) {
					const { id, name, email_reason } = list;
					const more = named.has(name) ? await details?.get(id, { signal }) : undefined;
					all.push({
						name,
						subscribers: list.overall_subscribers_count,
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
				const { lists: ours } = (await api.capabilities()).ext;
				// Another process may have added the list since the plan.
				const { is_new, list } = (await ours?.add(input, { signal })) ?? {
					...{ is_new: true, list: await lists.create(input, { signal }) },
				};
				if (!is_new && list.email_reason !== input.email_reason)
					await lists.patch(list.id, { email_reason: input.email_reason }, { signal });
				await put(list.id, public_name ?? undefined);
			},
		};
	},
	templates: async (api, signal) => {
		const templates = await need(api, 'templates', 'templates in the file');
		return {
			all: () =>
				existing(walk(templates, {}, { signal }), ({ id, name, text_body, html_body }) => ({
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
			existing(walk(webhooks, {}, { signal }), ({ id, url, type, is_auth_enabled, login, password }) => ({
				name: `${type} ${url}`,
				values: { url, type, is_auth_enabled, login, password },
				delete: () => webhooks.delete(id, { signal }),
				patch: (values) => webhooks.patch(id, hook(values), { signal }),
			})),
		create: async (values) => {
			const login = values['login'] !== undefined && { is_auth_enabled: true };
			const input = { url: '', type: 'OPENED' as const, ...login, ...hook(values) };
			// If another process has created the webhook since the plan, update it: a second webhook would repeat each event.
			for await (const { id, url, type } of walk(webhooks, {}, { signal }))
				if (url === input.url && type === input.type) return webhooks.patch(id, input, { signal });
			return webhooks.create(input, { signal });
		},
	}),
};

async function existing<T>(records: AsyncIterable<T>, of: (record: T) => Existing): Promise<Existing[]> {
	return (await collect(records)).map(of);
}

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
