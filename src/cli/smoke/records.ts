/** The records of runs: how they are named, which a run has made, and how they are deleted. Nothing else ever is. */
import { type Clock, formatDateTime } from '../../api/datetime.js';
import { isRecord } from '../../api/json.js';
import type { Answer, Ask, Caller } from './caller.js';
import { Denied, Probe, withQuery } from './probe.js';

export const kinds = ['list', 'field', 'webhook'] as const;
export type Kind = (typeof kinds)[number];

/**
 * Where a kind is, and the key that holds the run's name. The whole name counts, not its beginning: a list called
 * `mailctl-smoke-tests` belongs to the user.
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
		name: /^mailctl_smoke_(\d{8}t\d{6}_[0-9a-f]{6})(?:_(?:patched|replaced|refused|meta))?$/,
	},
	webhook: {
		collection: '/webhooks/',
		key: 'url',
		name: /^https:\/\/mailctl-smoke\.invalid\/mailctl-smoke-(\d{8}T\d{6}-[0-9a-f]{6})(?:-(?:patched|replaced|refused))?$/,
	},
};

/** Whether a run made it: the run of that id, or any when null. */
export function isOfRun(kind: Kind, name: unknown, run: string | null): boolean {
	const found = typeof name === 'string' ? places[kind].name.exec(name)?.[1] : undefined;
	if (found === undefined) return false;
	return run === null || found.toLowerCase().replace('_', '-') === run.toLowerCase();
}

export interface RunNames extends Readonly<Record<Kind, string>> {
	readonly id: string;
	/** Of a reserved domain (RFC 2606), for subscribers that get no mail. */
	email(number: number): string;
}

export function nameRun(clock: Clock, random: string): RunNames {
	const time = formatDateTime(clock.now()).slice(0, 19).replaceAll(/[-:]/g, '');
	const id = `${time}-${random}`;
	return {
		id,
		list: `mailctl-smoke-${id}`,
		field: `mailctl_smoke_${id.replace('-', '_').toLowerCase()}`,
		webhook: `https://mailctl-smoke.invalid/mailctl-smoke-${id}`,
		email: (number) => `smoke-${number}.${id.toLowerCase()}@example.com`,
	};
}

export interface Thing {
	kind: Kind;
	id: number;
	name: string;
}

/** Something of a run that could not be deleted. `id` null: perhaps there, its creation was not answered. */
export interface Leftover extends Omit<Thing, 'id'> {
	id: number | null;
	why: string;
}

export function describe({ kind, id, name }: Omit<Leftover, 'why'>): string {
	return `${kind} ${id ?? '?'} "${name}"`;
}

/** The records of one run, certain and uncertain: an unanswered POST may have been carried out. */
export class CreatedRecords {
	readonly #made: Record<Kind, Set<number>> = { list: new Set(), field: new Set(), webhook: new Set() };
	/** While a POST is out, and for good after one that was answered by neither an id nor a 4xx. */
	readonly #uncertain = new Set<Kind>();

	get isEmpty(): boolean {
		return this.#uncertain.size === 0 && Object.values(this.#made).every((ids) => ids.size === 0);
	}

	async create(probe: Probe, kind: Kind, ask: Ask): Promise<Answer> {
		const before = this.#uncertain.has(kind);
		this.#uncertain.add(kind);
		const answer = await probe.call(ask).catch((error: unknown) => {
			// A 403 made nothing.
			if (!before && error instanceof Denied) this.#uncertain.delete(kind);
			throw error;
		});
		const id = createdId(answer);
		if (id !== null) this.#made[kind].add(id);
		const isRefused = answer.status >= 400 && answer.status < 500;
		if (!before && (id !== null || isRefused)) this.#uncertain.delete(kind);
		return answer;
	}

	/** Deletes them: by their ids where they are known, by its name where a creation was not answered. */
	async delete(call: Caller, names: RunNames): Promise<Leftover[]> {
		const leftovers: Leftover[] = [];
		for (const kind of kinds) {
			const things = new Map([...this.#made[kind]].map((id) => [id, { kind, id, name: names[kind] }]));
			if (this.#uncertain.has(kind))
				try {
					for (const thing of await findThings(call, names.id, kind)) things.set(thing.id, thing);
				} catch (error) {
					const why = `perhaps there, it could not be looked for: ${messageOf(error)}`;
					leftovers.push({ kind, id: null, name: names[kind], why });
				}
			for (const thing of things.values()) {
				const why = await removeThing(call, thing, names.id);
				if (why !== null) leftovers.push({ ...thing, why });
			}
		}
		return leftovers;
	}
}

/** The id of a created record; null where the POST was refused. */
export function createdId({ status, json }: Answer): number | null {
	const id = isRecord(json) ? json['id'] : null;
	return status < 300 && typeof id === 'number' && Number.isSafeInteger(id) ? id : null;
}

/** A deployment of many thousand lists is walked to its end: leftovers may be anywhere. */
const mostPages = 10_000;

/** Records of one run, or of any when null, all of them before any deletion. Throws for an unreadable collection. */
export async function findThings(call: Caller, run: string | null, kind: Kind): Promise<Thing[]> {
	const { collection, key } = places[kind];
	const found: Thing[] = [];
	// Faults of pages are for the checks to report.
	for await (const { results } of new Probe(call).pages(
		withQuery(collection, { page_size: 1_000 }),
		mostPages,
	))
		for (const { id, [key]: name } of results)
			if (typeof id === 'number' && typeof name === 'string' && isOfRun(kind, name, run))
				found.push({ kind, id, name });
	return found;
}

/**
 * Deletes one record if its name, read again, is still one of the run, and checks that it is gone. The reason why it is
 * still there; null: it is gone.
 */
export async function removeThing(
	call: Caller,
	{ kind, id }: Thing,
	run: string | null,
): Promise<string | null> {
	const { collection, key } = places[kind];
	const path = `${collection}${id}/`;
	const isGone = ({ status }: Answer) => status === 404 || status === 410;
	try {
		const before = await call({ method: 'GET', path });
		if (isGone(before)) return null;
		if (before.status !== 200) return `reading it was answered ${before.status}`;
		const name = isRecord(before.json) ? before.json[key] : undefined;
		if (!isOfRun(kind, name, run)) return 'it is not what this run made, and was kept';
		const deleted = await call({ method: 'DELETE', path });
		if (deleted.status >= 300 && !isGone(deleted)) return `deleting it was answered ${deleted.status}`;
		const after = await call({ method: 'GET', path });
		return isGone(after) ? null : `it is still there after its deletion (${after.status})`;
	} catch (error) {
		return messageOf(error);
	}
}

export function messageOf(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}
