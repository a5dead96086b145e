import { describe, expect, it } from 'vitest';
import type { AcceptCounts, Recipient } from '../../src/api/campaigns.js';
import type { Ack } from '../../src/api/capabilities.js';
import { maxRowsBytes, stageRows } from '../../src/jobs/campaigns.js';

function fakeSink(position = 0, onPut: (first: number) => void = () => {}) {
	const batches: { first: number; count: number; bytes: number }[] = [];
	const kept: string[] = [];
	let completeAt: number | null = null;
	return {
		batches,
		kept,
		completeAt: () => completeAt,
		put: async (first: number, rows: readonly Recipient[]): Promise<Ack<AcceptCounts>> => {
			expect(first).toBe(position + kept.length);
			batches.push({ first, count: rows.length, bytes: Buffer.byteLength(JSON.stringify(rows)) });
			kept.push(...rows.map(({ to }) => to));
			onPut(first);
			return {
				position: first + rows.length,
				counts: { staged: rows.length, suppressed: 0, rejected: 0 },
				rejects: [],
			};
		},
		complete: async (at: number) => {
			completeAt = at;
		},
	};
}

async function* people(count: number, onRow: (row: number) => void = () => {}): AsyncGenerator<Recipient> {
	for (let row = 0; row < count; row += 1) {
		onRow(row);
		yield { to: `r${row}`, line: row + 2 };
	}
}

describe('staging rows of a source', () => {
	it('sends batches and reports the end', async () => {
		const sink = fakeSink();
		const seen: number[] = [];
		await stageRows({
			session: { id: 'm', position: 0 },
			rows: people(5),
			sink,
			batchRows: 2,
			onProgress: (position) => seen.push(position),
		});
		expect(sink.batches.map(({ first, count }) => [first, count])).toEqual([
			[0, 2],
			[2, 2],
			[4, 1],
		]);
		expect([seen, sink.completeAt()]).toEqual([[0, 2, 4, 5], 5]);
	});

	it('continues after acknowledged rows, and only reports the end after the last', async () => {
		const sink = fakeSink(3);
		await stageRows({ session: { id: 'm', position: 3 }, rows: people(5), sink });
		expect([sink.kept, sink.completeAt()]).toEqual([['r3', 'r4'], 5]);
		const again = fakeSink(5);
		await stageRows({ session: { id: 'm', position: 5 }, rows: people(5), sink: again });
		expect([again.kept, again.completeAt()]).toEqual([[], 5]);
	});

	it('limits a batch to 4 MiB, and memory to one batch', async () => {
		let read = 0;
		let put = 0;
		let most = 0;
		const sink = fakeSink(0, () => {
			put = sink.kept.length;
		});
		async function* large(): AsyncGenerator<Recipient> {
			for (; read < 24; read += 1) {
				most = Math.max(most, read - put);
				yield { to: `r${read}`, context: { text: 'ü'.repeat(250_000) } };
			}
		}
		await stageRows({ session: { id: 'm', position: 0 }, rows: large(), sink });
		expect(sink.kept).toHaveLength(24);
		expect(Math.max(...sink.batches.map(({ bytes }) => bytes))).toBeLessThanOrEqual(maxRowsBytes);
		expect(most).toBeLessThanOrEqual(9);
	});

	it('stops after the current batch when interrupted', async () => {
		const interrupts = new AbortController();
		const reason = new Error('interrupted');
		const sink = fakeSink(0, () => interrupts.abort(reason));
		const job = { session: { id: 'm', position: 0 }, rows: people(9), sink, batchRows: 2 };
		await expect(stageRows({ ...job, signal: interrupts.signal })).rejects.toBe(reason);
		expect([sink.kept, sink.completeAt()]).toEqual([['r0', 'r1'], null]);
	});
});
