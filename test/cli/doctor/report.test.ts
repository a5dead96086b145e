// The report as a person sees it, on terminals of several widths.
import { describe, expect, it } from 'vitest';
import type { Finding, Level } from '../../../src/cli/doctor/model.js';
import { summaryOf, textReport } from '../../../src/cli/doctor/report.js';

const same = (text: string) => text;
const paint = { strong: same, red: same, yellow: same, cyan: same, dim: same };

const findings: Finding[] = [
	{ check: 'machine.node', level: 'ok', message: 'Node.js 20.20.2', fix: null },
	{
		check: 'settings.public-url',
		level: 'warning',
		message: 'no public URL is set: links in mails lead to this machine, which does for a trial alone',
		fix: 'mailctl --db news.db engine settings set public_url https://mail.example.com',
	},
	{
		check: 'database.space',
		level: 'problem',
		message: '80 MiB of 10.0 GiB are free on its disk: writing fails soon',
		fix: 'free some space, or move the database',
	},
	{ check: 'dns.bounces', level: 'skipped', message: 'no bounce address is set', fix: null },
	{ check: 'smtp.login', level: 'skipped', message: '--offline asks no other machine', fix: null },
	{ check: 'dns.spf', level: 'skipped', message: '--offline asks no other machine', fix: null },
];

describe('the report', () => {
	it('hangs long sentences under their beginning, and keeps what is to be copied whole', () => {
		expect(textReport('news.db', findings, { width: 80, unicode: true, paint })).toBe(
			`mailctl doctor news.db
✓ machine.node         Node.js 20.20.2
! settings.public-url  no public URL is set: links in mails lead to this
                       machine, which does for a trial alone
    mailctl --db news.db engine settings set public_url https://mail.example.com
✗ database.space       80 MiB of 10.0 GiB are free on its disk: writing fails
                       soon
    free some space, or move the database
– no bounce address is set: dns.bounces
– --offline asks no other machine: smtp.login, dns.spf

1 problem, 1 warning; 6 checks, 3 of them skipped
`,
		);
	});

	it('puts sentences below the name where a line is short, and does without Unicode', () => {
		expect(textReport('news.db', findings.slice(0, 2), { width: 50, unicode: false, paint })).toBe(
			`mailctl doctor news.db
ok   machine.node         Node.js 20.20.2
warn settings.public-url
    no public URL is set: links in mails lead to
    this machine, which does for a trial alone
    mailctl --db news.db engine settings set public_url https://mail.example.com

1 warning; 2 checks
`,
		);
	});

	it('names the groups of many checks that are skipped for one reason', () => {
		const names = ['a', 'b', 'c'].flatMap((one) =>
			['database', 'smtp', 'dns'].map((group) => `${group}.${one}`),
		);
		const many = names.map(
			(check) => ({ check, level: 'skipped', message: 'it is closed', fix: null }) as const,
		);
		expect(textReport('news.db', many, { width: 80, unicode: true, paint })).toContain(
			'\n– it is closed: 9 checks of database, smtp and dns\n',
		);
	});

	it('spells out what would move the cursor', () => {
		const hostile: Finding = { check: 'dns.spf', level: 'ok', message: 'v=spf1 \x1b[2J', fix: null };
		expect(textReport('news.db', [hostile], { width: 80, unicode: true, paint })).toContain(
			'v=spf1 \\x1b[2J',
		);
	});

	it.each([
		[['ok'], 'nothing wrong was found; 1 check'],
		[['ok', 'skipped'], 'nothing wrong was found; 2 checks, 1 of them skipped'],
		[['skipped', 'skipped'], 'nothing was looked at; 2 checks, all of them skipped'],
		[['warning', 'warning', 'ok'], '2 warnings; 3 checks'],
		[['problem', 'warning', 'problem'], '2 problems, 1 warning; 3 checks'],
	] as const)('sums up %j', (levels, sum) => {
		const some = levels.map((level: Level) => ({ check: 'a.b', level, message: '', fix: null }));
		expect(summaryOf(some)).toBe(sum);
	});
});
