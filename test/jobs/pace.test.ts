import { expect, it } from 'vitest';
import { ApiError } from '../../src/api/errors.js';
import { inOrder, Pace, type PaceOptions } from '../../src/jobs/pace.js';
import { refuses } from '../support/refuses.js';

const throttled = (retryAfterMs?: number) =>
	new ApiError('throttled', 'slow down', retryAfterMs === undefined ? {} : { retryAfterMs });
const busy = (status: number) =>
	new ApiError(status === 503 ? 'unavailable' : 'server_error', 'busy', {
		http: { status, method: 'POST', path: '/' },
	});

function start(answer: (call: number) => void, more: Partial<PaceOptions> = {}) {
	const pauses: number[] = [];
	const widths: number[] = [];
	let running = 0;
	let calls = 0;
	const pace = new Pace({
		sleep: async (ms) => {
			pauses.push(ms);
			await turn();
		},
		...more,
	});
	const request = async () => {
		running += 1;
		widths.push(running);
		await turn();
		running -= 1;
		calls += 1;
		answer(calls);
	};
	return { pace, pauses, widths, request };
}

const turn = () => new Promise((done) => setImmediate(done));
const widest = (widths: readonly number[]) => Math.max(...widths);

it('a single throttled request waits without delaying others', async () => {
	const { pace, pauses, widths, request } = start((call) => {
		if (call === 20) throw throttled(3_000);
	});
	await inOrder(100, 8, () => pace.write(request));
	expect(pauses).toEqual([3_000]);
	expect(widest(widths.slice(28, 60))).toBeGreaterThan(6);
});

it('the client waits before every request if the service throttles most of them', async () => {
	const told: number[] = [];
	const refuse = (call: number) => {
		if (call >= 20 && call < 28) throw throttled(3_000);
	};
	const { pace, widths, request } = start(refuse, { onPause: ({ ms }) => told.push(ms) });
	await inOrder(100, 8, () => pace.write(request));
	expect(widths).toHaveLength(108);
	expect(told).toEqual([3_000]);
});

it('the client waits at most five minutes per Retry-After, and waits even if Retry-After is 0', async () => {
	const absurd = start(() => {
		throw throttled(86_400_000);
	});
	await refuses(absurd.pace.write(absurd.request), 'throttled');
	expect(absurd.pauses).toEqual([300_000, 300_000, 300_000]);
	const hasty = start((call) => {
		if (call < 4) throw throttled(0);
	});
	await hasty.pace.write(hasty.request);
	expect(hasty.pauses).toEqual([250, 500, 1_000]);
});

it.each([
	502, 503, 504,
])('after a %i without Retry-After, the client repeats a read, but not a write', async (status) => {
	const { pace, pauses, request } = start((call) => {
		if (call === 1) throw busy(status);
	});
	await pace.read(request);
	expect(pauses).toEqual([250]);
	const writing = start((call) => {
		if (call === 1) throw busy(status);
	});
	await expect(writing.pace.write(writing.request)).rejects.toMatchObject({ message: 'busy' });
});

it('the client sends rows at the given rate, and does not go faster after a slow row', async () => {
	let now = 0;
	const waits: number[] = [];
	const pace = new Pace({ rowsPerSecond: 10, nowMs: () => now, sleep: async (ms) => void waits.push(ms) });
	await pace.row();
	await pace.row();
	now = 5_000;
	await pace.row();
	await pace.row();
	expect(waits).toEqual([100, 100]);
});

it('a paused write rejects as soon as its signal aborts, with the signal’s reason', async () => {
	const stop = new AbortController();
	const pace = new Pace({ signal: stop.signal, onPause: () => stop.abort(new Error('Ctrl-C')) });
	const request = () => Promise.reject(throttled(60_000));
	await expect(pace.write(request)).rejects.toThrow('Ctrl-C');
});
