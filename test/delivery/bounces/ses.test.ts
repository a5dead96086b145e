import { describe, expect, it } from 'vitest';
import { readReport } from '../../../src/delivery/bounces/ingest.js';

const mail = {
	timestamp: '2026-03-10T12:00:00.000Z',
	source: 'bounces+token@example.com',
	messageId: '0100019c-1111-2222-3333-444455556666-000000',
	destination: ['ann@example.org'],
	commonHeaders: {
		from: ['News <news@example.com>'],
		to: ['Ann <ann@example.org>'],
		messageId: '<0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f@example.com>',
		subject: 'Hello',
	},
};
const unknown = {
	emailAddress: 'ann@example.org',
	action: 'failed',
	status: '5.1.1',
	diagnosticCode: 'smtp; 550 5.1.1 <ann@example.org>... User unknown',
};
const bounce = (more: object = {}, recipient: object = unknown) => ({
	notificationType: 'Bounce',
	bounce: {
		bounceType: 'Permanent',
		bounceSubType: 'General',
		reportingMTA: 'dns; mx.example.org',
		bouncedRecipients: [recipient],
		...more,
	},
	mail,
});
const complaint = (more: object = {}) => ({
	eventType: 'Complaint',
	complaint: { complainedRecipients: [{ emailAddress: 'ann@example.org' }], userAgent: 'Loop/1', ...more },
	mail,
});
const read = (value: unknown) => readReport(Buffer.from(JSON.stringify(value, null, 2)));
const bySns = (value: unknown) => ({
	Type: 'Notification',
	TopicArn: 'arn:aws:sns:eu-west-1:1:bounces',
	Message: JSON.stringify(value),
});

describe('a notification of Amazon SES', () => {
	it('about an unknown address is a hard bounce that identifies the original message', () => {
		const report = read(bounce());
		expect(report).toEqual({
			kind: 'bounce',
			reporting_mta: 'mx.example.org',
			envelope_id: null,
			recipients: [
				{
					address: 'ann@example.org',
					original_address: null,
					action: 'failed',
					status: '5.1.1',
					reply_code: 550,
					diagnostic: '550 5.1.1 <ann@example.org>... User unknown',
					remote_mta: null,
					hard: true,
					why: expect.any(String),
					form: 'Amazon SES',
					place: { part: '1', type: 'application/json', line: 1 },
				},
			],
			returned: {
				message_id: '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f@example.com',
				subject: 'Hello',
				to: ['ann@example.org'],
				x_headers: {},
				place: { part: '1', type: 'application/json', line: 1 },
			},
		});
		expect(read(bySns(bounce()))).toEqual(report);
	});

	it.each([
		['a soft bounce if it has no code', { emailAddress: 'ann@example.org' }, false],
		['a hard bounce if its only code is 5.1.1', { emailAddress: 'ann@example.org', status: '5.1.1' }, true],
		['a soft bounce if the mailbox is full', { ...unknown, diagnosticCode: 'smtp; 552 5.2.2 full' }, false],
	])('about a permanent bounce is %s', (_, recipient, hard) => {
		expect(read(bounce({}, recipient))).toMatchObject({ kind: 'bounce', recipients: [{ hard }] });
	});

	it('about a transient bounce is a soft bounce if it quotes a server’s reply, otherwise a delivery notice', () => {
		const silent = { emailAddress: 'ann@example.org' };
		expect(read(bounce({ bounceType: 'Transient' }, silent))).toMatchObject({ kind: 'delivery_notice' });
		const full = { ...unknown, status: '4.2.2', diagnosticCode: 'smtp; 452 4.2.2 full' };
		expect(read(bounce({ bounceType: 'Transient' }, full))).toMatchObject({
			kind: 'bounce',
			recipients: [{ hard: false }],
		});
	});

	it('about a complaint is read as a complaint, or as feedback if its type is not-spam', () => {
		expect(read(complaint())).toMatchObject({
			kind: 'complaint',
			feedback_type: 'abuse',
			recipients: ['ann@example.org'],
			user_agent: 'Loop/1',
			returned: { subject: 'Hello' },
		});
		expect(read(complaint({ complaintFeedbackType: 'not-spam' }))).toMatchObject({ kind: 'feedback' });
	});

	it.each([
		['a delivery', { notificationType: 'Delivery', delivery: {}, mail }],
		['a bounce without recipients', bounce({ bouncedRecipients: [{ emailAddress: 7 }, null, 'x'] })],
		['a bounce whose recipients are not a list', bounce({ bouncedRecipients: { length: 1 } })],
		['no message', { ...bounce(), mail: 'x' }],
		['an SNS envelope with malformed JSON', { Type: 'Notification', Message: '{' }],
		['a confirmation', { Type: 'SubscriptionConfirmation', SubscribeURL: 'https://example.com' }],
		['nothing', {}],
	])('is not a report if it contains %s', (_, value) => {
		expect(read(value)).toMatchObject({ kind: 'not_a_report' });
	});

	it('may begin with a byte order mark', () => {
		const marked = Buffer.from(`\uFEFF${JSON.stringify(bounce())}`);
		expect(readReport(marked)).toEqual(read(bounce()));
	});

	it('with malformed headers or extreme nesting is read without an exception', () => {
		const odd = {
			...bounce(),
			mail: { commonHeaders: { to: [{ toString: 1 }, 'ann@example.org'], subject: 7 } },
		};
		expect(read(odd)).toMatchObject({ returned: { to: ['ann@example.org'], subject: null } });
		expect(readReport(Buffer.from('{"mail":'.repeat(100_000)))).toMatchObject({ kind: 'not_a_report' });
	});
});
