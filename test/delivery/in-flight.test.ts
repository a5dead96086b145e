// How many messages may be under way at once.
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

/** So many are answered, each after this time. */
function answer({ fill, pass, leave }: ReturnType<typeof started>, count: number, ms: number): void {
	for (let n = 0; n < count; n += 1) {
		fill();
		pass(ms);
		leave();
	}
}

describe('messages under way', () => {
	it('are three a connection at first, and twenty with fast answers', () => {
		const flow = started();
		expect(flow.fill()).toBe(6);
		answer(flow, 6, 0);
		expect(flow.fill()).toBe(40);
	});

	it('are as many as are answered in twenty milliseconds', () => {
		const flow = started();
		answer(flow, 6, 1);
		expect(flow.fill()).toBe(20);
		answer(flow, 30, 100);
		for (let n = 0; n < 40; n += 1) flow.leave();
		expect(flow.fill()).toBe(6);
	});

	it('are three a connection near the end of a window', () => {
		const flow = started();
		answer(flow, 6, 0);
		for (let n = 0; n < 6; n += 1) flow.leave();
		expect(flow.fill(true)).toBe(6);
		expect(flow.fill()).toBe(40);
	});

	it('stay below what a crash may repeat, including unrecorded outcomes', () => {
		const flow = started();
		answer(flow, 6, 0);
		expect(flow.window.isFree(96)).toBe(true);
		expect(flow.window.isFree(97)).toBe(false);
		expect(flow.window.isFree(102)).toBe(false);
	});

	it('have at most 16 MiB, and are one while sizes are unknown', () => {
		const { window } = started();
		const first = window.enter();
		expect(window.isFree(0)).toBe(false);
		first.hold(10 * 1024 * 1024);
		expect(window.isFree(0)).toBe(false);
		first.leave();
		expect(window.isFree(0)).toBe(true);
	});
});
