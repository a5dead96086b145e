/** What a deployment has against what a file wants of it: the changes, each by itself, and how each is made. */
import { ApiError, invalid, listFieldErrors } from '../../../api/errors.js';
import { withoutPassword, withoutSecrets } from '../../../api/quote.js';
import type { LocalEngine } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { onlyLocal, UsageError } from '../../frame/errors.js';
import { explained } from '../../verbs/refusals.js';
import type { Change } from './columns.js';
import { type Declaration, type Declared, type Kind, kinds, type Value } from './declaration.js';
import { type Existing, elsewhere, type Resource, resources, type Values } from './resources.js';

/** A change, and the call that makes it. */
export interface Step {
	change: Change;
	/** Those that go with a list. */
	subscribers?: number | undefined;
	make(): Promise<unknown>;
	/** Once all steps are made: leaves one of two that were made of one name at the same time. True: it was ours that went. */
	settle?(): Promise<boolean>;
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
	let read: Promise<Existing[]> | undefined;
	// Read once, behind all that was made.
	const afterwards = () => {
		read ??= resource.all();
		return read;
	};
	for (const one of declared) {
		const { name, values, where } = one;
		const [same, other] = counterparts(one, there);
		if (other !== undefined && kind !== 'webhooks')
			throw new UsageError(`${where}: there are several ${kind} called "${name}": rename one of them`);
		if (same === undefined) {
			if (kind === 'webhooks' && values['login'] !== undefined && values['password'] === undefined)
				throw new UsageError(`${where}: a login wants a password: give password or password_file`);
			let made: unknown;
			const create = step(
				{ action: 'create', kind, name, changes: between({}, values) },
				values,
				async () => {
					made = await createOrPatch(resource, one);
				},
			);
			const settle = async () => giveWay(resource, one, { made, there: await afterwards() });
			steps.push(resource.isUnused === undefined ? create : { ...create, settle });
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

/**
 * Another call may have made one of the same name since the plan: the first of them stays, as declared. The second of
 * two sees both.
 */
async function giveWay(
	resource: Resource,
	one: Declared,
	{ made, there }: { made: unknown; there: readonly Existing[] },
): Promise<boolean> {
	if (made === elsewhere) return true;
	const same = there.filter(({ name }) => name === one.name).sort((a, b) => (a.id ?? 0) - (b.id ?? 0));
	const [first] = same;
	const own = same.find(({ id }) => id === made);
	if (first === undefined || own?.id === undefined || own === first) return false;
	if ((await resource.isUnused?.(own.id)) !== true) return false;
	await own.delete();
	const found = differing(first, one.values);
	if (found !== null) await first.patch(found.patch);
	return true;
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
			subscribers: one.subscribers,
			make: () => one.delete(),
		}));
}

function step(change: Change, values: Values, make: (values: Values) => Promise<unknown>): Step {
	return { change: shown(change), make: () => explained(make(values), { input: values }) };
}

/** A webhook is called by its URL, which may hold secrets. */
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
	const steps: Step[] = [];
	for (const { name, values: given, where } of declared) {
		const { value = null } = given;
		if (!Object.hasOwn(names, name))
			throw new UsageError(`${where}: there is no setting "${name}"`, {
				hint: `settings: ${Object.keys(names).join(', ')}`,
			});
		const old = values[name] ?? null;
		const text = value === null ? null : await local.settings.normalOf(name, String(value));
		if (old === text) continue;
		await assertTaken(local, name, text);
		const isSecret = secretNames.test(name);
		const to = isSecret && text !== null ? hidden : text;
		const change: Change = {
			action: value === null ? 'delete' : old === null ? 'create' : 'update',
			kind: 'settings',
			name,
			changes: { value: { from: isSecret && old !== null ? hidden : (masked[name] ?? null), to } },
		};
		steps.push(step(change, { [name]: text }, () => local.settings.set({ [name]: text })));
	}
	return steps;
}

/** Refused as when it is set, before anything is changed. */
async function assertTaken({ settings }: LocalEngine, name: string, value: string | null): Promise<void> {
	const message = value === null ? null : await settings.whyNot(name, value);
	if (message === null) return;
	await explained(Promise.reject(invalid({ [name]: [{ code: 'invalid', message }] })), {
		input: { [name]: value },
	});
}

/** The password of the mail server, and its URL, which may hold one. */
const secretNames = /^smtp_(?:password|url)$/;
