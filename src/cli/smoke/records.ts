/** Names, finds and deletes the records that runs create. Never deletes other records. */
import { type Clock, formatDateTime } from '../../api/datetime.js';
import { isRecord } from '../../api/json.js';
import { type Answer, type Caller, Probe, withQuery } from './probe.js';

export const kinds = ['list', 'field', 'webhook'] as const;
export type Kind = (typeof kinds)[number];

/** A record that the run could not delete. `id` is null if the collection could not be searched. */
export interface Leftover {
	kind: Kind;
	id: number | null;
	name: string;
	why: string;
}

/**
 * `key` holds the run's name. `name` matches the whole name, because users may have lists such as
 * `mailctl-smoke-tests`.
 */
const places: Readonly<Record<Kind, { collection: string; key: string; name: RegExp }>> = {
	list: {
		collection: '/sub/lists/',
		key: 'name',
		name: /^mailctl-smoke-(\d{8}T\d{6}-[0-9a-f]{6})(?:-(?:patched|replaced|refused|subscribers))?$/,
	},
	field: {
		collection: '/sub/fields/',
		key: 'variable',
		name: /^mailctl_smoke_(\d{8}t\d{6}_[0-9a-f]{6})(?:_(?:patched|replaced|refused))?$/,
	},
	webhook: {
		collection: '/webhooks/',
		key: 'url',
		name: /^https:\/\/mailctl-smoke\.invalid\/mailctl-smoke-(\d{8}T\d{6}-[0-9a-f]{6})(?:-(?:patched|replaced|refused))?$/,
	},
};

export function collectionOf(kind: Kind): string {
	return places[kind].collection;
}

export function nameIn(kind: Kind, record: unknown): string | null {
	const name = isRecord(record) ? record[places[kind].key] : null;
	return typeof name === 'string' ? name : null;
}

export function isOfRun(kind: Kind, name: unknown, run: string | null): boolean {
	const found = typeof name === 'string' ? places[kind].name.exec(name)?.[1] : undefined;
	if (found === undefined) return false;
	return run === null || found.toLowerCase().replace('_', '-') === run.toLowerCase();
}

export interface RunNames extends Readonly<Record<Kind, string>> {
	readonly id: string;
	readonly email: string;
}

export function nameRun(clock: Clock, random: string): RunNames {
	const time = formatDateTime(clock.now()).slice(0, 19).replaceAll(/[-:]/g, '');
	const id = `${time}-${random}`;
	return {
		id,
		list: `mailctl-smoke-${id}`,
		field: `mailctl_smoke_${id.replace('-', '_').toLowerCase()}`,
		webhook: `https://mailctl-smoke.invalid/mailctl-smoke-${id}`,
		email: `${id.toLowerCase()}@example.com`,
	};
}

export interface Thing extends Omit<Leftover, 'why'> {
	id: number;
	/**
	 * Searching by name did not find the record. Its id comes from an answer to POST, and may belong to another record.
	 */
	isUnnamed?: true;
}

export function describe({ kind, id, name }: Omit<Leftover, 'why'>): string {
	return `${kind} ${id ?? '?'} "${name}"`;
}

export const unreadable = 'its name cannot be read, so it was kept';

/** Throws if the collection cannot be read. */
export async function findThings(call: Caller, run: string | null, kind: Kind): Promise<Thing[]> {
	const { collection, key } = places[kind];
	const probe = new Probe(call);
	const found: Thing[] = [];
	for await (const { results } of probe.pages(withQuery(collection, { page_size: 1_000 })))
		for (const { id, [key]: listed } of results) {
			if (typeof id !== 'number') continue;
			// Some services omit names in collections, so read the record itself.
			const alone = typeof listed === 'string' ? null : (await probe.get(`${collection}${id}/`)).json;
			const name = isRecord(alone) ? alone[key] : listed;
			if (typeof name === 'string' && isOfRun(kind, name, run)) found.push({ kind, id, name });
		}
	return found;
}

/**
 * Returns why the record remains, or null. Also returns null for an `isUnnamed` record that belongs to somebody else.
 */
export async function removeThing(call: Caller, thing: Thing, run: string | null): Promise<string | null> {
	const { kind, id, isUnnamed } = thing;
	const path = `${collectionOf(kind)}${id}/`;
	const isGone = ({ status }: Answer) => status === 404 || status === 410;
	try {
		const before = await call({ method: 'GET', path });
		if (isGone(before)) return null;
		if (before.status !== 200) return `the request to read it returned ${before.status}`;
		const name = nameIn(kind, before.json);
		if (name === null) return unreadable;
		if (!isOfRun(kind, name, run)) return isUnnamed ? null : 'its name no longer matches, so it was kept';
		const deleted = await call({ method: 'DELETE', path });
		if (deleted.status >= 300 && !isGone(deleted))
			return `the request to delete it returned ${deleted.status}`;
		const after = await call({ method: 'GET', path });
		return isGone(after) ? null : `it is still there after its deletion (${after.status})`;
	} catch (error) {
		return messageOf(error);
	}
}

export function messageOf(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}
