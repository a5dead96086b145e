/** Copies, what a server cannot take, and connections that were used before. */
import type { Fault } from '../../support/smtp-fault.js';
import { after, at, becomes, breaks, dropped, type Row, says, saysAndLeaves } from './row.js';

const taken = becomes('sent', 'answer', '250 2.0.0 Taken');
const refusing = (address: string, fault: Fault): Row['script'] => ({
	on: (phase, line) => (phase === 'RCPT' && line.includes(`<${address}@`) ? fault : undefined),
});

export const copies: readonly Row[] = [
	{
		name: 'a copy that is refused',
		script: refusing('c', says('550 5.1.1 No such user')),
		cc: ['c@example.net'],
		expected: becomes(
			'sent',
			'answer',
			'250 2.0.0 Taken [copies refused: c@example.net (rcpt: 550 5.1.1 No such user)]',
		),
	},
	{
		name: '550 5.1.1 at dot, of a mail with copies',
		script: at('dot', says('550 5.1.1 No such user')),
		cc: ['c@example.net'],
		expected: becomes('failed', 'answer', '550 5.1.1 No such user'),
	},
	{
		name: 'copies that are taken where the recipient is not',
		script: refusing('a', says('550 5.1.1 No such user')),
		cc: ['c@example.net'],
		bcc: ['b@example.net'],
		expected: becomes('bounced', 'rcpt', '550 5.1.1 No such user'),
	},
];

export const limits: readonly Row[] = [
	{
		name: 'SIZE that is too small',
		script: { ehlo: ['SIZE 10'] },
		expected: {
			kind: 'failed',
			phase: 'mail',
			code: null,
			enhanced: null,
			text: /bytes, the server takes 10/,
		},
	},
	{ name: 'SIZE without a limit', script: { ehlo: ['SIZE 0'] }, expected: taken },
	{ name: 'a domain beyond ASCII', script: {}, to: 'a@bücher.example', expected: taken },
];

/** A used connection that ends before the body says nothing about the message: it goes out on another one. */
export const used: readonly Row[] = [
	{
		name: '421 after so many messages',
		script: after(2, 'MAIL', saysAndLeaves('421 4.7.0 Enough')),
		before: 2,
		expected: taken,
	},
	{ name: 'a drop after so many messages', script: after(1, 'MAIL', dropped), before: 1, expected: taken },
	{ name: 'a drop at DATA after a message', script: after(1, 'DATA', dropped), before: 1, expected: taken },
	{
		name: 'a drop behind the dot after a message',
		script: after(1, 'dot', dropped),
		before: 1,
		expected: breaks('uncertain', 'answer', /closed|reset/i),
	},
	{ name: 'QUIT without an answer', script: at('QUIT', { hang: true }), before: 1, expected: taken },
	{
		name: 'RSET refused after a bounce',
		script: {
			on: (phase, line, { number }) =>
				phase === 'RCPT' && line.includes('<a@')
					? says('550 5.1.1 No such user')
					: phase === 'RSET' && number === 1
						? dropped
						: undefined,
		},
		before: 1,
		expected: becomes('bounced', 'rcpt', '550 5.1.1 No such user'),
	},
];
