/**
 * Batches of imports wait here for their turn: consecutive ones of a session share a transaction, as many rows as the
 * lock may be held for. Rows of a batch come in no order of the index, so each commit writes most pages of it anew: a
 * million rows take 200 commits at 5,000 rows each, and twice the time of 10.
 */
import type { Ack, ImportCounts } from '../../api/capabilities.js';
import type { ImportAck } from '../store.js';
import type { Core } from './core.js';
import { addCounts } from './imports.js';
import type { ImportSlice } from './mailing-rows.js';
import type { SliceSize } from './slices.js';
import type { Writer } from './writer.js';

type PutCommand = Omit<ImportSlice, 'from' | 'limit'>;

export interface ImportLine {
	/**
	 * Resolves when all rows of the batch are committed. The position commits with each part, so a batch that was broken
	 * off goes on where it stopped when it is put again, and answers for all of its rows. What fails, fails for all
	 * batches of the session that wait.
	 */
	put(command: PutCommand): Promise<ImportAck>;
}

interface Waiting {
	command: PutCommand;
	/** Rows it has, and those that are settled. */
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

export function createImportLine(core: Core, writer: Writer, size: SliceSize): ImportLine {
	let line: Waiting[] = [];
	let isRunning = false;

	const run = async () => {
		isRunning = true;
		for (let head = line[0]; head !== undefined; head = line[0]) await turn(head.command.session);
		isRunning = false;
	};

	const turn = async (session: string) => {
		try {
			const { answered, rows } = await writer.write(() => putNext(core, line, size.rows()), {
				group: 'bulk',
			});
			size.took(rows, writer.heldMs());
			const isAnswered = new Set(answered.map(({ waiting }) => waiting));
			line = line.filter((waiting) => !isAnswered.has(waiting));
			for (const { waiting, outcome } of answered) waiting.resolve(outcome);
		} catch (error) {
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

/** What is refused is kept as objects until the transaction is answered, and saves no write by being many. */
const maxRefused = 10_000;

/** Puts about `maxRows` rows of the first session in line, within one transaction. */
function putNext(
	core: Core,
	line: readonly Waiting[],
	maxRows: number,
): { answered: Answered[]; rows: number } {
	const session = line[0]?.command.session;
	const answered: Answered[] = [];
	let rows = 0;
	let refused = 0;
	for (const waiting of line) {
		if (waiting.command.session !== session || refused >= maxRefused) break;
		while (rows < maxRows) {
			const before = waiting.settled;
			const outcome = putSlice(core, waiting, maxRows - rows);
			rows += waiting.settled - before;
			if (outcome === null) continue;
			answered.push({ waiting, outcome });
			if (outcome.kind === 'acknowledged') refused += outcome.ack.rejects.length;
			break;
		}
		if (rows >= maxRows) break;
	}
	return { answered, rows };
}

/** Null: more of the batch is to be put. */
function putSlice(core: Core, waiting: Waiting, limit: number): ImportAck | null {
	const { command, count, settled: from } = waiting;
	const outcome = core.putImportSlice({ ...command, from, limit });
	if (outcome.kind !== 'acknowledged') return outcome;
	waiting.ack = waiting.ack === null ? outcome.ack : addAcks(waiting.ack, outcome.ack);
	waiting.settled = outcome.ack.position - command.batch.first;
	return waiting.settled >= count ? { kind: 'acknowledged', ack: waiting.ack } : null;
}

function addAcks(one: Ack<ImportCounts>, next: Ack<ImportCounts>): Ack<ImportCounts> {
	return {
		position: next.position,
		counts: addCounts(one.counts, next.counts),
		rejects: [...one.rejects, ...next.rejects],
	};
}
