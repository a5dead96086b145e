import { expect, it } from 'vitest';
import { isTooSoon } from '../../src/engine/rules/outcomes.js';

const too_soon = 2_000_000;

it('an event is too soon if it happens before its message is sent, or shortly afterwards', () => {
	const sent = { state: 'sent', sent_at: 10_000_000 } as const;
	const times = [9_000_000, 10_000_000, 11_999_999, 12_000_000];
	expect(times.map((at) => isTooSoon(sent, { at, too_soon }))).toEqual([true, true, true, false]);
	expect(isTooSoon(sent, { at: 10_000_000 })).toBe(false);
});

it('an event of an unsent message is too soon only if the message is queued, leased or deferred', () => {
	const states = ['queued', 'leased', 'deferred', 'uncertain', 'bounced', 'failed'] as const;
	expect(states.map((state) => isTooSoon({ state, sent_at: null }, { at: 5, too_soon }))).toEqual([
		true,
		true,
		true,
		false,
		false,
		false,
	]);
});
