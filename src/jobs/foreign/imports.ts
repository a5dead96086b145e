/**
 * Imports on a deployment that has none: sessions that live in this process, each row a POST or a PATCH. Nothing of a
 * session outlives the run, and nothing need: who is there already is found unchanged when the file comes again.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { EmailKey } from '../../api/address.js';
import type { Api } from '../../api/api.js';
import type { Ack, ImportBatch, ImportCounts, ImportSpec, Imports, Session } from '../../api/capabilities.js';
import { ApiError, notFound } from '../../api/errors.js';
import { type Fate, type FateParts, settleRow, unknownCode } from './fate.js';
import { createPace, inOrder, type Sleep } from './pace.js';
import { openPeople } from './people.js';
import { type ForeignRow, readRows } from './rows.js';

export interface ForeignImportOptions {
	/** Requests in flight. */
	concurrency: number;
	/** Cuts pauses short; rows that are begun are ended. */
	signal?: AbortSignal;
	sleep?: Sleep;
}

/** `Imports` with a word on what could not be said to the service. */
export interface ForeignImports extends Imports {
	/** Rows acknowledged whose `disable_reason` was left out: the document has no way to set one. */
	readonly reasonsLeftOut: number;
}

/** Rows nobody can tell the fate of, one after the other, before the service is taken for gone. */
const maxUnknownInARow = 16;

/**
 * Counts and rejects are those of the rows in their order, however many are in flight. What concerns more than a row
 * (the list is gone, the token, the network) rejects the batch; its rows may have been written, and are found
 * unchanged when they are put again.
 */
export function createForeignImports(api: Api, options: ForeignImportOptions): ForeignImports {
	const sessions = new Map<string, ForeignSession>();
	const find = (key: string) => {
		const session = sessions.get(key);
		if (session === undefined) throw notFound();
		return session;
	};
	let reasonsLeftOut = 0;
	return {
		get reasonsLeftOut() {
			return reasonsLeftOut;
		},
		open: async (key, spec) => {
			const known = sessions.get(key);
			if (known !== undefined) return { id: key, position: known.position };
			sessions.set(key, await openSession(api, spec, options));
			return { id: key, position: 0 } satisfies Session;
		},
		put: async (id, batch) => {
			const session = find(id);
			const isNew = batch.first === session.position;
			const ack = await session.put(batch);
			if (isNew) reasonsLeftOut += readRows(batch).filter(({ hasReason }) => hasReason).length;
			return ack;
		},
		finish: async (id) => {
			const { totals } = find(id);
			sessions.delete(id);
			return totals;
		},
	};
}

async function openSession(
	api: Api,
	spec: ImportSpec,
	{ concurrency, signal, sleep = sleepFor }: ForeignImportOptions,
): Promise<ForeignSession> {
	const subscribers = api.subscribers(spec.list_id);
	const pace = createPace({ sleep, ...(signal !== undefined && { signal }) });
	const people = await openPeople(subscribers, pace);
	return new ForeignSession({ subscribers, people, pace, spec }, concurrency);
}

async function sleepFor(ms: number, signal?: AbortSignal): Promise<void> {
	// The timer's own error says "aborted"; the signal's reason says by whom.
	await wait(ms, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
}

class ForeignSession {
	position = 0;
	totals: ImportCounts = noCounts();
	readonly #parts: FateParts;
	readonly #concurrency: number;
	/** Addresses that stand in this import already. */
	readonly #taken = new Set<EmailKey>();
	#last: { first: number; ack: Ack<ImportCounts> } | null = null;
	#unknownInARow = 0;

	constructor(parts: FateParts, concurrency: number) {
		this.#parts = parts;
		this.#concurrency = concurrency;
	}

	async put(batch: ImportBatch): Promise<Ack<ImportCounts>> {
		if (this.#last?.first === batch.first) return this.#last.ack;
		if (batch.first !== this.position)
			throw new ApiError('conflict', `The next row of this import is ${this.position}.`);
		const rows = readRows(batch);
		await this.#parts.people.prepare(rows.length);
		const fates = await this.#settle(rows);
		rows.forEach(({ key }, index) => {
			if (isTaken(fates[index])) this.#taken.add(key);
		});
		return this.#acknowledge(batch.first, fates);
	}

	/** Rows of one address wait for each other, so that the first in the file is the one that counts. */
	async #settle(rows: readonly ForeignRow[]): Promise<Fate[]> {
		const fates = new Array<Fate>(rows.length);
		const ahead = new Map<EmailKey, Promise<boolean>>();
		await inOrder(rows.length, this.#concurrency, async (index) => {
			const row = rows[index];
			if (row === undefined) return;
			const before = ahead.get(row.key);
			const fate = this.#settleOne(row, before);
			ahead.set(
				row.key,
				fate.then(isTaken, () => false),
			);
			fates[index] = await fate;
		});
		return fates;
	}

	async #settleOne(row: ForeignRow, before: Promise<boolean> | undefined): Promise<Fate> {
		if (this.#taken.has(row.key) || (await before) === true) {
			const error = `email: ${row.email} stands in this import already.`;
			return { kind: 'duplicate', code: 'duplicate', error };
		}
		const fate = await settleRow(this.#parts, row);
		const isUnknown = fate.kind === 'rejected' && fate.code === unknownCode;
		this.#unknownInARow = isUnknown ? this.#unknownInARow + 1 : 0;
		if (this.#unknownInARow > maxUnknownInARow)
			throw new ApiError('network', 'The service has stopped answering.', { unanswered: true });
		return fate;
	}

	#acknowledge(first: number, fates: readonly Fate[]): Ack<ImportCounts> {
		const counts = noCounts();
		for (const { kind } of fates) counts[kind] += 1;
		this.totals = sumOf(this.totals, counts);
		this.position = first + fates.length;
		const rejects = fates.flatMap((fate, index) =>
			'code' in fate ? [{ row: first + index, code: fate.code, error: fate.error }] : [],
		);
		const ack = { position: this.position, counts, rejects };
		this.#last = { first, ack };
		return ack;
	}
}

/** Created, updated or found as it should be: the address stands in this import. */
function isTaken(fate: Fate | undefined): boolean {
	return fate !== undefined && (fate.kind === 'duplicate' || !('code' in fate));
}

function noCounts(): ImportCounts {
	return { created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };
}

function sumOf(a: ImportCounts, b: ImportCounts): ImportCounts {
	return {
		created: a.created + b.created,
		updated: a.updated + b.updated,
		unchanged: a.unchanged + b.unchanged,
		duplicate: a.duplicate + b.duplicate,
		rejected: a.rejected + b.rejected,
	};
}
