import { describe, expect, it } from 'vitest';
import { readReport } from '../../../src/delivery/bounces/ingest.js';
import { dsn, informal, mail } from './build.js';

function named(bytes: Buffer): string[] {
	const report = readReport(bytes);
	if (report.kind !== 'bounce' && report.kind !== 'delivery_notice') return [report.kind];
	return report.recipients.map(({ address }) => address);
}

const namedBy = (body: string) => named(informal(body));

describe('a recipient of a report', () => {
	it.each([
		['by a label', 'Intended recipient: ann@example.org\n\nThe mail has been returned because of an error.'],
		['after an arrow', 'An error was detected while delivering.\n--> ann@example.org\n'],
		['before dots and a reason', 'Failed addresses follow:\n ann@example.org ... unknown host\n'],
		['in a sentence', 'Your message to ann@example.org could not be delivered.\n'],
		[
			'in a sentence that is wrapped',
			'The address to which your message was\naddressed, ann@example.org, did not exactly match an\naddress here.\n',
		],
		['alone on a line', 'Your mail could not be delivered to\nann@example.org\n'],
		[
			'in X.400',
			'It did not reach the following recipient(s):\n\nc=US;a= ;p=ORG;dda:SMTP=ann@example.org; on Fri, 4 Oct 2002\n    The recipient name is not recognized\n',
		],
		[
			'as the address that an alias expands to',
			'The following address(es) failed:\n\n  an undisclosed address\n    (generated from ann@example.org)\n',
		],
		[
			'in quotes',
			"Delivery failed:\n\n'ann@example.org' on 20 Jul 2001\n   The recipient name is not recognized\n",
		],
		['in French', "Votre message n'a pas pu être remis à\nann@example.org\n"],
		['in Spanish', 'Su mensaje no pudo ser entregado a ann@example.org porque el buzón no existe.\n'],
		['in German', 'Ihre Nachricht konnte nicht zugestellt werden:\n\nann@example.org: unbekannt\n'],
		['in Russian', 'Ваше сообщение не было доставлено: ann@example.org\n'],
		['in Japanese', '以下のメールは配信できませんでした。\n\nann@example.org\n宛先不明\n'],
		['in Chinese', '您的邮件被退回，无法投递：\n\nann@example.org\n'],
	])('is found in the text: %s', (_, body) => {
		expect(namedBy(body)).toEqual(['ann@example.org']);
	});

	it('keeps an unusual local part: a leading =, an apostrophe, quotes, X.400', () => {
		for (const address of [
			'=ann@example.org',
			"o'brien@example.org",
			'"ann(lee)"@example.org',
			'/G=Ann/S=Lee/O=Org/@example.org',
		]) {
			const status = `Final-Recipient: rfc822; ${address}\nAction: failed\nStatus: 5.1.1`;
			expect(named(dsn(status, { notice: '' }))).toEqual([address]);
			expect(namedBy(`It was undeliverable.\n\n<${address}>:\n550 5.1.1 unknown\n`)).toEqual([address]);
		}
	});

	it('is found on a line that names two recipients', () => {
		expect(namedBy('Delivery failed.\nRecipients: ann@example.org, bob@example.org\n')).toEqual([
			'ann@example.org',
			'bob@example.org',
		]);
	});

	it('is never a help address, the author, or an address in a quoted reply of a server', () => {
		const body = `Your message from news@example.com could not be delivered.

<ann@example.org>: host mx.example.org said: 550 5.1.1
    <inner@mx.example.org>: unknown (in reply to RCPT TO)

For questions please contact help@example.net or visit us.
`;
		expect(namedBy(body)).toEqual(['ann@example.org']);
	});

	it('counts as a soft bounce if the report contains only the local part of the address', () => {
		const bytes = mail(
			['From: Mail Delivery Subsystem <MAILER-DAEMON@example.org>', 'Subject: Mail Delivery Problem'],
			'550 5.1.1 Your mail to the following recipients could not be delivered:\n\nann\n',
		);
		expect(readReport(bytes)).toMatchObject({
			kind: 'bounce',
			recipients: [{ address: 'ann@example.org', hard: false }],
		});
	});

	it('counts as a soft bounce if only the returned message contains the address', () => {
		const returned = 'To: ann@example.org\nMessage-ID: <3@example.com>';
		const recipients = [
			{
				address: 'ann@example.org',
				hard: false,
				form: 'returned message',
				why: expect.stringContaining('noted'),
			},
		];
		expect(
			readReport(dsn('Final-Recipient: LOCAL; root\nAction: failed\nStatus: 5.1.1', { returned })),
		).toMatchObject({ recipients });
		const body =
			'550 5.1.1 It could not be delivered.\n\n--- Original message ---\n\nTo: ann@example.org\nMessage-ID: <3@example.com>\n';
		expect(readReport(informal(body))).toMatchObject({ recipients });
	});
});

describe('a report', () => {
	const body =
		'Your message could not be delivered to the following recipients:\n\n<ann@example.org>: 550 unknown\n';

	it.each([
		[
			'from a gateway',
			['From: AntiVirus_for_SMTP_Gateways@example.net', 'Subject: Delivery failure notification'],
		],
		[
			'from an unnamed Exchange server',
			['From: dsic.spi@example.net', 'Subject: RE: News : non remis (delivery failed)'],
		],
		['from an empty address', ['From: Postmaster <>', 'Subject: Undeliverable: News']],
		[
			'through a mailing list',
			[
				'From: Postmaster <postmaster@example.net>',
				'List-Id: <l.example.net>',
				'Precedence: bulk',
				'Subject: Undeliverable Mail',
			],
		],
		[
			'after a From line',
			['>From MAILER-DAEMON Fri Oct 4 10:00:00 2002', 'From: MAILER-DAEMON@example.net', 'Subject: x'],
		],
	])('is recognized if it arrives %s', (_, header) => {
		expect(named(mail(header, body))).toEqual(['ann@example.org']);
	});

	it('is a delivery notice if it reports a successful delivery', () => {
		const body =
			'Your message has been successfully relayed to the following recipients.\n\n   ann@example.org\n';
		const header = ['From: MAILER-DAEMON@example.net', 'Subject: Delivery Status Notification (Relay)'];
		expect(readReport(mail(header, body))).toMatchObject({
			kind: 'delivery_notice',
			recipients: [{ address: 'ann@example.org', action: 'delivered' }],
		});
	});

	it('is recognized after empty lines, or with CR as its line end', () => {
		const status = 'Final-Recipient: rfc822; ann@example.org\nAction: failed\nStatus: 5.1.1';
		const text = dsn(status).toString().replaceAll('\r\n', '\n');
		expect(named(Buffer.from(`\n\r\n\n${text}`))).toEqual(['ann@example.org']);
		expect(named(Buffer.from(text.replaceAll('\n', '\r')))).toEqual(['ann@example.org']);
	});

	it('yields its own recipient, but no recipient of a bounce that it quotes', () => {
		const inner = `From: MAILER-DAEMON@a.example\nSubject: failure notice\n\n<inner@example.org>:\n550 5.1.1 unknown\n`;
		expect(
			namedBy(
				`It was undeliverable.\n\n<ann@example.org>:\n552 full\n\n--- Below this line is a copy of the message.\n\n${inner}`,
			),
		).toEqual(['ann@example.org']);
	});

	it('is recognized inside a mail from a mail system, but not inside a mail from a person', () => {
		const inner = dsn('Final-Recipient: rfc822; ann@example.org\nAction: failed\nStatus: 5.1.1').toString();
		const wrap = (from: string) =>
			mail(
				[`From: ${from}`, 'Content-Type: multipart/mixed; boundary=w'],
				`--w\nContent-Type: message/rfc822\n\n${inner}\n--w--\n`,
			);
		expect(named(wrap('MAILER-DAEMON@mx.example.net'))).toEqual(['ann@example.org']);
		expect(named(wrap('Bob <bob@example.com>'))).toEqual(['not_a_report']);
	});

	it('can be a disposition notification about a rejected mail, but not about a deleted mail', () => {
		const disposition = (text: string) =>
			mail(
				[
					'From: Mail Delivery Subsystem <postmaster@example.org>',
					'Auto-Submitted: auto-replied (rejected)',
					'Content-Type: multipart/report; report-type=disposition-notification; boundary=d',
				],
				`--d\nContent-Type: text/plain\n\n${text}\n--d\nContent-Type: message/disposition-notification\n\nFinal-Recipient: rfc822; ann@example.org\nDisposition: automatic-action/MDN-sent-automatically; deleted\n--d--\n`,
			);
		expect(
			readReport(
				disposition('Your message to <ann@example.org> was automatically rejected:\nQuota exceeded'),
			),
		).toMatchObject({ kind: 'bounce', recipients: [{ address: 'ann@example.org', hard: false }] });
		expect(named(disposition('Your message was deleted without being read on Monday.'))).toEqual([
			'not_a_report',
		]);
	});

	it('is recognized in a mail from Amazon SNS, even if a line of its JSON is broken', () => {
		const bounce = {
			bounceType: 'Permanent',
			bouncedRecipients: [
				{
					emailAddress: 'ann@example.org',
					action: 'failed',
					status: '5.1.1',
					diagnosticCode: 'smtp; 550 5.1.1 user unknown',
				},
			],
		};
		const Message = JSON.stringify({
			notificationType: 'Bounce',
			bounce,
			mail: { source: 'news@example.com' },
		});
		const json = JSON.stringify({ Type: 'Notification', Message });
		const header = ['From: Bounces <no-reply@sns.amazonaws.com>', 'Subject: AWS Notification Message'];
		const footer = '\n\n--\nIf you wish to stop receiving notifications, visit the link below.\n';
		for (const text of [json, `${json.slice(0, 60)}!\n ${json.slice(60)}`])
			expect(readReport(mail(header, `${text}${footer}`))).toMatchObject({
				kind: 'bounce',
				recipients: [{ address: 'ann@example.org', hard: true }],
			});
		expect(named(mail(['From: Bob <bob@example.com>', 'Subject: Look'], `${json}${footer}`))).toEqual([
			'not_a_report',
		]);
	});

	it('is a complaint if it has the format of Outlook.com', () => {
		const bytes = mail(
			[
				'From: staff@hotmail.com',
				'Subject: complaint about message from 192.0.2.1',
				'Content-Type: multipart/mixed; boundary=o',
			],
			'--o\nContent-Type: message/rfc822\n\nX-HmXmrOriginalRecipient: ann@example.org\nReceived: from x\nMessage-ID: <9@example.com>\nTo: ann@example.org\n\nHello\n--o--\n',
		);
		expect(readReport(bytes)).toMatchObject({
			kind: 'complaint',
			recipients: ['ann@example.org'],
			returned: { message_id: '9@example.com' },
		});
	});
});

/** A report that a program forwards inside another mail. */
const quoted = `From: Mail Delivery Subsystem <MAILER-DAEMON@mx.example.net>
Subject: Returned mail: see transcript for details

   ----- The following addresses had permanent fatal errors -----
<ann@example.org>
    (reason: 550 5.1.1 <ann@example.org>... User unknown)
`;
const bob = 'From: Bob Miller <bob@example.com>';

const others: readonly (readonly [name: string, header: readonly string[], body: string])[] = [
	[
		'a question about a bounce',
		[bob, 'Subject: Delivery failed?'],
		'Hi,\n\nmy mail to ann@example.org could not be delivered:\n\n<ann@example.org>: 550 5.1.1 User unknown\n\nAny idea?\nBob\n',
	],
	[
		'a bounce forwarded inline',
		[bob, 'Subject: Fwd: Returned mail: see transcript for details'],
		`Look at this.\n\nBegin forwarded message:\n\n${quoted}`,
	],
	[
		'a bounce forwarded without a comment',
		[bob, 'Subject: Returned mail: see transcript for details', 'X-Mailer: Apple Mail (2.753.1)'],
		quoted,
	],
	[
		'an answer to a bounce',
		[bob, 'Subject: Re: Undelivered Mail Returned to Sender', 'In-Reply-To: <1@mx.example.net>'],
		`What is wrong?\n\n${quoted.replace(/^/gm, '> ')}`,
	],
	[
		'an answer from a postmaster',
		[
			'From: postmaster@example.net',
			'Subject: Re: Undelivered Mail',
			'In-Reply-To: <1@example.com>',
			'User-Agent: Mutt/1.5',
		],
		'Hello Bob,\n\nI have unblocked ann@example.org, mail to it was rejected.\n\nRegards\nTom\n',
	],
	[
		'a post to a mailing list',
		[
			bob,
			'Return-Path: <users-bounces@lists.example.net>',
			'List-Id: <users.lists.example.net>',
			'Precedence: list',
			'Subject: [users] Delivery failure',
		],
		`Your message could not be delivered?\n\nann@example.org: 550 5.1.1 User unknown\n`,
	],
	[
		'an out-of-office reply',
		['Return-Path: <>', 'From: Ann Lee <ann@example.org>', 'Subject: Re: News'],
		'I am away and could not reach my mail.\nWrite to bob@example.org, your mail will not be forwarded.\n',
	],
	[
		'a receipt',
		[
			'Return-Path: <>',
			'From: Ann Lee <ann@example.org>',
			'Subject: Read: News',
			'Content-Type: multipart/report; report-type=disposition-notification; boundary=r',
		],
		'--r\nContent-Type: text/plain\n\nYour message To: ann@example.org was read.\n--r\nContent-Type: message/disposition-notification\n\nFinal-Recipient: rfc822; ann@example.org\nDisposition: manual-action/MDN-sent-manually; displayed\n--r--\n',
	],
	[
		'a newsletter',
		[
			'Return-Path: <bounces@news.example.net>',
			'From: News <no-reply@news.example.net>',
			'Subject: Delivery problems in winter',
			'List-Unsubscribe: <mailto:u@news.example.net>',
		],
		'Parcels could not be delivered last week.\n\nYou get this as ann@example.org. If you cannot read it, unsubscribe: u@news.example.net\n',
	],
	[
		'a shop',
		['From: Orders <service@shop.example.net>', 'Subject: Your order could not be delivered'],
		'Dear Ann,\n\nyour parcel was returned to sender. We write to ann@example.org.\n\nYour account: ann@example.org\n',
	],
	[
		'a list’s rejection of a post',
		['From: users-bounces@lists.example.net', 'Subject: Request to mailing list Users rejected'],
		'Your request to the Users mailing list has been rejected by the moderator:\n"Not on topic"\n\nAny questions should be directed to the list administrator at:\n\n    users-owner@lists.example.net\n',
	],
	[
		'a report on DMARC',
		[
			'From: noreply-dmarc@example.net',
			'Subject: Report domain: example.com',
			'Content-Type: multipart/mixed; boundary=m',
		],
		'--m\nContent-Type: text/plain\n\nThis is an aggregate report. Contact dmarc@example.net.\n--m--\n',
	],
];

describe('a mail that resembles a bounce', () => {
	it.each(others)('is not a report: %s', (_, header, body) => {
		expect(['not_a_report', 'auto_reply']).toContain(readReport(mail(header, body)).kind);
	});

	it('is not a report if a person forwards a bounce in it', () => {
		const [, parts] = dsn('Final-Recipient: rfc822; ann@example.org\nAction: failed\nStatus: 5.1.1')
			.toString()
			.split('\r\n\r\n--b 1');
		const header = [bob, 'Subject: Fwd: Returned mail', 'Content-Type: multipart/mixed; boundary="b 1"'];
		expect(named(mail(header, `--b 1${parts ?? ''}`))).toEqual(['not_a_report']);
	});
});
