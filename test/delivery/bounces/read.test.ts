import { describe, expect, it } from 'vitest';
import { readReport } from '../../../src/delivery/bounces/ingest.js';
import type { DeliveryReport } from '../../../src/delivery/bounces/report.js';
import { dsn, informal, mail } from './build.js';

function delivery(bytes: Buffer): DeliveryReport {
	const report = readReport(bytes);
	if (report.kind !== 'bounce' && report.kind !== 'delivery_notice') throw new Error(report.kind);
	return report;
}

function short(bytes: Buffer): (string | number | boolean | null)[][] {
	return delivery(bytes).recipients.map((one) => [
		one.address,
		one.action,
		one.status,
		one.reply_code,
		one.hard,
	]);
}

const entry = (...lines: string[]) =>
	['Reporting-MTA: dns; mx.example.net', '', 'Final-Recipient: rfc822; ann@example.org', ...lines].join('\n');

describe('a delivery status (RFC 3464)', () => {
	it('is parsed into its servers, envelope id, recipients and returned message', () => {
		const status = [
			'Reporting-MTA: dns; mx.example.net',
			'Original-Envelope-Id: job+3D7',
			'',
			'Original-Recipient: rfc822;ann+2Bnews@example.com',
			'Final-Recipient: RFC822; <ann@example.org>',
			'Action: failed',
			'Status: 5.1.1 (bad destination mailbox)',
			'Remote-MTA: dns; in.example.org',
			'Diagnostic-Code: smtp; 550 5.1.1 No such',
			'    user here',
		].join('\n');
		const returned =
			'Message-ID: <7@example.com>\nTo: Ann <ann+news@example.com>\nX-Job: november\nSubject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=';
		expect(readReport(dsn(status, { returned }))).toEqual({
			kind: 'bounce',
			reporting_mta: 'mx.example.net',
			envelope_id: 'job=7',
			recipients: [
				{
					address: 'ann@example.org',
					original_address: 'ann+news@example.com',
					action: 'failed',
					status: '5.1.1',
					reply_code: 550,
					diagnostic: '550 5.1.1 No such user here',
					remote_mta: 'in.example.org',
					hard: true,
					why: 'an address code',
					form: 'RFC 3464',
					place: { part: '1.2', type: 'message/delivery-status', line: 14 },
				},
			],
			returned: {
				message_id: '7@example.com',
				subject: 'Grüße',
				to: ['ann+news@example.com'],
				x_headers: { 'x-job': 'november' },
				place: { part: '1.3', type: 'text/rfc822-headers', line: 24 },
			},
		});
	});

	it.each([
		['an address code', ['Action: failed', 'Status: 5.1.1'], 'failed', true],
		[
			'a full mailbox',
			['Action: failed', 'Status: 5.2.2', 'Diagnostic-Code: smtp; 552 5.2.2 full'],
			'failed',
			false,
		],
		[
			'a reply whose codes differ from the status field',
			['Action: failed', 'Status: 5.1.1', 'Diagnostic-Code: smtp; 552 5.2.2 Over quota'],
			'failed',
			false,
		],
		[
			'status 5.0.0 with a specific reply',
			['Action: failed', 'Status: 5.0.0', 'Diagnostic-Code: smtp; 550 5.1.1 unknown'],
			'failed',
			true,
		],
		[
			'a policy reply without an enhanced code',
			['Action: failed', 'Status: 5.0.0', 'Diagnostic-Code: smtp; 550 User unknown, or blocked by policy'],
			'failed',
			false,
		],
		[
			'a failed login',
			['Action: failed', 'Status: 5.7.8', 'Diagnostic-Code: smtp; 535 5.7.8 no'],
			'failed',
			false,
		],
		['a delay', ['Action: delayed', 'Status: 4.4.1'], 'delayed', false],
		['a receipt', ['Action: delivered', 'Status: 2.1.5'], 'delivered', false],
		['a failure status without an action', ['Status: 5.1.2'], 'failed', true],
		['an unknown action', ['Action: kaputt', 'Status: 5.3.0'], 'failed', false],
	])('is classified: %s', (_, lines, action, hard) => {
		const report = delivery(dsn(entry(...lines)));
		expect(report.kind).toBe(action === 'failed' ? 'bounce' : 'delivery_notice');
		expect(report.recipients.map((one) => [one.action, one.hard])).toEqual([[action, hard]]);
	});

	it('with a vague code is classified by the words of the server’s reply', () => {
		const status = entry('Action: failed', 'Status: 5.0.0', 'Diagnostic-Code: smtp; 550 User unknown');
		const notice =
			'<ann@example.org>: host in.example.org said: 550 User unknown (in reply to RCPT TO command)';
		const expected = [['ann@example.org', 'failed', '5.0.0', 550, true]];
		expect(short(dsn(status, { notice }))).toEqual(expected);
		expect(short(dsn(status))).toEqual(expected);
	});

	it('about a refused sender or content is a soft bounce that does not count against the address', () => {
		for (const said of [
			'550 5.7.1 Rejected as spam',
			'550 5.7.26 Unauthenticated email',
			'554 Relay access denied',
			'550 Unbekannter Absender',
		]) {
			const status = entry('Action: failed', 'Status: 5.0.0', `Diagnostic-Code: smtp; ${said}`);
			const report = readReport(dsn(status));
			expect(report).toMatchObject({ kind: 'bounce', recipients: [{ hard: false, uncounted: true }] });
		}
	});

	it('may contain UTF-8 addresses (RFC 6533) and local names, and needs no blank lines between recipients', () => {
		const status = [
			'Reporting-MTA: dns; mx.example.net',
			'Final-Recipient: utf-8; \\x{E9}ric@example.org',
			'Action: failed',
			'Status: 5.1.1',
			'Original-Recipient: rfc822; root@example.org',
			'Final-Recipient: LOCAL; root',
			'Action: failed',
			'Status: 5.2.1',
			'Final-Recipient: rfc822; zoe@example.org',
			'Action: delayed',
			'Status: 4.2.2',
		].join('\n');
		expect(short(dsn(status))).toEqual([
			['éric@example.org', 'failed', '5.1.1', null, true],
			['root@example.org', 'failed', '5.2.1', null, true],
			['zoe@example.org', 'delayed', '4.2.2', null, false],
		]);
	});

	it('may be plain text in a mail without parts, but only in a mail from a mail system', () => {
		const body = `Sorry.\n\n${entry('Action: failed', 'Status: 5.1.1')}\n\nReturn-Path: <news@example.com>\nMessage-ID: <1@example.com>\n`;
		const report = delivery(informal(body));
		expect(report.recipients.map(({ address, hard }) => [address, hard])).toEqual([
			['ann@example.org', true],
		]);
		expect(report.returned?.message_id).toBe('1@example.com');
		expect(readReport(mail(['From: Bob <bob@example.com>'], body)).kind).toBe('not_a_report');
	});
});

describe('a feedback report (RFC 5965)', () => {
	const feedback = (fields: string, returned = '') =>
		mail(
			['From: fbl@example.net', 'Content-Type: multipart/report; boundary=x'],
			`--x\nContent-Type: text/plain\n\nHello\n--x\nContent-Type: message/feedback-report\n\n${fields}\n--x\nContent-Type: message/rfc822\n\n${returned}\n--x--\n`,
		);

	it.each([
		['abuse', 'complaint'],
		['fraud', 'complaint'],
		['opt-out', 'complaint'],
		['not-spam', 'feedback'],
		['auth-failure', 'feedback'],
		['new-kind', 'feedback'],
	])('of type %s is read as %s', (type, kind) => {
		const bytes = feedback(`Feedback-Type: ${type}\nOriginal-Rcpt-To: <ann@example.org>`);
		expect(readReport(bytes)).toMatchObject({
			kind,
			feedback_type: type.toLowerCase(),
			recipients: ['ann@example.org'],
		});
	});

	it('is a complaint, even beside a delivery status', () => {
		const status = entry('Action: failed', 'Status: 5.1.1');
		for (const from of ['fbl@example.net', 'MAILER-DAEMON@example.net']) {
			const bytes = mail(
				[`From: ${from}`, 'Content-Type: multipart/report; report-type=feedback-report; boundary=x'],
				`--x\nContent-Type: text/plain\n\n${status}\n--x\nContent-Type: message/delivery-status\n\n${status}\n--x\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\nOriginal-Rcpt-To: <ann@example.org>\n--x--\n`,
			);
			expect(readReport(bytes)).toMatchObject({ kind: 'complaint', recipients: ['ann@example.org'] });
		}
	});

	it('without a recipient uses the To field of the returned message', () => {
		const bytes = feedback('Feedback-Type: abuse', 'To: Ann <ann@example.org>\nMessage-ID: <9@example.com>');
		expect(readReport(bytes)).toMatchObject({
			recipients: ['ann@example.org'],
			returned: { message_id: '9@example.com' },
		});
		expect(readReport(feedback('Feedback-Type: abuse', 'To: undisclosed-recipients:;'))).toMatchObject({
			recipients: [],
		});
	});
});

describe('an automatic reply (RFC 3834)', () => {
	it.each([
		['Auto-Submitted: auto-replied'],
		['Subject: Automatic reply: News'],
		['Subject: =?utf-8?Q?R=C3=A9ponse_automatique_?= : News'],
		['Subject: Out of Office: News'],
		['Precedence: auto_reply'],
		['X-Autoreply: yes'],
	])('is recognized by %s', (header) => {
		const bytes = mail(
			['Return-Path: <>', 'From: Ann <ann@example.org>', header],
			'I could not be delivered from work.',
		);
		expect(readReport(bytes).kind).toBe('auto_reply');
	});

	it('is a bounce if a mail system sent it and its text reports a failed delivery', () => {
		const body =
			'A message that you sent could not be delivered to one or more of its\nrecipients.\n\n  ann@example.org\n    host in.example.org: 550 5.1.1 no\n';
		expect(readReport(informal(body, ['Auto-Submitted: auto-replied'])).kind).toBe('bounce');
	});
});

const openSmtpd = (told: string, status: string) => {
	const notice = `    A message is delayed for more than 0 seconds for the following
    list of recipients:

ann@example.org: ${told}

    Please note that this is only a temporary failure report.
    The message is kept in the queue for up to 7 days.
    You DO NOT NEED to re-send the message to these recipients.

    Below is a copy of the original message:
`;
	const fields = `Reporting-MTA: dns; mx.example.net

Final-Recipient: rfc822; ann@example.org
Action: delayed
Status: ${status}`;
	return { notice, mail: dsn(fields, { notice, returned: 'To: ann@example.org\nSubject: Hello' }) };
};

describe('a report of a delay', () => {
	it('is a soft bounce if OpenSMTPD says that the envelope expired', () => {
		const { mail, notice } = openSmtpd('Envelope expired', '4.4.7');
		const recipient = {
			address: 'ann@example.org',
			action: 'failed',
			diagnostic: 'Envelope expired',
			hard: false,
		};
		expect(readReport(mail)).toMatchObject({
			kind: 'bounce',
			recipients: [{ ...recipient, status: '4.4.7' }],
		});
		expect(readReport(informal(notice))).toMatchObject({ kind: 'bounce', recipients: [recipient] });
	});

	it.each([
		['450 4.2.1 later', '4.2.1'],
		['Network error on destination MXs', '4.0.0'],
		['450 4.4.7 <ann@example.org>: Envelope expired, they say', '4.4.7'],
	])('is a delivery notice while OpenSMTPD still tries to deliver: %s', (told, status) => {
		const { mail, notice } = openSmtpd(told, status);
		const recipient = { action: 'delayed', diagnostic: told };
		expect(readReport(mail)).toMatchObject({ kind: 'delivery_notice', recipients: [recipient] });
		expect(readReport(informal(notice))).toMatchObject({ kind: 'delivery_notice', recipients: [recipient] });
	});
});
