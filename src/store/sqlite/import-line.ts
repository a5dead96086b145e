/**
 * Groups batches of an import into transactions that hold the lock for a limited time. Large groups are faster, because
 * each commit rewrites most pages of a large index. With 5,000 rows per commit, a million rows take twice as long.
 */

import type { Ack, ImportCounts } from '../../api/capabilities.js';
import { addImportCounts } from '../../api/counts.js';
import { maxOrderedRows } from '../core/imports/run.js';
import type { Command } from '../operations.js';
import type { SliceSize } from '../slices.js';
import type { ImportAck } from '../store.js';
import { sqliteCode } from './connection.js';
import type { Core } from './core.js';
import type { Writer } from './writer.js';

type PutCommand = Command<'putImportBatch'>;

/** SQLite recompiles all statements before and after a `load` group. Smaller groups therefore do not use `load`. */
const fewestExpected = 20_000;
const maxRefused = 10_000;

interface Waiting {
	command: PutCommand;
	count: number;
	settled: number;
	ack: Ack<ImportCounts> | null;
	resolve(outcome: ImportAck): void;
	reject(error: unknown): void;
}

interface Answered {
	waiting: Waiting;
	outcome: ImportAck;
}

export class ImportLine {
	readonly #core: Core;
	readonly #writer: Writer;
	readonly #size: SliceSize;
	#line: Waiting[] = [];
	#isRunning = false;
	#unmet: string | null = null;
	#refusedShare = 1;

	constructor(core: Core, writer: Writer, size: SliceSize) {
		this.#core = core;
		this.#writer = writer;
		this.#size = size;
	}

	/**
	 * Resolves after all rows of the batch are committed. Each transaction also stores the position that the import has
	 * reached. A failure rejects all waiting batches of the import.
	 */
	put(command: PutCommand): Promise<ImportAck> {
		return new Promise((resolve, reject) => {
			const count = this.#core.prepareBatch(command);
			this.#line.push({ command, count, settled: 0, ack: null, resolve, reject });
			if (!this.#isRunning) void this.#run();
		});
	}

	async #run(): Promise<void> {
		this.#isRunning = true;
		for (let head = this.#line[0]; head !== undefined; head = this.#line[0])
			await this.#turn(head.command.session);
		this.#isRunning = false;
	}

	async #turn(session: string): Promise<void> {
		const share = this.#refusedShare;
		const fitting = share === 0 ? Number.POSITIVE_INFINITY : Math.ceil(maxRefused / share);
		const maxRows = Math.min(this.#size.rows(), fitting, maxOrderedRows);
		const expectsNew = this.#unmet === session && maxRows >= fewestExpected;
		this.#unmet = null;
		try {
			const { answered, rows, refused, isUnmet } = await this.#writer.write(
				() => putNext(this.#core, this.#line, { maxRows, expectsNew }),
				{ group: expectsNew ? 'load' : 'bulk' },
			);
			if (isUnmet) this.#unmet = session;
			this.#size.took(rows, this.#writer.heldMs());
			if (rows > 0) this.#refusedShare = refused / rows;
			const isAnswered = new Set(answered.map(({ waiting }) => waiting));
			this.#line = this.#line.filter((waiting) => !isAnswered.has(waiting));
			for (const { waiting, outcome } of answered) waiting.resolve(outcome);
		} catch (error) {
			if (expectsNew && sqliteCode(error) === 'SQLITE_CONSTRAINT_UNIQUE') return;
			const hit = this.#line.filter(({ command }) => command.session === session);
			this.#line = this.#line.filter(({ command }) => command.session !== session);
			for (const waiting of hit) waiting.reject(error);
		}
	}
}

function putNext(
	core: Core,
	line: readonly Waiting[],
	{ maxRows, expectsNew }: { maxRows: number; expectsNew: boolean },
): { answered: Answered[]; rows: number; refused: number; isUnmet: boolean } {
	const { taken, answered, rows } = takeNext(core, line, maxRows);
	const [head] = taken;
	if (head === undefined) return { answered, rows: 0, refused: 0, isUnmet: false };
	const { session, now } = head.waiting.command;
	const slices = taken.map(({ waiting, limit }) => ({
		batch: waiting.command.batch,
		from: waiting.settled,
		limit,
	}));
	let refused = 0;
	let met = 0;
	let created = 0;
	const acks = core.putImportSlices({ session, slices, now, expects_new: expectsNew });
	for (const [index, { waiting }] of taken.entries()) {
		const ack = acks[index];
		if (ack === undefined) throw new Error('a batch without an answer');
		refused += ack.rejects.length;
		created += ack.counts.created;
		met += ack.counts.updated + ack.counts.unchanged + ack.counts.duplicate;
		if (settle(waiting, ack)) answered.push({ waiting, outcome: acknowledged(waiting) });
	}
	return { answered, rows, refused, isUnmet: created > 0 && met === 0 };
}

function takeNext(core: Core, line: readonly Waiting[], maxRows: number) {
	const session = line[0]?.command.session;
	const taken: { waiting: Waiting; limit: number }[] = [];
	const answered: Answered[] = [];
	let rows = 0;
	for (const waiting of line) {
		if (waiting.command.session !== session || rows >= maxRows) break;
		const outcome = answerOf(core, waiting, rows);
		if (outcome?.kind === 'gap' && taken.length > 0) break;
		if (outcome !== null) {
			answered.push({ waiting, outcome });
			continue;
		}
		const limit = Math.min(waiting.count - waiting.settled, maxRows - rows);
		taken.push({ waiting, limit });
		rows += limit;
	}
	return { taken, answered, rows };
}

function answerOf(core: Core, waiting: Waiting, ahead: number): ImportAck | null {
	const { session, batch } = waiting.command;
	for (;;) {
		const outcome = core.findImportAnswer({ session, first: batch.first + waiting.settled, ahead });
		if (outcome?.kind !== 'acknowledged') return outcome;
		if (settle(waiting, outcome.ack)) return acknowledged(waiting);
	}
}

function settle(waiting: Waiting, ack: Ack<ImportCounts>): boolean {
	const before = waiting.ack;
	waiting.ack =
		before === null
			? ack
			: {
					position: ack.position,
					counts: addImportCounts(before.counts, ack.counts),
					rejects: [...before.rejects, ...ack.rejects],
				};
	waiting.settled = ack.position - waiting.command.batch.first;
	return waiting.settled >= waiting.count;
}

function acknowledged({ ack }: Waiting): ImportAck {
	if (ack === null) throw new Error('a batch without an answer');
	return { kind: 'acknowledged', ack };
}
