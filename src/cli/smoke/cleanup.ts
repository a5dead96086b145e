/** Deletes the records of runs, and nothing else: each name is read again before the deletion. */
import { isRecord } from '../../api/json.js';
import type { Answer, Caller } from './caller.js';
import type { CreatedRecords } from './created-records.js';
import type { Kind, Leftover, Probe } from './model.js';
import { isOfRun, type KindOfThing, kinds } from './names.js';
import { walkPages, withQuery } from './pages.js';

export interface Thing {
	kind: Kind;
	id: number;
	/** Its name, variable or URL. */
	name: string;
}

/** The leftover where a thing was not deleted; null: it is gone. */
export type Removal = Leftover | null;

/** A deployment of many thousand lists is walked to its end: leftovers may be anywhere. */
const maxPages = 10_000;

/** Records of one run, or of any when null, all of them before any deletion. Throws for an unreadable collection. */
export async function findThings(call: Caller, run: string | null, kind: Kind): Promise<Thing[]> {
	const found: Thing[] = [];
	const of = kindOf(kind);
	for await (const { results } of walkPages(
		quietly(call),
		withQuery(of.collection, { page_size: 1_000 }),
		maxPages,
	)) {
		for (const record of results) {
			const { id, [of.key]: name } = record;
			if (typeof id === 'number' && typeof name === 'string' && isOfRun(of.kind, name, run))
				found.push({ kind: of.kind, id, name });
		}
	}
	return found;
}

/** Deletes one record if its name is still one of the run, and checks that it is gone. */
export async function removeThing(call: Caller, thing: Thing, run: string | null): Promise<Removal> {
	const of = kindOf(thing.kind);
	const path = `${of.collection}${thing.id}/`;
	try {
		const before = await call({ method: 'GET', path });
		if (isGone(before)) return null;
		if (before.status !== 200) return left(thing, `reading it was answered ${before.status}`);
		const name = isRecord(before.json) ? before.json[of.key] : undefined;
		if (!isOfRun(thing.kind, name, run)) return left(thing, 'it is not what this run made, and was kept');
		const deleted = await call({ method: 'DELETE', path });
		if (deleted.status >= 300 && !isGone(deleted))
			return left(thing, `deleting it was answered ${deleted.status}`);
		const after = await call({ method: 'GET', path });
		return isGone(after) ? null : left(thing, `it is still there after its deletion (${after.status})`);
	} catch (error) {
		return left(thing, error instanceof Error ? error.message : String(error));
	}
}

/** Everything of one run; by its ids where they are known, by its name where a creation was not answered. */
export async function cleanUp(
	call: Caller,
	records: CreatedRecords,
	run: { id: string; nameOf: NameOf },
): Promise<Leftover[]> {
	const leftovers: Leftover[] = [];
	// Lists last made go first; subscribers go with their list.
	for (const { kind } of kinds) {
		const known = records.made(kind).map((id) => ({ kind, id, name: run.nameOf(kind) }));
		const sought = records.isUncertain(kind) ? await seek(call, run, kind) : [];
		if (!Array.isArray(sought)) leftovers.push(sought);
		const more = Array.isArray(sought) ? sought.filter(({ id }) => known.every((one) => one.id !== id)) : [];
		for (const thing of [...known, ...more]) {
			const removal = await removeThing(call, thing, run.id);
			if (removal !== null) leftovers.push(removal);
		}
	}
	return leftovers;
}

export type NameOf = (kind: Kind) => string;

async function seek(
	call: Caller,
	run: { id: string; nameOf: NameOf },
	kind: Kind,
): Promise<Thing[] | Leftover> {
	try {
		return await findThings(call, run.id, kind);
	} catch (error) {
		const why = error instanceof Error ? error.message : String(error);
		return {
			kind,
			id: null,
			name: run.nameOf(kind),
			why: `perhaps there, it could not be looked for: ${why}`,
		};
	}
}

function isGone({ status }: Answer): boolean {
	return status === 404 || status === 410;
}

function left(thing: Thing, why: string): Leftover {
	return { ...thing, why };
}

function kindOf(kind: Kind): KindOfThing {
	const found = kinds.find((one) => one.kind === kind);
	if (found === undefined) throw new Error(`there is no kind ${kind}`);
	return found;
}

/** Faults of pages are ignored here: the checks report them. */
function quietly(call: Caller): Probe {
	return { call, fault: () => {}, deviate: () => {} };
}
