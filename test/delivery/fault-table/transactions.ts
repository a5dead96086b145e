/** Faults from MAIL to the final dot. */
import type { FaultPhase } from '../../support/smtp-fault.js';
import {
	type Attempt,
	at,
	becomes,
	breaks,
	dropped,
	flood,
	garbage,
	halfClosed,
	type Row,
	row,
	says,
	saysAndLeaves,
	silent,
	slow,
} from './row.js';

const phases: Readonly<Partial<Record<FaultPhase, Attempt['phase']>>> = {
	MAIL: 'mail',
	RCPT: 'rcpt',
	DATA: 'data',
	dot: 'answer',
};

type Kind = Parameters<typeof becomes>[0];

export const mail: readonly Row[] = [
	...answered('MAIL', [
		['deferred', '450 Later'],
		['deferred', '550 5.7.1 Go away'],
		['deferred', '552 5.3.4 Too large'],
		['deferred', '554 No'],
	]),
	...unanswered('MAIL', 'deferred'),
];

export const rcpt: readonly Row[] = [
	...answered('RCPT', [
		['deferred', '450 Later'],
		['deferred', '450 4.2.0 Greylisted'],
		['deferred', '451 4.3.0 Trouble'],
		['deferred', '552 Too many recipients'],
		['bounced', '550 5.1.1 No such user'],
		['bounced', '550 User unknown'],
		['failed', '550 Mailbox unavailable'],
		['deferred', '550 5.7.1 Relaying denied'],
		['deferred', '554 5.7.1 Spam'],
	]),
	row(
		'550 5.1.1 over several lines',
		at('RCPT', says('550-5.1.1 No such\r\n550-5.1.1 user\r\n550 5.1.1 here')),
		becomes('bounced', 'rcpt', '550 5.1.1 No such user here'),
	),
	row(
		'251, forwarded',
		at('RCPT', says('251 2.1.5 Will forward')),
		becomes('sent', 'answer', '250 2.0.0 Taken'),
	),
	...unanswered('RCPT', 'deferred'),
];

export const data: readonly Row[] = [
	...answered('DATA', [
		['deferred', '451 4.3.0 Trouble'],
		['deferred', '452 4.3.1 Full'],
		['failed', '503 5.5.1 Out of order'],
		['deferred', '550 5.7.1 No'],
		['failed', '554 5.5.1 No'],
	]),
	row(
		'250 for DATA, so replies do not match commands',
		at('DATA', says('250 2.0.0 Ok')),
		becomes('deferred', 'data', '250 2.0.0 Ok'),
	),
	...unanswered('DATA', 'deferred'),
	row(
		'a drop in the middle of a body',
		at('body', dropped),
		breaks('deferred', 'body', /closed|reset|EPIPE/i),
		{ text: `${'x'.repeat(70)}\n`.repeat(60_000) },
	),
	row(
		'a drop after the body and the dot were sent',
		at('body', dropped),
		breaks('uncertain', 'answer', /closed|reset/i),
	),
];

export const dot: readonly Row[] = [
	...answered('dot', [
		['sent', '250 Queued'],
		['sent', '250 2.6.0 Queued as 42'],
		['deferred', '450 4.2.0 Later'],
		['deferred', '451 4.3.0 Trouble'],
		['deferred', '452 4.3.1 Full'],
		['failed', '550 No'],
		['bounced', '550 5.1.1 No such user'],
		['bounced', '550 User unknown'],
		['deferred', '554 Message rejected: Email address is not verified'],
		['failed', '552 5.3.4 Too large'],
		['uncounted', '554 5.7.1 Spam'],
	]),
	row(
		'250 over several lines after the dot',
		at('dot', says('250-2.0.0 Ok\r\n250 2.0.0 queued')),
		becomes('sent', 'answer', '250 2.0.0 Ok queued'),
	),
	...unanswered('dot', 'uncertain'),
];

function answered(where: FaultPhase, replies: readonly (readonly [Kind, string])[]): Row[] {
	const phase = phases[where] ?? 'answer';
	const rows = replies.map(([kind, reply]) => ({
		name: `${reply} at ${where}`,
		script: at(where, says(reply)),
		expected: becomes(kind, phase, reply),
	}));
	const reply = '421 4.3.2 Closing';
	return [
		...rows,
		row(`421 at ${where}`, at(where, saysAndLeaves(reply)), becomes('deferred', phase, reply)),
	];
}

/** Broken replies. Before the final dot the message was not sent; after it the outcome is uncertain. */
function unanswered(where: FaultPhase, kind: 'deferred' | 'uncertain'): Row[] {
	const phase = phases[where] ?? 'answer';
	const rows: [string, Row['script'], RegExp][] = [
		['silence', at(where, silent), /^no answer within/],
		['a byte at a time', at(where, slow), /^no answer within/],
		['a drop', at(where, dropped), /closed|reset/i],
		['half-closed', at(where, halfClosed), /closed|no answer/],
		['garbage', at(where, garbage), /hello there|closed/],
		['5 MB', at(where, flood), /too long/],
	];
	return rows.map(([what, script, text]) => ({
		name: `${what} at ${where}`,
		script,
		expected: breaks(kind, phase, text),
	}));
}
