/**
 * Queue of import batches: consecutive batches of a session share a transaction, as many rows as the lock may be held
 * for. Each commit writes most pages of a large index anew, so a million rows take 200 commits at 5,000 rows each, and
 * twice the time of 10.
 */

import type { Ack, ImportCounts } from '../../api/capabilities.js';
import { addImportCounts } from '../../api/counts.js';
import { maxOrderedRows } from '../core/imports/batch-rows.js';
import type { ImportAck } from '../imports.js';
import type { Command } from '../operations.js';
import type { SliceSize } from '../slices.js';
import type { Core } from './core.js';
import { sqliteCode } from './failures.js';
import type { Writer } from './writer.js';

type PutCommand = Command<'putImportBatch'>;

export interface ImportLine {
	/**
	 * Resolves when all rows of the batch are committed. The position commits with each part. An interrupted batch that is
	 * put again continues where it stopped, and its answer covers all of its rows. A failure fails all waiting batches of
	 * the session.
	 */
	put(command: PutCommand): Promise<ImportAck>;
}

/** Fewer rows are not worth it: SQLite compiles all statements anew where foreign keys are not checked for a while. */
const fewestExpected = 20_000;

interface Waiting {
	command: PutCommand;
	/** Its rows, and those that are settled. */
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

/** The queue of one writer. `size` limits the rows of a transaction, and learns how long they took. */
export function createImportLine(core: Core, writer: Writer, size: SliceSize): ImportLine {
	let line: Waiting[] = [];
	let isRunning = false;
	/** The session whose last transaction has met no subscriber. */
	let unmet: string | null = null;
	const refusals = createRefusals();

	const run = async () => {
		isRunning = true;
		for (let head = line[0]; head !== undefined; head = line[0]) await turn(head.command.session);
		isRunning = false;
	};

	const turn = async (session: string) => {
		const maxRows = Math.min(size.rows(), refusals.rows(), maxOrderedRows);
		const expectsNew = unmet === session && maxRows >= fewestExpected;
		unmet = null;
		try {
			const { answered, rows, refused, isUnmet } = await writer.write(
				() => putNext(core, line, { maxRows, expectsNew }),
				{ group: expectsNew ? 'load' : 'bulk' },
			);
			if (isUnmet) unmet = session;
			size.took(rows, writer.heldMs());
			refusals.took(rows, refused);
			const isAnswered = new Set(answered.map(({ waiting }) => waiting));
			line = line.filter((waiting) => !isAnswered.has(waiting));
			for (const { waiting, outcome } of answered) waiting.resolve(outcome);
		} catch (error) {
			// Undone: the next turn puts these rows again, and looks for each.
			if (expectsNew && sqliteCode(error) === 'SQLITE_CONSTRAINT_UNIQUE') return;
			const hit = line.filter(({ command }) => command.session === session);
			line = line.filter(({ command }) => command.session !== session);
			for (const waiting of hit) waiting.reject(error);
		}
	};

	return {
		put: (command) =>
			new Promise((resolve, reject) => {
				const count = core.prepareBatch(command);
				line.push({ command, count, settled: 0, ack: null, resolve, reject });
				if (!isRunning) void run();
			}),
	};
}

/** Puts at most `maxRows` rows of the first session in line, within one transaction. */
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

interface Taken {
	waiting: Waiting;
	/** Rows of the batch after those that are settled. */
	limit: number;
}

/** The rows of the first session to put next, and batches that have an answer without it. */
function takeNext(
	core: Core,
	line: readonly Waiting[],
	maxRows: number,
): { taken: Taken[]; answered: Answered[]; rows: number } {
	const session = line[0]?.command.session;
	const taken: Taken[] = [];
	const answered: Answered[] = [];
	let rows = 0;
	for (const waiting of line) {
		if (waiting.command.session !== session || rows >= maxRows) break;
		const outcome = answerOf(core, waiting, rows);
		// A batch that is put twice at once: the second gets its answer when the first is put.
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

/** Null: rows of it must be put. Settles what was put before. */
function answerOf(core: Core, waiting: Waiting, ahead: number): ImportAck | null {
	const { session, batch } = waiting.command;
	for (;;) {
		const outcome = core.findImportAnswer({ session, first: batch.first + waiting.settled, ahead });
		if (outcome?.kind !== 'acknowledged') return outcome;
		if (settle(waiting, outcome.ack)) return acknowledged(waiting);
	}
}

/** True: all rows are settled. */
function settle(waiting: Waiting, ack: Ack<ImportCounts>): boolean {
	waiting.ack = waiting.ack === null ? ack : addAcks(waiting.ack, ack);
	waiting.settled = ack.position - waiting.command.batch.first;
	return waiting.settled >= waiting.count;
}

function acknowledged({ ack }: Waiting): ImportAck {
	if (ack === null) throw new Error('a batch without an answer');
	return { kind: 'acknowledged', ack };
}

/**
 * Limits the rows of an import in one transaction by their rejects, which stay objects until the answer and save no
 * write. The last share of rejects is the estimate for the next rows.
 */
function createRefusals() {
	const maxRefused = 10_000;
	let share = 1;
	return {
		rows: () => (share === 0 ? Number.POSITIVE_INFINITY : Math.ceil(maxRefused / share)),
		took: (rows: number, refused: number) => {
			if (rows > 0) share = refused / rows;
		},
	};
}

function addAcks(one: Ack<ImportCounts>, next: Ack<ImportCounts>): Ack<ImportCounts> {
	return {
		position: next.position,
		counts: addImportCounts(one.counts, next.counts),
		rejects: [...one.rejects, ...next.rejects],
	};
}
