// Requests of `smoke`: which of them are repeated, and that no output shows the token.
import { describe, expect, it } from 'vitest';
import type { WireExchange, WireResponse } from '../../../src/api/api.js';
import { ApiError } from '../../../src/api/errors.js';
import { type Ask, createCaller } from '../../../src/cli/smoke/probe.js';

const noon = Date.parse('2026-11-21T12:00:00Z') * 1000;

function answer(status: number, headers: Record<string, string> = {}, body = '{}'): WireResponse {
	return { status, headers, body: new TextEncoder().encode(body), durationMs: 1 };
}

/** Gives these answers in order, then repeats the last one. */
function callerOf(answers: readonly (WireResponse | Error)[], retries = 3) {
	let asked = 0;
	const exchange: WireExchange = async () => {
		const given = answers[Math.min(asked, answers.length - 1)] ?? answer(500);
		asked += 1;
		if (given instanceof Error) throw given;
		return given;
	};
	const { signal } = new AbortController();
	const call = createCaller({ exchange, retries, signal, token: 'secret-token', clock: { now: () => noon } });
	return { call, asked: () => asked };
}

const get: Ask = { method: 'GET', path: '/sub/lists/' };
const post: Ask = { method: 'POST', path: '/sub/lists/', body: { name: 'x' } };
const cut = new ApiError('network', 'cut');

describe('a request of smoke', () => {
	it.each([
		['429', answer(429, { 'retry-after': '0' })],
		['429 without a time', answer(429)],
		['503 with Retry-After', answer(503, { 'retry-after': '0' })],
		['503 with a date', answer(503, { 'retry-after': 'Sat, 21 Nov 2026 12:00:00 GMT' })],
	])('is repeated after %s, even if it is a POST, because the service did not process it', async (_, busy) => {
		const { call, asked } = callerOf([busy, answer(201)]);
		expect({ status: (await call(post)).status, asked: asked() }).toEqual({ status: 201, asked: 2 });
	});

	it('is repeated at most as often as --retries allows, and returns the last answer', async () => {
		const { call, asked } = callerOf([answer(429, { 'retry-after': '0' })], 2);
		expect({ status: (await call(get)).status, asked: asked() }).toEqual({ status: 429, asked: 3 });
	});

	it('is not repeated if the service asks it to wait for an hour', async () => {
		const { call, asked } = callerOf([answer(503, { 'retry-after': '3600' })]);
		expect({ status: (await call(get)).status, asked: asked() }).toEqual({ status: 503, asked: 1 });
	});

	it.each([
		500, 502, 503,
	])('is not repeated after a %i, because a repetition would hide the status', async (status) => {
		const { call, asked } = callerOf([answer(status), answer(200)]);
		expect({ status: (await call(get)).status, asked: asked() }).toEqual({ status, asked: 1 });
	});

	it('is repeated after a lost connection only if it changes nothing', async () => {
		const reading = callerOf([cut, answer(200)]);
		const creating = callerOf([cut, answer(201)]);
		expect((await reading.call(get)).status).toBe(200);
		await expect(creating.call(post)).rejects.toBe(cut);
		expect([reading.asked(), creating.asked()]).toEqual([2, 1]);
	});

	it('returns the service’s answer with asterisks in place of the token', async () => {
		const { call } = callerOf([answer(400, {}, '{"detail": "bad secret-token"}')]);
		expect((await call(get)).text).toBe('{"detail": "bad ********"}');
	});

	it('fails at once if a signal arrives while it waits', async () => {
		const stop = new AbortController();
		const exchange: WireExchange = async () => {
			stop.abort(new Error('interrupted'));
			return answer(429, { 'retry-after': '30' });
		};
		const clock = { now: () => noon };
		const call = createCaller({ exchange, retries: 3, signal: stop.signal, token: null, clock });
		await expect(call(get)).rejects.toThrow('interrupted');
	});
});
