import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressesIn } from '../../../src/delivery/bounces/addresses.js';
import { autoReplySign } from '../../../src/delivery/bounces/auto-reply.js';
import { findNotice } from '../../../src/delivery/bounces/extract.js';
import { readReport } from '../../../src/delivery/bounces/ingest.js';
import { decodeWords, parseMail } from '../../../src/delivery/bounces/mime.js';
import { readCodes } from '../../../src/delivery/bounces/report.js';
import { recipientsIn } from '../../../src/delivery/bounces/text-recipients.js';
import { classify } from '../../../src/delivery/reply.js';
import { startCpuClock } from '../../support/cpu-clock.js';
import { dsn, informal, mail } from './build.js';
import { corpusFiles } from './corpus.js';

const own = [
	dsn('Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; ann@example.org\nAction: failed\nStatus: 5.1.1'),
	informal(
		'Undeliverable.\n\n<ann@example.org>:\n550 5.1.1 no\n\n--- Below this line is a copy of the message.\n\nTo: a@b.c\n',
	),
];
const mails = [...own, ...corpusFiles().map(({ bytes }) => bytes)];

const pieces = [
	'a',
	' ',
	'@',
	'a@',
	'<',
	'<a@b>',
	'=?a?b?',
	'=',
	'5.',
	'550 ',
	'5.1.1',
	'-',
	'=-',
	'.',
	'(',
	'unknown ',
	'host ',
	'mail',
	'RCPT',
	'could not ',
	'ü',
	'\\',
	'"',
	';',
	'--b 1\n',
	'[',
	'Address: <',
	'delivery to ',
];

describe('hostile mail', () => {
	it('is read without an exception if its bytes are damaged, and each recipient has an address', () => {
		const change = fc.record({
			at: fc.nat(),
			byte: fc.integer({ min: 0, max: 255 }),
			kind: fc.constantFrom('set', 'cut', 'drop', 'twice'),
		});
		fc.assert(
			fc.property(
				fc.constantFrom(...mails),
				fc.array(change, { minLength: 1, maxLength: 12 }),
				(bytes, changes) => {
					const report = readReport(changes.reduce(mutated, Buffer.from(bytes)));
					if (report.kind !== 'bounce' && report.kind !== 'delivery_notice') return;
					expect(report.recipients.length).toBeGreaterThan(0);
					for (const one of report.recipients) {
						expect(one.address).toMatch(/^\S+@\S+$/);
						expect(one.place.line).toBeGreaterThan(0);
						if (one.hard) expect(one.action).toBe('failed');
					}
				},
			),
			{ numRuns: 2000 },
		);
	});

	it('of random bytes is not a bounce', () => {
		fc.assert(
			fc.property(fc.uint8Array({ maxLength: 4000 }), (bytes) => {
				expect(readReport(Buffer.from(bytes)).kind).toMatch(/^(?:not_a_report|auto_reply|feedback)$/);
			}),
		);
	});

	it('is parsed only up to 100 parts and 8 levels, but may have over 500 recipients', () => {
		const flat = mail(['Content-Type: multipart/mixed; boundary=x'], '--x\n\na\n'.repeat(50_000));
		expect(parseMail(flat).parts.length).toBe(100);
		const deep = Array.from(
			{ length: 500 },
			(_, at) => `Content-Type: multipart/mixed; boundary=b${at}\n\n--b${at}\n`,
		).join('');
		expect(parseMail(Buffer.from(deep)).parts.length).toBe(8);
		const entries = Array.from(
			{ length: 2000 },
			(_, at) => `Final-Recipient: rfc822; a${at}@b.example\nAction: failed\nStatus: 5.1.1\n`,
		);
		const report = readReport(dsn(entries.join('\n')));
		expect(report.kind === 'bounce' ? report.recipients.length : 0).toBeGreaterThan(500);
	});

	it('yields only the recipient of the outer bounce if it contains another bounce', () => {
		const inner = dsn('Final-Recipient: rfc822; bob@example.org\nAction: failed\nStatus: 5.1.1').toString();
		const outer = dsn('Final-Recipient: rfc822; ann@example.org\nAction: failed\nStatus: 5.2.2', {
			returned: inner,
		});
		expect(readReport(outer)).toMatchObject({ recipients: [{ address: 'ann@example.org', hard: false }] });
	});
});

describe('a mail that is expensive to read', () => {
	const partsOf = (parts: readonly string[]) =>
		parseMail(
			Buffer.from(`Content-Type: multipart/mixed; boundary=b\n\n${parts.join('\n')}\n--b--\n`, 'latin1'),
		).parts;

	it('is decoded only up to 256 KiB in charsets other than UTF-8', () => {
		const part = `--b\nContent-Type: text/plain; charset=utf-7\n\n${'+AOk-\n'.repeat(30_000)}`;
		const [, first, second, third] = partsOf([part, part, part.replace('utf-7', 'utf-8')]);
		expect([first, second, third].map((one) => one?.lines()[0]?.text)).toEqual(['é', '+AOk-', '+AOk-']);
	});

	it('is searched for recipients only once', () => {
		const notice = findNotice(parseMail(informal('<ann@example.org>:\n550 5.1.1 no\n')));
		expect(notice?.recipients).toMatchObject([{ address: 'ann@example.org' }]);
		expect(notice?.recipients).toBe(notice?.recipients);
	});

	it('is split into parts only in its first 200,000 lines', () => {
		const lines = (count: number) => `--b\n\n${'x\n'.repeat(count)}`;
		const paths = (count: number) => partsOf([lines(count), lines(1)]).map(({ path }) => path);
		expect(paths(199_900)).toEqual(['1', '1.1', '1.2']);
		expect(paths(200_000)).toEqual(['1', '1.1']);
	});
});

describe('the time to read hostile text', () => {
	const tables: readonly (readonly [string, (text: string) => unknown])[] = [
		['codes', readCodes],
		['addresses', addressesIn],
		['encoded words', decodeWords],
		['signs of automatic replies', (text) => autoReplySign([{ name: 'subject', value: text, line: 1 }])],
		['recipients in text', (text) => recipientsIn([{ text, number: 1 }], { path: '1', type: 'text/plain' })],
		[
			'the table of replies',
			(text) => classify({ kind: 'refused', reply: { phase: 'rcpt', code: 550, enhanced: null, text } }),
		],
	];

	it.each(tables)('is linear for %s', (_, use) => {
		for (const piece of pieces) {
			const [small, large] = [
				msOf(use, piece.repeat(50_000 / piece.length)),
				msOf(use, piece.repeat(200_000 / piece.length)),
			];
			// A quadratic expression would need sixteen times as long for four times the text.
			expect(large, `${JSON.stringify(piece)}: ${small} ms, then ${large} ms`).toBeLessThan(
				Math.max(small, 20) * 12,
			);
		}
	});

	it.each(pieces.map((piece) => [piece]))('is short if a mail contains 100 kB of repeated %j', (piece) => {
		const text = piece.repeat(100_000 / piece.length);
		const read = () =>
			[
				informal(text),
				informal(`\n<ann@example.org>:\n${text}`),
				dsn(text),
				mail([`From: ${text}`, `Subject: ${text}`], ''),
			].map(readReport);
		expect(read().map(({ kind }) => kind)).toHaveLength(4);
	});
});

function mutated(bytes: Buffer, { at, byte, kind }: { at: number; byte: number; kind: string }): Buffer {
	const index = bytes.length === 0 ? 0 : at % bytes.length;
	switch (kind) {
		case 'set':
			return Buffer.concat([bytes.subarray(0, index), Buffer.from([byte]), bytes.subarray(index + 1)]);
		case 'cut':
			return bytes.subarray(0, index);
		case 'drop':
			return Buffer.concat([bytes.subarray(0, index), bytes.subarray(index + byte)]);
		default:
			return Buffer.concat([bytes.subarray(0, index), bytes.subarray(Math.max(index - byte, 0))]);
	}
}

/** Returns the time of the fastest of three runs. */
function msOf(use: (text: string) => unknown, text: string): number {
	const times = [0, 1, 2].map(() => {
		const cpuMs = startCpuClock();
		use(text);
		return cpuMs();
	});
	return Math.min(...times);
}
