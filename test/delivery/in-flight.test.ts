import { describe, expect, it } from 'vitest';
import { InFlight } from '../../src/delivery/leases.js';

function started() {
	let now = 0;
	const window = new InFlight(2, () => now);
	const begun: ReturnType<typeof window.enter>[] = [];
	const fill = (isTimed = false) => {
		while (window.isFree(0, isTimed)) {
			const slot = window.enter();
			slot.hold(1_000);
			begun.push(slot);
		}
		return window.inFlight;
	};
	const pass = (ms: number) => {
		now += ms;
	};
	return { window, fill, pass, leave: () => begun.shift()?.leave() };
}

/** Answers `count` messages, each after `ms`. */
function answer({ fill, pass, leave }: ReturnType<typeof started>, count: number, ms: number): void {
	for (let n = 0; n < count; n += 1) {
		fill();
		pass(ms);
		leave();
	}
}

describe('messages in flight', () => {
	it('are three per connection at first, and twenty per connection once answers are fast', () => {
		const flow = started();
		expect(flow.fill()).toBe(6);
		answer(flow, 6, 0);
		expect(flow.fill()).toBe(40);
	});

	it('are as many as the server can answer in 20 ms, but at least three per connection', () => {
		const flow = started();
		answer(flow, 6, 1);
		expect(flow.fill()).toBe(20);
		answer(flow, 30, 100);
		for (let n = 0; n < 40; n += 1) flow.leave();
		expect(flow.fill()).toBe(6);
	});

	it('are three per connection near the end of a sending window', () => {
		const flow = started();
		answer(flow, 6, 0);
		for (let n = 0; n < 6; n += 1) flow.leave();
		expect(flow.fill(true)).toBe(6);
		expect(flow.fill()).toBe(40);
	});

	it('and unrecorded outcomes number at most 102 in total, for two connections', () => {
		const flow = started();
		answer(flow, 6, 0);
		expect(flow.window.isFree(96)).toBe(true);
		expect(flow.window.isFree(97)).toBe(false);
		expect(flow.window.isFree(102)).toBe(false);
	});

	it('have an expected total size of at most 16 MiB, unless there is only one', () => {
		const { window } = started();
		const first = window.enter();
		expect(window.isFree(0)).toBe(false);
		first.hold(10 * 1024 * 1024);
		expect(window.isFree(0)).toBe(false);
		first.leave();
		expect(window.isFree(0)).toBe(true);
	});
});
