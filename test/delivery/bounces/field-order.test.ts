// RFC 3464 does not fix the order of fields in a group, so the order must not change the result.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readReport } from '../../../src/delivery/bounces/ingest.js';
import { dsn } from './build.js';
import { corpusFiles, hasCorpus } from './corpus.js';

describe('the fields of a recipient group', () => {
	it('can have any order, even Status before Original-Recipient', () => {
		const status = [
			'Reporting-MTA: dns; mx.example.net',
			'',
			'Final-Recipient: rfc822; inner@example.net',
			'Action: failed',
			'Status: 5.1.1',
			'Original-Recipient: rfc822; copy@example.org',
			'',
			'Status: 5.2.2',
			'Original-Recipient: rfc822; ann@example.org',
			'Action: failed',
			'Final-Recipient: rfc822; ann@inner.example.org',
		].join('\n');
		expect(readReport(dsn(status))).toMatchObject({
			recipients: [
				{ address: 'inner@example.net', original_address: 'copy@example.org', status: '5.1.1', hard: true },
				{ address: 'ann@inner.example.org', original_address: 'ann@example.org', hard: false },
			],
		});
	});

	it.skipIf(!hasCorpus)('can be shuffled in every DSN of the corpora (needs the corpora)', () => {
		const reports = corpusFiles().filter(({ bytes }) => groupsIn(bytes.toString('latin1')).length > 0);
		expect(reports.length).toBeGreaterThan(140);
		for (const { name, bytes } of reports) {
			const text = bytes.toString('latin1');
			const expected = verdictOf(text);
			fc.assert(
				fc.property(fc.infiniteStream(fc.nat()), (numbers) => {
					expect(verdictOf(shuffled(text, numbers)), name).toEqual(expected);
				}),
				{ numRuns: 8 },
			);
		}
	});
});

/** Returns the report without `place`, which may change with the order of the fields. */
function verdictOf(text: string): unknown {
	const report = readReport(Buffer.from(text, 'latin1'));
	if (report.kind !== 'bounce' && report.kind !== 'delivery_notice') return report;
	return { ...report, recipients: report.recipients.map(({ place: _, ...rest }) => rest) };
}

interface Group {
	from: number;
	to: number;
}

/** Finds groups with one recipient, between blank lines of an unencoded message/delivery-status. */
function groupsIn(text: string): Group[] {
	const groups: Group[] = [];
	const parts = /^Content-Type:\s*message\/(?:global-)?delivery-status/gim;
	for (const { index } of text.matchAll(parts)) {
		const end = text.indexOf('\n--', index);
		const header = /\r?\n(?:\r?\n)+/.exec(text.slice(index));
		if (header === null || /base64|quoted/i.test(text.slice(index, index + header.index))) continue;
		let from = index + header.index + header[0].length;
		for (const block of text.slice(from, end === -1 ? undefined : end + 1).split(/(\r?\n(?:[ \t]*\r?\n)+)/)) {
			const isOne = block.match(/^(?:Final-Recipient|Action):/gim)?.length === 2;
			if (isOne && /^Final-Recipient:/im.test(block)) groups.push({ from, to: from + block.length });
			from += block.length;
		}
	}
	return groups;
}

function shuffled(text: string, numbers: Iterable<number>): string {
	const next = numbers[Symbol.iterator]();
	let result = text;
	for (const { from, to } of groupsIn(text)) {
		const eol = text.slice(from, to).includes('\r\n') ? '\r\n' : '\n';
		const fields = text.slice(from, to).split(/\r?\n(?![ \t])/);
		const ending = fields.at(-1) === '' ? [fields.pop() ?? ''] : [];
		for (let at = fields.length - 1; at > 0; at -= 1) {
			const other = next.next().value % (at + 1);
			[fields[at], fields[other]] = [fields[other] ?? '', fields[at] ?? ''];
		}
		const changed = [...fields, ...ending].join(eol);
		expect(changed.length).toBe(to - from);
		result = `${result.slice(0, from)}${changed}${result.slice(to)}`;
	}
	return result;
}
