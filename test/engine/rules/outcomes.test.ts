import { expect, it } from 'vitest';
import { readReplyLine, replyLine } from '../../../src/engine/rules/outcomes.js';

it.each([
	{ code: 250, enhanced: '2.0.0', text: 'Ok: queued as 4XyZ' },
	{ code: 250, enhanced: null, text: 'Ok\nand more' },
	{ code: 250, enhanced: '2.1.10', text: '' },
	{ code: 250, enhanced: null, text: '' },
	{ code: null, enhanced: null, text: '' },
	{ code: null, enhanced: null, text: 'handed over' },
])('an attempt in one line keeps the reply %o', (reply) => {
	const whole = { phase: 'answer', ...reply } as const;
	expect(readReplyLine(replyLine(whole))).toEqual(whole);
});
