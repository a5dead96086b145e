/** One import on a deployment that knows single subscribers only: batches become requests, and requests become counts. */
import type { EmailKey } from '../../api/address.js';
import type { Api } from '../../api/api.js';
import type { Ack, ImportBatch, ImportCounts, ImportSpec } from '../../api/capabilities.js';
import { ApiError } from '../../api/errors.js';
import { type Fate, type FateParts, type RowIntents, settleRow, unknownCode } from './fate.js';
import { type AckedBatch, type AddressHash, hashOf, type ImportLedger } from './import-ledger.js';
import { inOrder, type Pace } from './pace.js';
import { openPeople } from './people.js';
import { type ForeignRow, readRows } from './rows.js';

export interface ForeignSession {
	/** Rows acknowledged. */
	readonly position: number;
	/** Of all rows acknowledged, earlier runs included. */
	readonly totals: ImportCounts;
	/** Rows acknowledged whose `disable_reason` was left out. */
	readonly reasonsLeftOut: number;
	/** The same first row again: the same answer, without a request. Throws `conflict` for any other row. */
	put(batch: ImportBatch): Promise<Ack<ImportCounts>>;
}

export interface SessionParts {
	spec: ImportSpec;
	ledger: ImportLedger;
	pace: Pace;
	/** Rows that are settled at the same time. */
	concurrency: number;
}

/** Where earlier runs left it. An unknown list is `not_found` here. */
export async function openSession(api: Api, parts: SessionParts): Promise<ForeignSession> {
	const { spec, pace, ledger } = parts;
	const subscribers = api.subscribers(spec.list_id);
	const people = await openPeople(subscribers, pace);
	const session = new Session({ subscribers, people, pace, spec }, parts);
	for await (const batch of ledger.batches) session.take(batch);
	return session;
}

/** Rows nobody can tell the fate of, one after the other, before the service is taken for gone. */
const maxUnknownInARow = 16;

class Session implements ForeignSession {
	position = 0;
	totals: ImportCounts = noCounts();
	reasonsLeftOut = 0;
	readonly #fateParts: FateParts;
	readonly #ledger: ImportLedger;
	readonly #concurrency: number;
	/** Addresses that stand in this import already. */
	readonly #taken = new Set<AddressHash>();
	#last: { first: number; ack: Ack<ImportCounts> } | null = null;
	#unknownInARow = 0;

	constructor(fateParts: FateParts, { ledger, concurrency }: SessionParts) {
		this.#fateParts = fateParts;
		this.#ledger = ledger;
		this.#concurrency = concurrency;
	}

	/** A batch is done, in this run or in an earlier one. */
	take({ first, ack, reasonsLeftOut, taken }: AckedBatch): void {
		for (const hash of taken) this.#taken.add(hash);
		this.totals = sumOf(this.totals, ack.counts);
		this.position = ack.position;
		this.reasonsLeftOut += reasonsLeftOut;
		this.#last = { first, ack };
	}

	async put(batch: ImportBatch): Promise<Ack<ImportCounts>> {
		const { first } = batch;
		if (this.#last?.first === first) return this.#last.ack;
		if (first !== this.position)
			throw new ApiError('conflict', `The next row of this import is ${this.position}.`);
		const rows = readRows(batch);
		await this.#fateParts.people.prepare(rows.length);
		const fates = await this.#settle(rows, first);
		const ack = ackOf(first, fates);
		const done = {
			first,
			ack,
			reasonsLeftOut: rows.filter(({ hasReason }) => hasReason).length,
			taken: rows.flatMap(({ key }, index) => (isStanding(fates[index]) ? [hashOf(key)] : [])),
		};
		await this.#ledger.acknowledge(done);
		this.take(done);
		return ack;
	}

	/** Rows of one address wait for each other, so that the first in the file is the one that counts. */
	async #settle(rows: readonly ForeignRow[], first: number): Promise<Fate[]> {
		const fates = new Array<Fate>(rows.length);
		const ahead = new Map<EmailKey, Promise<boolean>>();
		await inOrder(rows.length, this.#concurrency, async (index) => {
			const row = rows[index];
			if (row === undefined) return;
			const fate = this.#settleOne(row, { before: ahead.get(row.key), number: first + index });
			ahead.set(
				row.key,
				fate.then(isTaken, () => false),
			);
			fates[index] = await fate;
		});
		return fates;
	}

	async #settleOne(
		row: ForeignRow,
		{ before, number }: { before: Promise<boolean> | undefined; number: number },
	): Promise<Fate> {
		await this.#fateParts.pace.row();
		if (this.#taken.has(hashOf(row.key)) || (await before) === true) {
			const error = `email: ${row.email} stands in this import already.`;
			return { kind: 'duplicate', code: 'duplicate', error };
		}
		const fate = await settleRow(this.#fateParts, row, this.#intentsOf(number));
		const isUnknown = fate.kind === 'rejected' && fate.code === unknownCode;
		this.#unknownInARow = isUnknown ? this.#unknownInARow + 1 : 0;
		if (this.#unknownInARow > maxUnknownInARow)
			throw new ApiError('network', 'The service has stopped answering.', { unanswered: true });
		return fate;
	}

	#intentsOf(number: number): RowIntents {
		const earlier = this.#ledger.begun.get(number) ?? null;
		let last = earlier;
		return {
			earlier,
			declare: async (intent) => {
				if (intent === last) return;
				await this.#ledger.declare(number, intent);
				last = intent;
			},
		};
	}
}

function ackOf(first: number, fates: readonly Fate[]): Ack<ImportCounts> {
	const counts = noCounts();
	for (const { kind } of fates) counts[kind] += 1;
	const rejects = fates.flatMap((fate, index) =>
		'code' in fate ? [{ row: first + index, code: fate.code, error: fate.error }] : [],
	);
	return { position: first + fates.length, counts, rejects };
}

/** Created, updated or found as it should be. */
function isStanding(fate: Fate | undefined): boolean {
	return fate !== undefined && !('code' in fate);
}

/** The address stands in this import, by this row or by an earlier one. */
function isTaken(fate: Fate): boolean {
	return fate.kind === 'duplicate' || isStanding(fate);
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
