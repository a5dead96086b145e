import { describe, expect, it } from 'vitest';
import { classify, parseReply, type Verdict } from '../../src/delivery/reply.js';
import type { Conversation } from '../../src/delivery/smtp/conversation.js';
import type { SmtpPhase } from '../../src/engine/rules/outcomes.js';

const judge = (kind: Conversation['kind'], phase: SmtpPhase, raw: string) =>
	classify({ kind, reply: parseReply(phase, raw), refusedCopies: [] }).verdict;

describe('the table', () => {
	const cases: [Conversation['kind'], SmtpPhase, string, Verdict][] = [
		['accepted', 'answer', '250 2.0.0 Ok', 'sent'],
		['unsendable', 'mail', 'too large', 'failed'],
		['broken', 'connect', 'ECONNREFUSED', 'infrastructure'],
		['broken', 'tls', 'certificate has expired', 'infrastructure'],
		['broken', 'greeting', '', 'infrastructure'],
		['broken', 'ehlo', '', 'infrastructure'],
		['refused', 'greeting', '421 4.3.2 Busy', 'infrastructure'],
		['refused', 'auth', '535 5.7.8 Bad credentials', 'infrastructure'],
		['refused', 'auth', '454 4.7.0 Try later', 'infrastructure'],
		['refused', 'mail', '530 5.7.0 Authentication required', 'infrastructure'],
		['refused', 'mail', '550 5.7.8 Bad credentials', 'infrastructure'],
		['broken', 'mail', '', 'deferred'],
		['broken', 'rcpt', '', 'deferred'],
		['broken', 'data', '', 'deferred'],
		['broken', 'body', '', 'deferred'],
		['broken', 'answer', '', 'uncertain'],
		['refused', 'rcpt', '450 4.2.1 Busy', 'deferred'],
		['refused', 'rcpt', '450 5.1.1 the code goes before the enhanced code', 'deferred'],
		['refused', 'rcpt', '550 5.1.1 x', 'hard'],
		['refused', 'rcpt', '550 5.1.2 x', 'hard'],
		['refused', 'rcpt', '553 5.1.3 x', 'hard'],
		['refused', 'rcpt', '551 5.1.6 x', 'hard'],
		['refused', 'rcpt', '556 5.1.10 x', 'hard'],
		['refused', 'rcpt', '554 5.2.1 x', 'hard'],
		['refused', 'rcpt', '550 5.1.11 x', 'failed'],
		['refused', 'rcpt', '550 5.1.8 bad sender', 'failed'],
		['refused', 'rcpt', '550 5.2.2 full', 'failed'],
		['refused', 'rcpt', '550 5.7.1 user unknown to this relay', 'failed'],
		['refused', 'rcpt', '550 mailbox unavailable', 'failed'],
		['refused', 'rcpt', '550 blocked by policy', 'failed'],
		['refused', 'rcpt', '550 <a@b>: Recipient address rejected: User unknown in local table', 'hard'],
		['refused', 'rcpt', '550 No such user here', 'hard'],
		['refused', 'rcpt', '553 5.1.0 unknown user', 'hard'],
		['refused', 'rcpt', '551 User not local', 'failed'],
		['refused', 'rcpt', '554 No such user here', 'failed'],
		['refused', 'rcpt', '552 Too many recipients', 'deferred'],
		['refused', 'mail', '550 5.1.1 x', 'failed'],
		['refused', 'answer', '550 5.1.1 x', 'failed'],
		['refused', 'answer', '452 4.3.1 x', 'deferred'],
	];
	it.each(cases)('%s at %s, "%s": %s', (kind, phase, raw, verdict) => {
		expect(judge(kind, phase, raw)).toBe(verdict);
	});

	it('judges a megabyte of hostile text', () => {
		// Quadratic work on a megabyte would take longer than a test may: its time limit is the judge.
		expect(judge('refused', 'rcpt', `550 ${'user is '.repeat(125_000)}`)).toBe('failed');
	});
});

describe('a reply', () => {
	it('keeps its codes and one clean line of text', () => {
		expect(parseReply('rcpt', '550-5.1.1 No\u001b[31m such\r\n550 5.1.1 user\u202e!')).toEqual({
			phase: 'rcpt',
			code: 550,
			enhanced: '5.1.1',
			text: 'No [31m such user !',
		});
	});
	it('is at most 500 characters long', () => {
		expect(parseReply('rcpt', `550 ${'é'.repeat(5_000)}`).text).toHaveLength(500);
	});
	it('without a code is text', () => {
		expect(parseReply('answer', '25 nearly')).toEqual({
			phase: 'answer',
			code: null,
			enhanced: null,
			text: '25 nearly',
		});
	});
});
