import { describe, expect, it } from 'vitest';
import { readReport } from '../../../src/delivery/bounces/ingest.js';
import { informal, mail } from './build.js';

type Expected = readonly [
	address: string,
	action: string,
	status: string | null,
	code: number | null,
	hard: boolean,
];

function recipientsOf(bytes: Buffer): Expected[] {
	const report = readReport(bytes);
	if (report.kind !== 'bounce' && report.kind !== 'delivery_notice') return [];
	return report.recipients.map(
		(one) => [one.address, one.action, one.status, one.reply_code, one.hard] as const,
	);
}

const forms: readonly { name: string; body: string; expected: readonly Expected[] }[] = [
	{
		name: 'qmail, two recipients',
		body: `Hi. This is the qmail-send program at mx.example.net.
I'm afraid I wasn't able to deliver your message to the following addresses.

<ann@example.org>:
192.0.2.1 does not like recipient.
Remote host said: 550 5.1.1 <ann@example.org>... User Unknown
Giving up on 192.0.2.1.

<bob@example.org>:
192.0.2.1 does not like recipient.
Remote host said: 552 5.2.2 Mailbox Full

--- Below this line is a copy of the message.

Return-Path: <news@example.com>
To: zoe@example.org
`,
		expected: [
			['ann@example.org', 'failed', '5.1.1', 550, true],
			['bob@example.org', 'failed', '5.2.2', 552, false],
		],
	},
	{
		name: 'qmail, a code in brackets',
		body: `I'm afraid I wasn't able to deliver your message to the following addresses.

<ann@example.org>:
Sorry, no mailbox here by that name. (#5.1.1)
`,
		expected: [['ann@example.org', 'failed', '5.1.1', null, true]],
	},
	{
		name: 'Exim, wrapped',
		body: `A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  ann@example.org
    SMTP error from remote mail server after RCPT TO:<ann@example.org>:
    host in.example.org [192.0.2.1]: 550 <ann@example.org>:
    User unknown
  bob@example.org
    Unrouteable address

------ This is a copy of the message, including all the headers. ------

To: zoe@example.org
`,
		expected: [
			['ann@example.org', 'failed', null, 550, true],
			['bob@example.org', 'failed', null, null, true],
		],
	},
	{
		name: 'Postfix without a status part',
		body: `I'm sorry to have to inform you that the message returned
below could not be delivered to one or more destinations.

<ann@example.org>: host in.example.org[192.0.2.1] said: 550 5.7.1 Rejected
    by policy (in reply to RCPT TO command)
`,
		expected: [['ann@example.org', 'failed', '5.7.1', 550, false]],
	},
	{
		name: 'a gateway that quotes the SMTP dialogue',
		body: `Could not deliver. Each of the following recipients was rejected by a remote
mail server.

    Recipient: <ann@example.org>
    >>> RCPT TO:<ann@example.org>
    <<< 550 <ann@example.org>: User unknown
`,
		expected: [['ann@example.org', 'failed', null, 550, true]],
	},
	{
		name: 'a full mailbox, described in a sentence',
		body: 'Your mail\n     Could not be delivered to: <ann@example.org>\n     As their mailbox is full.\n',
		expected: [['ann@example.org', 'failed', null, null, false]],
	},
	{
		name: 'in Russian, without a code',
		body: 'Ваше письмо не может быть доставлено:\n\n  ann@example.org\n    нет такого пользователя\n',
		expected: [['ann@example.org', 'failed', null, null, true]],
	},
];

describe('a report in a proprietary form', () => {
	it.each(forms)('is read: $name', ({ body, expected }) => {
		expect(recipientsOf(informal(body))).toEqual(expected);
	});

	it('has only the recipients that X-Failed-Recipients names', () => {
		const body =
			'A message sent by\n\n  <news@lists.example.com>\n\ncould not be delivered:\n\n  ann@example.org\n    retry timeout exceeded\n';
		expect(recipientsOf(informal(body, ['X-Failed-Recipients: ann@example.org']))).toEqual([
			['ann@example.org', 'failed', null, null, false],
		]);
	});

	it('is classified by its text, even if the text is HTML or has a Japanese charset', () => {
		const html =
			'Delivery has failed to these recipients:<br>\r\n<p>&lt;ann@example.org&gt;:</p>\r\n<b>550 5.1.1</b> no such user';
		const header = ['From: postmaster@example.net', 'Content-Type: text/html; charset=utf-8'];
		expect(recipientsOf(mail(header, html))).toEqual([['ann@example.org', 'failed', '5.1.1', 550, true]]);
		const japanese = Buffer.concat([
			mail(['From: postmaster@example.net', 'Content-Type: text/plain; charset=iso-2022-jp'], ''),
			Buffer.from('\x1b$BAw?.$G$-$^$;$s$G$7$?\x1b(B\r\nann@example.org\r\n550 5.1.1 no\r\n', 'latin1'),
		]);
		expect(recipientsOf(japanese)).toEqual([['ann@example.org', 'failed', '5.1.1', 550, true]]);
	});

	it('gives the position of a recipient: the number and type of the part, and the line', () => {
		const report = readReport(informal('It was undeliverable.\n\n<ann@example.org>:\n550 5.1.1 no\n'));
		expect(report).toMatchObject({
			recipients: [{ place: { part: '1', type: 'text/plain', line: 7 }, diagnostic: '550 5.1.1 no' }],
		});
	});
});
