import { describe, expect, test } from 'vitest';
import { errorBody } from '../../src/api/errors.js';
import { fieldFields, webhookFields } from '../../src/api/inputs.js';
import { campaignFields, sendFields } from '../../src/api/messages.js';
import { parseReportQuery } from '../../src/api/reports.js';
import type { Parsed } from '../../src/api/schema.js';
import { subscriberFields } from '../../src/api/subscribers.js';

function errorsOf(parsed: Parsed<unknown>): unknown {
	return parsed.kind === 'invalid' ? errorBody(parsed.errors) : null;
}

const notEmail = ['Enter a valid email address.'];
const send = { from: 'a@b.no', to: ['c@d.no'], subject: 'S', text_body: 'T' };

describe('a subscriber', () => {
	const meta = (value: unknown) => subscriberFields.parse({ meta: value }, 'patch');

	test('can have meta as an object or as JSON text', () => {
		const value = { meta: { city: 'Oslo', age: 3, ok: true, none: null } };
		expect(meta(value.meta)).toEqual({ kind: 'valid', value });
		expect(meta(JSON.stringify(value.meta))).toEqual({ kind: 'valid', value });
	});

	test.each([
		[
			{ a: [1], b: {}, c: 'ok' },
			{
				a: ['Use a string, a number, true, false or null.'],
				b: ['Use a string, a number, true, false or null.'],
			},
		],
		['{"a": 1e999}', { a: ['Ensure that there are no more than 15 digits in total.'] }],
		['{"a": 12345678901234567890}', { a: ['Ensure that there are no more than 15 digits in total.'] }],
		[
			{ 'a\0': 1, 'b\ud800': 1 },
			{
				'a\0': ['Null characters are not allowed.'],
				'b\ud800': ['Surrogate characters are not allowed: U+D800.'],
			},
		],
		[{ a: 'x\0' }, { a: ['Null characters are not allowed.'] }],
		[{ a: 'x'.repeat(65_536) }, ['Ensure this field has no more than 65536 bytes.']],
		[`${'['.repeat(33)}${']'.repeat(33)}`, ['JSON is nested deeper than 32 levels.']],
	])('cannot have %j as meta', (value, expected) =>
		expect(errorsOf(meta(value))).toEqual({ meta: expected }));

	test('keeps __proto__ as an ordinary key', () => {
		const parsed = meta('{"__proto__": "x"}');
		expect(parsed.kind === 'valid' && Object.entries(parsed.value.meta ?? {})).toEqual([['__proto__', 'x']]);
	});
});

describe('a field', () => {
	test.each([
		['a\nb', 'This value does not match the required pattern.'],
		['__proto__', '"__proto__" is a reserved variable name.'],
	])('cannot have the variable %j', (variable, message) => {
		expect(errorsOf(fieldFields.parse({ variable }, 'patch'))).toEqual({ variable: [message] });
	});
});

test('a webhook keeps the spaces of its password and has no login by default', () => {
	const body = { url: ' http://a.no/ ', type: 'OPENED', password: ' p ', id: 5 };
	expect(webhookFields.parse(body, 'create')).toEqual({
		kind: 'valid',
		value: { url: 'http://a.no/', type: 'OPENED', is_auth_enabled: false, login: '', password: ' p ' },
	});
});

describe('a send call', () => {
	test('is normalized before it is sent', () => {
		const body = {
			...send,
			from: ['Ann <A@b.no>'],
			to: ['c@d.no', 'e@f.no', 'C@D.no'],
			cc: ['"Lee, B" <g@h.no>'],
			bcc: ['G@h.no', 'I <i@j.no>'],
			context: { price: 5, ' a ': ' b ' },
			html_body: '<p>',
		};
		expect(sendFields.parse(body)).toEqual({
			kind: 'valid',
			value: {
				type: 'TRANSACTIONAL',
				from: { name: 'Ann', address: 'A@b.no', key: 'a@b.no' },
				from_key: 'a@b.no',
				envelope: {
					from: 'Ann <A@b.no>',
					reply_to: [],
					cc: ['"Lee, B" <g@h.no>'],
					bcc: ['i@j.no'],
					headers: {},
				},
				to: [
					{ address: 'c@d.no', key: 'c@d.no' },
					{ address: 'e@f.no', key: 'e@f.no' },
				],
				cc: [{ name: 'Lee, B', address: 'g@h.no', key: 'g@h.no' }],
				bcc: [{ name: 'I', address: 'i@j.no', key: 'i@j.no' }],
				subject: 'S',
				text_body: 'T',
				html_body: '<p>',
				template_unique_id: null,
				disable_inline: false,
				context: { price: '5', ' a ': ' b ' },
				tag: null,
				list_id: null,
				campaign_unique_id: null,
			},
		});
	});

	test.each<[string, object, object]>([
		[
			'a bad template alone',
			{ text_body: undefined, template_unique_id: 'x' },
			{ template_unique_id: ['Must be a valid UUID.'] },
		],
		[
			'1001 addresses',
			{ to: Array(1001).fill('c@d.no') },
			{ to: ['Ensure this field has no more than 1000 elements.'] },
		],
		['two senders in one text', { from: 'a@b.no, c@d.no' }, { from: notEmail }],
		['a bad sender in an array', { from: ['x'] }, { from: notEmail }],
		['bulk copies', { type: 'BULK', cc: ['e@f.no'] }, { cc: ['BULK messages cannot have cc or bcc.'] }],
		[
			'a text too long',
			{ text_body: 'x'.repeat(2_097_153) },
			{ text_body: ['Ensure this field has no more than 2097152 bytes.'] },
		],
		['a wrong type', { disable_tracking: 'maybe' }, { disable_tracking: ['Must be a valid boolean.'] }],
	])('is rejected for %s', (_, change, expected) => {
		expect(errorsOf(sendFields.parse({ ...send, ...change }))).toEqual(expected);
	});

	test.each(
		(
			'BCC Content-Type mime-version DKIM-Signature ARC-Seal Resent-To List-Unsubscribe-Post ' +
			'Received Return-Path message-id Mime Content Resent ARC DKIM List-Unsubscribe ' +
			'Authentication-Results ARC-Authentication-Results Delivered-To Author X-Received ' +
			'Received-SPF X-Original-To Envelope-To X-Envelope-From Delivery-Date DL-Expansion-History ' +
			'Original-Recipient Original-Message-ID Downgraded-From SIO-Label-History X400-Trace ' +
			'Discarded-X400-MTS-Extensions X-Trasporto apparently-to X-Apparently-To Errors-To ' +
			'Return-Receipt-To Notice-Requested-Upon-Delivery-To Originator-Return-Address ' +
			'Prevent-NonDelivery-Report Deferred-Delivery MT-Priority DomainKey-Signature ' +
			'X-Original-Authentication-Results BIMI-Indicator'
		).split(' '),
	)('may not set the header %s', (name) =>
		expect(errorsOf(sendFields.parse({ ...send, headers: { [name]: 'x' } }))).toEqual({
			headers: { [name]: ['This header may not be set.'] },
		}));

	test.each(
		(
			'Contents Mimeo X-Content Resented Arcade Authentication-Results-Old Original-Price X-Errors ' +
			'In-Reply-To References Keywords Importance Auto-Submitted Precedence Feedback-ID Archived-At ' +
			'List-ID List-Help List-Owner Disposition-Notification-To Disposition-Notification-Options ' +
			'Require-Recipient-Valid-Since TLS-Required CFBL-Address VBR-Info BIMI-Selector ' +
			'X-SES-CONFIGURATION-SET'
		).split(' '),
	)('may set the header %s', (name) =>
		expect(sendFields.parse({ ...send, headers: { [name]: 'x' } }).kind).toBe('valid'));

	test.each([201, 600, 990])('may not set a header whose name has %i characters', (length) => {
		const name = 'X'.repeat(length);
		expect(errorsOf(sendFields.parse({ ...send, headers: { [name]: 'x' } }))).toEqual({
			headers: { [name]: ['The name of a header may have at most 200 characters.'] },
		});
	});

	test.each([
		['NUL', 'a\0', 'Null characters are not allowed.'],
		['half a surrogate pair', 'a\ud800', 'Surrogate characters are not allowed: U+D800.'],
	])('may not have %s in a key of its context', (_, key, message) => {
		const context = { good: 'x', [key]: 'x' };
		expect(errorsOf(sendFields.parse({ ...send, context }))).toEqual({ context: { [key]: [message] } });
		const { to: __, ...spec } = send;
		expect(errorsOf(campaignFields.parse({ ...spec, context }))).toEqual({ context: { [key]: [message] } });
	});

	test.each(['a\r\nBcc: x@y.no', 'a\nb', 'a\rb', 'a\x1bb'])('may not have %j in a header', (value) => {
		expect(errorsOf(sendFields.parse({ ...send, headers: { 'X-A': value } }))).toEqual({
			headers: { 'X-A': ['A header may not contain line breaks or control characters.'] },
		});
	});

	test('needs neither body nor subject with a template', () => {
		const template_unique_id = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
		const parsed = sendFields.parse({ from: 'a@b.no', to: ['c@d.no'], template_unique_id });
		expect(parsed.kind === 'valid' && parsed.value).toMatchObject({
			subject: null,
			text_body: null,
			template_unique_id,
		});
	});
});

test('a campaign has strict variables by default', () => {
	const { to: _, ...spec } = send;
	const parsed = campaignFields.parse({ ...spec, type: 'BULK' });
	expect(parsed.kind === 'valid' && parsed.value).toMatchObject({ type: 'BULK', strict_vars: true });
});

describe('the parser of report queries', () => {
	const days = (query: object) => {
		const parsed = parseReportQuery(query, '2026-11-21');
		return parsed.kind === 'valid' ? [parsed.value.from, parsed.value.to] : errorBody(parsed.errors);
	};

	test.each<[object, unknown]>([
		[{}, ['2026-11-15', '2026-11-21']],
		[{ date_from: '', date_to: '' }, ['2026-11-15', '2026-11-21']],
		[{ date_from: '01.11.2026' }, ['2026-11-01', '2026-11-21']],
		[{ date_to: '07.03.2026' }, ['2026-03-01', '2026-03-07']],
		[{ date_from: '01.03.2024', date_to: '01.03.2025' }, ['2024-03-01', '2025-03-01']],
		[
			{ date_from: '01.03.2024', date_to: '02.03.2025' },
			{ date_to: ['The report covers at most 366 days.'] },
		],
		[{ date_from: '02.03.2026', date_to: '01.03.2026' }, { date_to: ['The last day is before the first.'] }],
	])('returns two days or an error for %j: %j', (query, expected) => expect(days(query)).toEqual(expected));
});
