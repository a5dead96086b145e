// How checks run and are printed, and findings that a test cannot cause: full disks, old versions, months of mail.
import { describe, expect, it } from 'vitest';
import {
	type Checks,
	type Finding,
	type Level,
	ok,
	runChecks,
	warning,
} from '../../../src/cli/doctor/checks.js';
import { summaryOf, textReport } from '../../../src/cli/doctor/command.js';
import { createNames } from '../../../src/cli/doctor/dns.js';
import { judgeSpace } from '../../../src/cli/doctor/local.js';
import { judgeBounced } from '../../../src/cli/doctor/sending.js';
import { UsageError } from '../../../src/cli/frame/errors.js';
import { sizeText, spanText, untilText } from '../../../src/cli/render/units.js';

describe('doctor with several checks', () => {
	const run = (checks: Checks, signal = new AbortController().signal) => runChecks(checks, signal, () => {});

	it('contacts other machines last, but returns findings in the given order', async () => {
		const begun: string[] = [];
		const names = ['smtp.login', 'queue.paused', 'dns.spf'];
		const check = (name: string) => async () => {
			begun.push(`${name} begins`);
			await Promise.resolve();
			begun.push(`${name} ends`);
			return [ok(name), warning('b', 'c')];
		};
		const findings = await run(Object.fromEntries(names.map((name) => [name, check(name)])));
		expect(begun).toEqual([
			...['queue.paused begins', 'queue.paused ends'],
			...['smtp.login begins', 'dns.spf begins', 'smtp.login ends', 'dns.spf ends'],
		]);
		expect(findings.map((finding) => finding.check)).toEqual(names.flatMap((name) => [name, name]));
	});

	it('reports a problem if a check throws, and "skipped" if a check takes too long', async () => {
		const stop = new AbortController();
		const checks: Checks = {
			'queue.paused': () => Promise.reject(new Error('the disk is gone')),
			'queue.workers': () => ok('fine'),
			'smtp.login': () => {
				stop.abort(new Error('out of time'));
				return new Promise(() => {});
			},
		};
		expect(await run(checks, stop.signal)).toMatchObject([
			{ check: 'queue.paused', level: 'problem', message: 'this check failed: the disk is gone' },
			{ check: 'queue.workers', level: 'ok', message: 'fine' },
			{ check: 'smtp.login', level: 'skipped', message: 'not finished in time' },
		]);
	});
});

describe('the text report of doctor', () => {
	const same = (text: string) => text;
	const paint = { strong: same, red: same, yellow: same, cyan: same, dim: same };
	const findings: Finding[] = [
		{ check: 'machine.node', level: 'ok', message: 'Node.js 20.20.2', fix: null },
		{
			check: 'settings.public-url',
			level: 'warning',
			message: 'no public URL is set: links in mails lead to this machine, which is enough for a test only',
			fix: 'mailctl --db news.db engine settings set public_url https://mail.example.com',
		},
		{
			check: 'database.space',
			level: 'problem',
			message: '80 MiB of 10.0 GiB are free on its disk: writing fails soon',
			fix: 'free some space, or move the database',
		},
		{ check: 'dns.bounces', level: 'skipped', message: 'no bounce address is set', fix: null },
		{ check: 'smtp.login', level: 'skipped', message: 'not checked with --offline', fix: null },
		{ check: 'dns.spf', level: 'skipped', message: 'not checked with --offline', fix: null },
	];

	it('aligns wrapped sentences with their first line, and does not break commands', () => {
		expect(textReport('news.db', findings, { columns: 80, unicode: true, paint })).toBe(
			`mailctl doctor news.db
✓ machine.node         Node.js 20.20.2
! settings.public-url  no public URL is set: links in mails lead to this
                       machine, which is enough for a test only
    mailctl --db news.db engine settings set public_url https://mail.example.com
✗ database.space       80 MiB of 10.0 GiB are free on its disk: writing fails
                       soon
    free some space, or move the database
– no bounce address is set: dns.bounces
– not checked with --offline: smtp.login, dns.spf

1 problem, 1 warning; 6 checks, 3 skipped
`,
		);
	});

	it('puts long sentences below the check’s name on a narrow terminal, and escapes control characters', () => {
		const hostile: Finding = { check: 'dns.spf', level: 'ok', message: 'v=spf1 \x1b[2J', fix: null };
		const shown = [...findings.slice(0, 2), hostile];
		expect(textReport('news.db', shown, { columns: 50, unicode: false, paint })).toBe(
			`mailctl doctor news.db
ok   machine.node         Node.js 20.20.2
warn settings.public-url
    no public URL is set: links in mails lead to
    this machine, which is enough for a test only
    mailctl --db news.db engine settings set public_url https://mail.example.com
ok   dns.spf              v=spf1 \\x1b[2J

0 problems, 1 warning; 3 checks
`,
		);
	});

	it.each([
		[['ok'], '0 problems, 0 warnings; 1 check'],
		[['ok', 'skipped'], '0 problems, 0 warnings; 2 checks, 1 skipped'],
		[['problem', 'warning', 'problem'], '2 problems, 1 warning; 3 checks'],
	] as const)('counts the findings %j', (levels, sum) => {
		const some = levels.map((level: Level) => ({ check: 'a.b', level, message: '', fix: null }));
		expect(summaryOf(some)).toBe(sum);
	});
});

const mib = 1024 ** 2;
const gib = 1024 ** 3;

it.each([
	[50 * mib, 10 * gib, 'problem'],
	[900 * mib, 4 * gib, 'warning'],
	[9 * gib, 100 * gib, 'warning'],
	[11 * gib, 100 * gib, 'ok'],
	// A large disk does not need a tenth of its size free, which would be 400 GiB here.
	[30 * gib, 4_000 * gib, 'ok'],
] as const)('doctor with %i free bytes on a disk of %i reports: %s', (free, total, level) => {
	expect(judgeSpace({ free, total }).level).toBe(level);
});

it.each([
	[0, 0, 'ok', /^0 of 0 messages in seven days hard-bounced$/],
	[99, 50, 'ok', /^50 of 99 messages in seven days hard-bounced$/],
	[100, 6, 'warning', /\(6\.00 %\): too many addresses are invalid$/],
	[1_000, 50, 'ok', /\(5\.00 %\)$/],
] as const)('doctor rates %i messages with %i hard bounces as %s', (attempted, hardBounced, level, says) => {
	const verdict = judgeBounced({ attempted, hardBounced }, (words) => `mailctl ${words}`);
	expect(verdict).toMatchObject({ level, message: expect.stringMatching(says) });
});

describe('--name-server', () => {
	it.each([
		...['192.0.2.53', '192.0.2.53:1', '192.0.2.53:65535', '2001:db8::53', '[2001:db8::53]', '[::1]:5353'],
	])('accepts the address %s', (server) => {
		expect(() => createNames(server).close()).not.toThrow();
	});

	// With port 0, c-ares aborts the whole process.
	it.each([
		...['127.0.0.1:0', '[::1]:0', '127.0.0.1:65536', '[::1]:99999', '127.0.0.1:'],
		...['127.0.0.1:53x', '[::1]x', '[127.0.0.1]:53', '', 'ns.example.com', 'ns.example.com:53'],
	])('rejects "%s" and prints the format', (server) => {
		const refusal = new UsageError(
			`--name-server: "${server}" is not an IP address, with or without a port from 1 to 65535`,
			{ hint: '--name-server 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53' },
		);
		expect(() => createNames(server)).toThrow(refusal);
	});
});

it.each([
	[-5, 'now'],
	[0.2, 'in 1 second'],
	[59, 'in 59 seconds'],
	[3_600, 'in 1 hour'],
	[3_601, 'at 2026-11-21 20:00 UTC'],
] as const)('a time %f s from now is printed as "%s"', (seconds, text) => {
	const now = Date.UTC(2026, 10, 21, 19) * 1_000;
	expect(untilText(now + seconds * 1_000_000, { now, zone: 'UTC' })).toBe(text);
});

it.each([
	[0, '0 seconds'],
	[61_000_000, '1 minute'],
	[7_199_000_000, '1 hour'],
	[259_200_000_000, '3 days'],
] as const)('a span of %i µs is printed as "%s"', (span, text) => {
	expect(spanText(span)).toBe(text);
});

it.each([
	[0, '0 KiB'],
	[622_592, '608 KiB'],
	[3 * gib, '3.0 GiB'],
] as const)('a size of %i bytes is printed as "%s"', (bytes, text) => {
	expect(sizeText(bytes)).toBe(text);
});
