// Each command and option that needs mailctl's extensions is refused by another service before anything is written.
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliResult, cli } from '../support/cli.js';
import { allCommands } from '../support/command-tree.js';
import { type Foreign, startForeign } from '../support/foreign.js';
import { said } from '../support/project.js';

type Argv = readonly string[];

const uuid = '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f';
const mail = ['--from', 'news@example.com', '--subject', 'S', '--text', 'T'];
const single = ['send', ...mail, '--to', 'ann@example.com'];
const toList = ['send', ...mail, '--list', '1'];
const agreed = ['--yes', '--expect-count', '1'];

/** Commands that need extensions (◇); the error names each of them. */
const ours = [
	'subscribers erase ann@example.com --confirm ann@example.com',
	'webhooks deliveries 1',
	'webhooks replay 1 --failed',
	'webhooks secret',
	`campaigns compare ${uuid} ${uuid}`,
	'report compare',
	`campaigns links ${uuid}`,
	'templates list',
	`templates get ${uuid}`,
	'templates create --name W --text-file {file}',
	`templates update ${uuid} --name X`,
	`templates delete ${uuid} -y`,
	`templates render ${uuid}`,
	'templates push mails --prune -y',
	'templates pull mails --force',
	'messages list',
	`messages get ${uuid}`,
	`messages raw ${uuid}`,
	`messages cancel ${uuid} -y`,
	`messages retry ${uuid}`,
	'suppressions list',
	'suppressions add a@example.com',
	'suppressions remove a@example.com -y',
	'suppressions import {people}',
	'suppressions export',
];

/** Options that need extensions, although every service supports their commands. */
const options: readonly Argv[] = [
	['lists', 'create', '--name', 'New', '--email-reason', 'r', '--public-name', 'News'],
	['lists', 'update', '1', '--name', 'New', '--public-name', 'News'],
	['send', '--from', 'news@example.com', '--to', 'ann@example.com', '--template', 'Welcome'],
	...[
		['--campaign', uuid],
		['--idempotency-key', 'k'],
		['--results', '{file}'],
		['--rate', '10/s'],
		['--connections', '2'],
		['--preview', 'text'],
		['--preview-as', 'ann@example.com'],
		['--eml', '-'],
		['--attach', '{file}'],
	].map((option) => [...single, ...option]),
	// The client can read the service's lists, but only the engine evaluates conditions and sending times.
	...[
		['--exclude-list', '1'],
		['--where', 'name=Ann'],
		['--where-opened', 'spring'],
		['--where-not-opened', 'spring'],
		['--at', 'tomorrow 9:00'],
	].map((option) => [...toList, ...option]),
	['send', ...mail, '--csv', '{people}', '--in', '2h', ...agreed],
	['send', '--batch', '{requests}', '--window', '09:00-18:00', ...agreed],
	['campaigns', 'report', uuid, '--tag', 'news'],
	['campaigns', 'report', uuid, '--human'],
	['report', '--tag', 'news'],
	['report', '--human'],
];

/** Commands that need the machine of the database (◆), refused with an explicit base URL. */
const machine = [
	'serve --port 0',
	'worker --drain',
	'engine init --sender a@example.com',
	'engine status',
	'engine backup b.db',
	'engine restore b.db',
	'engine check',
	'engine migrate --to b.db',
	'engine secrets status',
	'engine secrets wrap',
	'engine secrets unwrap --yes',
	'engine smtp-test',
	'engine settings get',
	'engine settings set time_zone UTC',
	'engine settings unset time_zone',
	'engine queue stats',
	'engine queue pause',
	'engine queue resume',
	'engine tokens list',
	'engine tokens create --name ci',
	'engine tokens revoke ci -y',
	'engine dkim add --domain example.com --selector s1',
	'engine dkim list',
	'engine dkim remove --domain example.com --selector s1 -y',
	'engine bounces ingest {file}',
	'demo',
	'sink',
];

/** Commands of the service document that change something; with `--dry-run` they only read. */
const changes: Readonly<Record<string, Argv>> = {
	apply: ['-f', '{declared}'],
	'lists create': ['--name', 'New', '--email-reason', 'r'],
	'lists update': ['1', '--name', 'Other'],
	'lists delete': ['1'],
	'lists clear': ['1'],
	'subscribers create': ['-l', '1', '--email', 'new@example.com'],
	'subscribers update': ['ann@example.com', '-l', '1', '--meta', 'city=Rome'],
	'subscribers activate': ['1', '-l', '1'],
	'subscribers deactivate': ['1', '-l', '1'],
	'subscribers delete': ['1', '-l', '1'],
	'subscribers import': ['{people}', '-l', '1', '--create-fields'],
	'fields create': ['--variable', 'new', '--name', 'New'],
	'fields update': ['city', '--variable', 'town'],
	'fields delete': ['city'],
	'webhooks create': ['--url', 'https://hooks.example.com/', '--type', 'OPENED'],
	'webhooks update': ['1', '--type', 'REDIRECTED'],
	'webhooks delete': ['1'],
	'webhooks test': ['1'],
	'webhooks listen': ['--wait', '10ms'],
	send: single.slice(1),
	'senders add': ['b@example.com'],
	'senders remove': ['news@example.com'],
};

const commands = await allCommands();

describe('on another service', () => {
	let foreign: Foreign;
	let home: string;

	beforeAll(async () => {
		foreign = await startForeign();
		home = await mkdtemp(join(tmpdir(), 'mailctl-foreign-'));
		await writeFile(join(home, 'file.txt'), 'T');
		await writeFile(join(home, 'requests.ndjson'), '{}\n');
		await writeFile(join(home, 'mail.yaml'), 'lists: [{name: New, email_reason: r}]\n');
		await writeFile(
			join(home, 'people.csv'),
			'email,disable_reason,Town\nbob@example.com,UNSUBSCRIBED,Oslo\n',
		);
	});
	afterAll(() => foreign.close());

	const call = (argv: Argv): Promise<CliResult> => {
		const files: Readonly<Record<string, string>> = {
			'{file}': 'file.txt',
			'{people}': 'people.csv',
			'{declared}': 'mail.yaml',
			'{requests}': 'requests.ndjson',
		};
		const words = argv.map((word) => (files[word] === undefined ? word : join(home, files[word])));
		return cli(['--base-url', foreign.baseUrl, '--no-input', '--retries', '0', ...words], {
			env: { HOME: home, MAILCTL_TOKEN: 't' },
		});
	};

	const refused = async (argv: Argv, says: RegExp) => {
		const before = foreign.writes.length;
		const { code, stdout, stderr } = await call(argv);
		expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringMatching(says) });
		expect(foreign.writes.slice(before)).toEqual([]);
	};

	const pathOf = (call: string) => call.split(' ').slice(0, pathLength(call)).join(' ');
	const pathLength = (call: string) =>
		Math.max(...commands.map(({ path }) => (`${call} `.startsWith(`${path} `) ? path.split(' ').length : 0)));

	it('every command of engine, messages, suppressions and templates is tested, except engine bounces explain', () => {
		const known = new Set([...ours, ...machine].map(pathOf));
		const missing = commands.filter(({ path }) => /^(engine|messages|suppressions|templates) /.test(path));
		expect(missing.filter(({ path }) => !known.has(path)).map(({ path }) => path)).toEqual([
			'engine bounces explain',
		]);
	});

	it.each(ours)('%s ends with an error that names the command, and writes nothing', (line) =>
		refused(line.split(' '), new RegExp(`this service does not support mailctl ${pathOf(line)}`)));

	it.each(
		options.map((argv) => [argv.join(' '), argv] as const),
	)('%s is rejected because of its option, and writes nothing', (_, argv) =>
		refused(
			argv,
			/this service (does not support|renders its messages itself|has no campaigns)|needs a (local database|mailctl server)/,
		));

	it.each(machine)('%s is rejected, because the command needs a local database', (line) =>
		refused(line.split(' '), /needs a local database|--base-url has no effect/));

	it.each(Object.keys(changes))('%s with --dry-run prints the change, and writes nothing', async (path) => {
		const before = foreign.writes.length;
		const { code, stdout, stderr } = await call([
			...path.split(' '),
			...(changes[path] ?? []),
			'-n',
			'-o',
			'json',
		]);
		expect({ code, stderr, plan: JSON.parse(stdout) }).toMatchObject({ code: 0, plan: { dry_run: true } });
		expect(foreign.writes.slice(before)).toEqual([]);
		expect(foreign.reads.filter((read) => read.includes('run_test'))).toEqual([]);
	});

	it('supported commands work, and an import sends one request per row', async () => {
		foreign.writes.splice(0);
		expect(await call(['lists', 'list', '-o', 'name'])).toMatchObject({ code: 0, stdout: 'Readers\n' });
		expect(await call(single)).toMatchObject({ code: 0, stdout: `ann@example.com\t${uuid}\n` });
		expect(foreign.writes.splice(0)).toEqual(['POST /message/send/']);
		const words = ['subscribers', 'import', '{people}', '-l', '1', '--map', 'Town=city', '-o', 'json'];
		const { code, stdout, stderr } = await call(words);
		expect({ code, document: JSON.parse(stdout), said: said({ stderr }) }).toEqual({
			code: 0,
			document: { read: 1, created: 1, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 },
			said: [
				{
					warning:
						'1 row has a disable_reason, which this service cannot store: the reason was left out, and the rows are inactive unless is_active says otherwise',
				},
			],
		});
		expect(foreign.writes.splice(0)).toEqual(['POST /sub/lists/1/subscribers/']);
	});
});
