/**
 * Imports on a deployment without them: each row is a POST or a PATCH, and the session is stored here, so that a
 * later run continues a killed one.
 */
import { createHash } from 'node:crypto';
import type { EmailKey } from '../api/address.js';
import type { Ack, ImportBatch, ImportCounts, ImportSpec, Imports, Session } from '../api/capabilities.js';
import { addImportCounts } from '../api/counts.js';
import { ApiError, notFound } from '../api/errors.js';
import { inOrder, Pace, type Pause, type Sleep } from './pace.js';
import {
	deactivate,
	type ForeignRow,
	type Intent,
	type RowIntents,
	type RowOutcome,
	type RowParts,
	readRows,
	settleRow,
	unknownCode,
} from './row-outcome.js';
import { openSubscriberPages, type Subscribers } from './subscriber-pages.js';

export interface SingleImportOptions {
	concurrency: number;
	rowsPerSecond?: number;
	keep: KeepImport | null;
	signal?: AbortSignal;
	sleep?: Sleep;
}

export interface SingleImports extends Imports {
	readonly reasonsLeftOut: number;
	onPause(listener: (pause: Pause) => void): void;
	close(): Promise<void>;
}

interface OpenImport {
	session: SingleSession;
	kept: KeptImport;
}

/** An error that concerns more than a row rejects the batch. Its rows keep their outcome when they are put again. */
export function createSingleImports(api: WritableApi, options: SingleImportOptions): SingleImports {
	const { concurrency, rowsPerSecond, signal, sleep } = options;
	const keep = options.keep ?? keepNothing;
	const imports = new Map<string, OpenImport>();
	let listener: (pause: Pause) => void = () => {};
	let reasonsLeftOut = 0;
	const pace = new Pace({
		...(rowsPerSecond !== undefined && { rowsPerSecond }),
		...(signal !== undefined && { signal }),
		...(sleep !== undefined && { sleep }),
		onPause: (pause) => listener(pause),
	});
	const find = (key: string): OpenImport => {
		const found = imports.get(key);
		if (found === undefined) throw notFound();
		return found;
	};
	return {
		get reasonsLeftOut() {
			return [...imports.values()].reduce((sum, { session }) => sum + session.reasonsLeftOut, reasonsLeftOut);
		},
		open: async (key, spec) => {
			const known = imports.get(key);
			if (known !== undefined) return sessionOf(key, known.session);
			const kept = await keep(key);
			try {
				const session = await openSession(api, { spec, kept, pace, concurrency });
				imports.set(key, { session, kept });
				return sessionOf(key, session);
			} catch (error) {
				await kept.close();
				throw error;
			}
		},
		put: async (id, batch) => find(id).session.put(batch),
		finish: async (id) => {
			const { session, kept } = find(id);
			await kept.remove();
			imports.delete(id);
			reasonsLeftOut += session.reasonsLeftOut;
			return session.totals;
		},
		onPause: (heard) => {
			listener = heard;
		},
		close: async () => {
			for (const { kept } of imports.values()) await kept.close();
			imports.clear();
		},
	};
}

function sessionOf(id: string, { position, totals }: SingleSession): Session {
	return { id, position, counts: totals };
}

export interface SessionParts {
	spec: ImportSpec;
	kept: KeptImport;
	pace: Pace;
	concurrency: number;
}

export interface WritableApi {
	subscribers(listId: number): Subscribers;
}

export async function openSession(api: WritableApi, parts: SessionParts): Promise<SingleSession> {
	const { spec, pace, kept } = parts;
	const subscribers = api.subscribers(spec.list_id);
	const pages = await openSubscriberPages(subscribers, pace);
	const session = new SingleSession({ subscribers, pages, pace, spec }, parts);
	for await (const hash of kept.taken()) session.stands(hash);
	return session;
}

const maxUnknownInARow = 16;

class SingleSession {
	position: number;
	totals: ImportCounts;
	reasonsLeftOut: number;
	readonly #parts: RowParts;
	readonly #kept: KeptImport;
	readonly #concurrency: number;
	readonly #taken = new Set<AddressHash>();
	#last: { first: number; ack: Ack<ImportCounts> } | null;
	#unknownInARow = 0;

	constructor(parts: RowParts, { kept, concurrency }: SessionParts) {
		this.#parts = parts;
		this.#kept = kept;
		this.position = kept.position;
		this.totals = kept.counts;
		this.reasonsLeftOut = kept.reasonsLeftOut;
		this.#last = kept.last;
		this.#concurrency = concurrency;
	}

	stands(hash: AddressHash): void {
		this.#taken.add(hash);
	}

	#take({ first, ack, reasonsLeftOut, taken }: AckedBatch): void {
		for (const hash of taken) this.#taken.add(hash);
		this.totals = addImportCounts(this.totals, ack.counts);
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
		await this.#parts.pages.prepare(rows.length);
		const outcomes = await this.#settle(rows, first);
		const ack = ackOf(first, outcomes);
		const done = {
			first,
			ack,
			reasonsLeftOut: rows.filter((row) => row.kind === 'row' && row.hasReason).length,
			taken: rows.flatMap((row, index) =>
				row.kind === 'row' && isStanding(outcomes[index]) ? [hashOf(row.key)] : [],
			),
		};
		await this.#kept.acknowledge(done);
		this.#take(done);
		return ack;
	}

	/** Rows of one address wait for each other, so that the first in the file counts. */
	async #settle(rows: ReturnType<typeof readRows>, first: number): Promise<RowOutcome[]> {
		const outcomes = new Array<RowOutcome>(rows.length);
		const ahead = new Map<EmailKey, Promise<boolean>>();
		await inOrder(rows.length, this.#concurrency, async (index) => {
			const row = rows[index];
			if (row === undefined) return;
			if (row.kind === 'rejected') {
				outcomes[index] = row;
				return;
			}
			const outcome = this.#settleOne(row, { before: ahead.get(row.key), number: first + index });
			ahead.set(
				row.key,
				outcome.then(
					(one) => one.kind === 'duplicate' || isStanding(one),
					() => false,
				),
			);
			outcomes[index] = await outcome;
		});
		return outcomes;
	}

	async #settleOne(
		row: ForeignRow,
		{ before, number }: { before: Promise<boolean> | undefined; number: number },
	): Promise<RowOutcome> {
		await this.#parts.pace.row();
		if (this.#taken.has(hashOf(row.key)) || (await before) === true) {
			await deactivate(this.#parts, row);
			const error = `email: ${row.email} stands in this import already.`;
			return { kind: 'duplicate', code: 'duplicate', error };
		}
		const outcome = await settleRow(this.#parts, row, this.#intentsOf(number));
		const isUnknown = outcome.kind === 'rejected' && outcome.code === unknownCode;
		this.#unknownInARow = isUnknown ? this.#unknownInARow + 1 : 0;
		if (this.#unknownInARow > maxUnknownInARow)
			throw new ApiError('network', 'The service has stopped answering.', { unanswered: true });
		return outcome;
	}

	#intentsOf(number: number): RowIntents {
		const earlier = this.#kept.begun.get(number) ?? null;
		let last = earlier;
		return {
			earlier,
			declare: async (intent) => {
				if (intent === last) return;
				await this.#kept.declare(number, intent);
				last = intent;
			},
		};
	}
}

function ackOf(first: number, outcomes: readonly RowOutcome[]): Ack<ImportCounts> {
	const counts = noCounts();
	for (const { kind } of outcomes) counts[kind] += 1;
	const rejects = outcomes.flatMap((outcome, index) =>
		'code' in outcome ? [{ row: first + index, code: outcome.code, error: outcome.error }] : [],
	);
	return { position: first + outcomes.length, counts, rejects };
}

function isStanding(outcome: RowOutcome | undefined): boolean {
	return outcome !== undefined && !('code' in outcome);
}

function noCounts(): ImportCounts {
	return { created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };
}

/** Eleven characters: two of a million are equal in one import of 37 million. */
export type AddressHash = string;

export interface AckedBatch {
	first: number;
	ack: Ack<ImportCounts>;
	reasonsLeftOut: number;
	taken: readonly AddressHash[];
}

export interface KeptImport {
	readonly position: number;
	readonly counts: ImportCounts;
	readonly reasonsLeftOut: number;
	readonly last: { first: number; ack: Ack<ImportCounts> } | null;
	readonly begun: ReadonlyMap<number, Intent>;
	taken(): AsyncIterable<AddressHash>;
	declare(row: number, intent: Intent): Promise<void>;
	acknowledge(batch: AckedBatch): Promise<void>;
	close(): Promise<void>;
	remove(): Promise<void>;
}

export type KeepImport = (key: string) => Promise<KeptImport>;

export async function keepNothing(): Promise<KeptImport> {
	const done = async () => undefined;
	return {
		position: 0,
		counts: noCounts(),
		reasonsLeftOut: 0,
		last: null,
		begun: new Map(),
		taken: none,
		declare: done,
		acknowledge: done,
		close: done,
		remove: done,
	};
}

export function hashOf(key: EmailKey): AddressHash {
	return createHash('sha256').update(key).digest().toString('base64url', 0, 8);
}

async function* none(): AsyncGenerator<never, void, undefined> {}
