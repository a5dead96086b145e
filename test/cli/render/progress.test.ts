import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createProgress, withStatusLine } from '../../../src/cli/render/progress.js';

/** Returns a function that sets the clock to `seconds` after the start, and returns the line of progress. */
function started({ label = 'importing', total = null as number | null, before = 0 }) {
	let now = 5_000_000;
	const start = now;
	let written = '';
	const stderr = withStatusLine({
		isTTY: true,
		columns: 100,
		raw: new PassThrough(),
		write: async (text) => {
			written = String(text);
		},
	});
	const how = { label, total, before, quiet: false, elapsedMs: () => now, say: async () => undefined };
	const progress = createProgress(stderr, how);
	return (seconds: number, done: number, note?: string): string => {
		now = start + seconds * 1_000;
		progress.update(done, note);
		return written.replace('\r\x1b[K', '');
	};
}

describe('progress', () => {
	it('shows count, speed and remaining time', () => {
		const at = started({ total: 5_000 });
		expect(at(3, 1_200, '3 rejected')).toBe('importing 1,200 of 5,000 · 24% · 400/s · 10s left · 3 rejected');
		expect(started({ label: 'reading' })(0, 5)).toBe('reading 5');
	});

	it('computes the speed without the rows of an earlier run', () => {
		const staging = { label: 'staging', before: 62_000 };
		expect(started(staging)(1, 62_000)).toBe('staging 62,000');
		expect(started(staging)(1, 64_000)).toBe('staging 64,000 · 2,000/s');
		expect(started({ ...staging, total: 70_000 })(1, 64_000)).toBe(
			'staging 64,000 of 70,000 · 91% · 2,000/s · 3s left',
		);
	});

	it('shows no speed during the first second', () => {
		const at = started({ label: 'sending', total: 1_000_000 });
		expect(at(0.5, 2)).toBe('sending 2 of 1,000,000 · 0%');
		expect(at(1, 1_000)).toBe('sending 1,000 of 1,000,000 · 0% · 1,000/s · 16m39s left');
	});

	it('shows the average speed of the last half minute', () => {
		const at = started({ label: 'sending', total: 100_000 });
		for (let second = 1; second <= 60; second += 1) at(second, second);
		for (let second = 61; second <= 75; second += 1) at(second, 60 + (second - 60) * 1_000);
		expect(at(90, 30_060)).toBe('sending 30,060 of 100,000 · 30% · 1,000/s · 1m10s left');
		expect(at(180, 30_060)).toBe('sending 30,060 of 100,000 · 30%');
	});
});
