import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findingsOf, readReplyLine, replyLine } from '../../../src/engine/rules/outcomes.js';

it.each([
	{ code: 250, enhanced: '2.0.0', text: 'Ok: queued as 4XyZ' },
	{ code: 250, enhanced: null, text: 'Ok\nand more' },
	{ code: 250, enhanced: '2.1.10', text: '' },
	{ code: 250, enhanced: null, text: '' },
	{ code: null, enhanced: null, text: '' },
	{ code: null, enhanced: null, text: 'handed over' },
])('a reply stored on one line is restored unchanged: %o', (reply) => {
	const whole = { phase: 'answer', ...reply } as const;
	expect(readReplyLine(replyLine(whole))).toEqual(whole);
});

const address = fc.constantFrom<string[]>(
	'ann@a.test',
	'bob@b.test',
	'cid@c.test',
	'eve@e.test',
	'victim@v.test',
);
const reported = fc.record({
	addresses: fc.array(address, { minLength: 1, maxLength: 2 }),
	hard: fc.boolean(),
	smtp_code: fc.constant(null),
	diagnostic: fc.constant(null),
});
const report = fc.record({
	kind: fc.constantFrom('bounce' as const, 'complaint' as const),
	matched: fc.constantFrom('return_path' as const, 'message_id' as const),
	recipients: fc.array(reported, { maxLength: 4 }),
});
const copies = fc.uniqueArray(
	address.filter((one) => one !== 'ann@a.test'),
	{ maxLength: 2 },
);

describe('outcomes of a bounce report', () => {
	it('concern only recipients of the message', () => {
		fc.assert(
			fc.property(report, copies, (said, others) => {
				const found = findingsOf({ to: 'ann@a.test', copies: others }, said);
				const sentTo = new Set(['ann@a.test', ...others]);
				expect(found.filter((finding) => !sentTo.has(finding.address))).toEqual([]);
				expect(new Set(found.map((finding) => finding.address)).size).toBe(found.length);
				expect(found.every((finding) => finding.isTo === (finding.address === 'ann@a.test'))).toBe(true);
			}),
		);
	});

	it('are hard only if every entry about the recipient is hard', () => {
		fc.assert(
			fc.property(report, copies, (said, others) => {
				const found = findingsOf({ to: 'ann@a.test', copies: others }, said);
				for (const finding of found.filter(({ hard }) => hard)) {
					const named = said.recipients.filter(({ addresses }) => addresses.includes(finding.address));
					const counting = named.length > 0 ? named : said.recipients;
					expect(counting.every(({ hard }) => hard)).toBe(true);
				}
			}),
		);
	});

	it('are hard only if the report names the recipient', () => {
		fc.assert(
			fc.property(report, copies, (said, others) => {
				const found = findingsOf({ to: 'ann@a.test', copies: others }, said);
				for (const { address } of found.filter(({ hard }) => hard))
					expect(said.recipients.some(({ addresses }) => addresses.includes(address))).toBe(true);
			}),
		);
	});
});
