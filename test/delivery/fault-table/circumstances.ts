/** Faults with copies, limits of a server, and reused connections. */
import type { Fault } from '../../support/smtp-fault.js';
import { after, at, becomes, breaks, dropped, type Row, row, says, saysAndLeaves } from './row.js';

const taken = becomes('sent', 'answer', '250 2.0.0 Taken');
const refusing = (address: string, fault: Fault): Row['script'] => ({
	on: (phase, line) => (phase === 'RCPT' && line.includes(`<${address}@`) ? fault : undefined),
});

export const copies: readonly Row[] = [
	row(
		'a refused copy',
		refusing('c', says('550 5.1.1 No such user')),
		becomes(
			'sent',
			'answer',
			'250 2.0.0 Taken [copies refused: c@example.net (rcpt: 550 5.1.1 No such user)]',
		),
		{ cc: ['c@example.net'] },
	),
	row(
		'550 5.1.1 after the dot of a mail with copies',
		at('dot', says('550 5.1.1 No such user')),
		becomes('failed', 'answer', '550 5.1.1 No such user'),
		{ cc: ['c@example.net'] },
	),
	row(
		'copies accepted and the recipient refused',
		refusing('a', says('550 5.1.1 No such user')),
		becomes('bounced', 'rcpt', '550 5.1.1 No such user'),
		{ cc: ['c@example.net'], bcc: ['b@example.net'] },
	),
];

export const limits: readonly Row[] = [
	row(
		'a SIZE smaller than the message',
		{ ehlo: ['SIZE 10'] },
		{
			kind: 'failed',
			phase: 'mail',
			code: null,
			enhanced: null,
			text: /bytes, and the server accepts 10/,
		},
	),
	row('SIZE without a limit', { ehlo: ['SIZE 0'] }, taken),
	row('a domain beyond ASCII', {}, taken, { to: 'a@bücher.example' }),
];

/** A reused connection that ends before the body leaves the message unsent, so it is sent on another connection. */
export const used: readonly Row[] = [
	row('421 after two messages', after(2, 'MAIL', saysAndLeaves('421 4.7.0 Enough')), taken, {
		before: 2,
	}),
	row('a drop after one message', after(1, 'MAIL', dropped), taken, { before: 1 }),
	row('a drop at DATA on a reused connection', after(1, 'DATA', dropped), taken, { before: 1 }),
	row(
		'a drop after the dot on a reused connection',
		after(1, 'dot', dropped),
		breaks('uncertain', 'answer', /closed|reset/i),
		{ before: 1 },
	),
	row('QUIT without an answer', at('QUIT', { hang: true }), taken, { before: 1 }),
	row(
		'RSET refused after a bounce',
		{
			on: (phase, line, { number }) =>
				phase === 'RCPT' && line.includes('<a@')
					? says('550 5.1.1 No such user')
					: phase === 'RSET' && number === 1
						? dropped
						: undefined,
		},
		becomes('bounced', 'rcpt', '550 5.1.1 No such user'),
		{ before: 1 },
	),
];
