// Verdicts on what no test can bring about: full disks, logs of gigabytes, old versions, months of mail.
import { describe, expect, it } from 'vitest';
import { StoreError } from '../../../src/api/errors.js';
import { judgeLog, judgeSpace, whatIsLeft } from '../../../src/cli/doctor/checks/database.js';
import { judgeNode } from '../../../src/cli/doctor/checks/machine.js';
import { judgeBounced } from '../../../src/cli/doctor/checks/queue.js';
import { judgePace } from '../../../src/cli/doctor/checks/service.js';
import { hintText, unnamed } from '../../../src/cli/frame/command-line.js';
import { classify } from '../../../src/cli/frame/exit.js';
import { sizeText, spanText, untilText } from '../../../src/cli/render/units.js';

const mib = 1024 ** 2;
const gib = 1024 ** 3;
const line = (words: string) => `mailctl ${words}`;

it.each([
	['18.20.0', 'problem'],
	['20.18.3', 'problem'],
	['20.19.0', 'ok'],
	['21.7.3', 'problem'],
	['22.13.1', 'problem'],
	['22.14.0', 'ok'],
	['23.5.0', 'problem'],
	['23.6.0', 'ok'],
	['24.1.0', 'ok'],
] as const)('Node.js %s is %s', (version, level) => {
	expect(judgeNode(version).level).toBe(level);
});

describe('the room on the disk', () => {
	it.each([
		[50 * mib, 10 * gib, 'problem'],
		[900 * mib, 4 * gib, 'warning'],
		[9 * gib, 100 * gib, 'warning'],
		[11 * gib, 100 * gib, 'ok'],
		// A tenth of it would be 400 GiB.
		[30 * gib, 4_000 * gib, 'ok'],
	] as const)('%i bytes of %i are %s', (free, total, level) => {
		expect(judgeSpace({ free, total }).level).toBe(level);
	});
});

it('a database that may not be written to is read where its log has begun, and is of no use else', () => {
	expect(whatIsLeft({ journalMode: 'wal' })).toContain('can be read');
	expect(whatIsLeft({ journalMode: 'delete' })).toBe('no command can open the database, to read it neither');
	const { hint } = classify(new StoreError('read_only', 'news.db: the database file is read-only'));
	expect(hintText(hint ?? '', unnamed)).toBe(
		'run mailctl as the owner of the database, or make the file, its folder and its disk writable for this user',
	);
});

it('a write-ahead log that nobody copies back is worth a word', () => {
	const schema = { found: 8, known: 8 };
	const log = (bytes: number) => judgeLog({ journalMode: 'wal', schema, bytes: { file: gib, log: bytes } });
	expect([log(0).level, log(64 * mib).level, log(300 * mib)]).toEqual([
		'ok',
		'ok',
		{
			level: 'warning',
			message: expect.stringContaining('has grown to 300 MiB'),
			fix: expect.stringContaining('the last to close it copies the log back'),
		},
	]);
});

it('another journal than the log is worth a word', () => {
	const found = { journalMode: 'delete', schema: { found: 8, known: 8 }, bytes: { file: gib, log: 0 } };
	expect(judgeLog(found)).toMatchObject({ level: 'warning', message: expect.stringContaining('"delete"') });
});

describe('mail that bounced for good', () => {
	it.each([
		[0, 0, 'ok'],
		[19, 19, 'ok'],
		[25, 5, 'ok'],
		[25, 6, 'warning'],
		[99, 19, 'ok'],
		[100, 6, 'warning'],
		[1_000, 50, 'ok'],
		[1_000, 51, 'warning'],
	] as const)('of %i tried %i bounced: %s', (attempted, hardBounced, level) => {
		expect(judgeBounced({ attempted, hardBounced }, line).level).toBe(level);
	});
});

it('mail that bounced is not judged by a few', () => {
	expect(judgeBounced({ attempted: 10, hardBounced: 5 }, line).message).toBe(
		'5 of 10 messages of seven days bounced for good: too few to judge',
	);
});

it.each([
	[-5, 'now'],
	[0, 'now'],
	[0.2, 'in 1 second'],
	[59, 'in 59 seconds'],
	[3_600, 'in 1 hour'],
	[3_601, 'at 2026-11-21 20:00 UTC'],
] as const)('what comes in %f s comes %s', (seconds, text) => {
	const now = Date.UTC(2026, 10, 21, 19) * 1_000;
	expect(untilText(now + seconds * 1_000_000, { now, zone: 'UTC' })).toBe(text);
});

it('a small call of more than two seconds is worth a word', () => {
	expect([judgePace(300).level, judgePace(2_500)]).toEqual([
		'ok',
		{ level: 'warning', message: 'one small call took 2500 ms: everything will be slow', fix: null },
	]);
});

it.each([
	[0, '0 seconds'],
	[61_000_000, '1 minute'],
	[7_199_000_000, '1 hour'],
	[259_200_000_000, '3 days'],
] as const)('%i µs are %s', (span, text) => {
	expect(spanText(span)).toBe(text);
});

it.each([
	[0, '0 KiB'],
	[622_592, '608 KiB'],
	[3 * gib, '3.0 GiB'],
] as const)('%i bytes are %s', (bytes, text) => {
	expect(sizeText(bytes)).toBe(text);
});
