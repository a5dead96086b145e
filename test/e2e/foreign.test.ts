// Every command and option that is ours alone, against a deployment that is not: refused by name, and nothing written.
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliResult, cli } from '../support/cli.js';
import { allCommands } from '../support/command-tree.js';
import { type Foreign, startForeign } from '../support/foreign.js';
import { said } from '../support/project.js';

type Argv = readonly string[];

/** How a command stands to a deployment that is not ours. */
type Standing =
	/** The service document's: `ours` are calls of those of its options that are not; the others are in `plain`. */
	| { kind: 'document'; plain: Argv; ours: Readonly<Record<string, Argv>> }
	/** Ours (◇): every call of it is refused, naming what is missing. */
	| { kind: 'ours'; argv: Argv; extension: string }
	/** The machine that owns the database (◆): refused with an explicit base URL. */
	| { kind: 'machine'; argv: Argv; says?: RegExp }
	/** Goes to no deployment, or to any by its own words. */
	| { kind: 'anywhere'; why: string };

const uuid = '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f';
const file = '{file}';
const people = '{people}';
const requests = '{requests}';
const declared = '{declared}';
const document = (plain: Argv = [], ours: Readonly<Record<string, Argv>> = {}): Standing => ({
	kind: 'document',
	plain,
	ours,
});
const ours = (extension: string, ...argv: Argv): Standing => ({ kind: 'ours', argv, extension });
const machine = (...argv: Argv): Standing => ({ kind: 'machine', argv });
const anywhere = (why: string): Standing => ({ kind: 'anywhere', why });

const listing = ['match', 'sort', 'limit', 'all'];
const inList = ['list', 'by'];
const mail = ['--from', 'news@example.com', '--subject', 'S', '--text', 'T'];
const single = ['send', ...mail, '--to', 'ann@example.com'];
const agreed = ['--yes', '--expect-count', '1'];
const toList = ['send', '--from', 'news@example.com', '--list', '1', '--subject', 's', '--text', 't'];

const table: Readonly<Record<string, Standing>> = {
	'lists list': document(listing),
	'lists get': document(['by']),
	'lists create': document(['name', 'emailReason'], {
		publicName: ['lists', 'create', '--name', 'New', '--email-reason', 'r', '--public-name', 'News'],
	}),
	'lists update': document(['name', 'emailReason', 'replace', 'by'], {
		publicName: ['lists', 'update', '1', '--name', 'New', '--public-name', 'News'],
	}),
	'lists delete': document(['by']),
	'lists clear': document(['by']),
	'subscribers list': document([
		...inList,
		'emailContains',
		'email',
		'active',
		'where',
		'sort',
		'limit',
		'all',
	]),
	'subscribers get': document(inList),
	'subscribers find': document(),
	'subscribers create': document([...inList, 'email', 'name', 'meta', 'metaJson', 'inactive', 'ifExists']),
	'subscribers update': document([
		...inList,
		'email',
		'name',
		'meta',
		'metaJson',
		'unsetMeta',
		'active',
		'replace',
	]),
	'subscribers activate': document(inList),
	'subscribers deactivate': document(inList),
	'subscribers delete': document(inList),
	'subscribers import': document([
		...inList,
		'map',
		'stateWords',
		'onConflict',
		'createFields',
		'ignoreUnknown',
		'delimiter',
		'encoding',
		'reactivate',
		'batchSize',
		'concurrency',
		'rate',
		'maxErrors',
		'rejects',
		'resume',
		// A name for what has no content to be known by; nothing of it reaches the service.
		'job',
	]),
	'subscribers export': document([
		...inList,
		'format',
		'emailContains',
		'active',
		'where',
		'safeCsv',
		'force',
	]),
	'subscribers stats': document(inList),
	'subscribers erase': ours(
		'erasures',
		'subscribers',
		'erase',
		'ann@example.com',
		'--confirm',
		'ann@example.com',
	),
	'fields list': document(),
	'fields get': document(),
	'fields create': document(['variable', 'name']),
	'fields update': document(['variable', 'name', 'replace']),
	'fields delete': document(),
	'webhooks list': document(['showSecrets']),
	'webhooks get': document(['showSecrets']),
	'webhooks create': document(['url', 'type', 'login', 'passwordFile', 'passwordStdin', 'auth']),
	'webhooks update': document(['url', 'type', 'login', 'passwordFile', 'passwordStdin', 'auth', 'replace']),
	'webhooks delete': document(),
	'webhooks test': document(),
	// Without a secret nothing is checked; registering is the service document's creating and deleting.
	'webhooks listen': document([
		...['port', 'forwardTo', 'register', 'test', 'type', 'url', 'secretFile', 'once', 'wait'],
	]),
	'webhooks deliveries': ours('deliveries', 'webhooks', 'deliveries', '1'),
	'webhooks replay': ours('deliveries', 'webhooks', 'replay', '1', '--failed'),
	'webhooks secret': ours('deliveries', 'webhooks', 'secret'),
	send: document(
		[
			...[
				'from',
				'to',
				'cc',
				'bcc',
				'ccEach',
				'replyTo',
				'subject',
				'text',
				'textFile',
				'html',
				'htmlFile',
				'markdownFile',
			],
			...['context', 'contextFile', 'header', 'tag', 'bulk', 'transactional', 'disableInline'],
			'track',
			...['strictVars', 'maxRecipients'],
			// A job is a ledger of this machine there: see send-foreign.test.ts.
			...[
				'list',
				'csv',
				'batch',
				'again',
				'retryUnknown',
				'expectCount',
				'skipInvalid',
				'sample',
				'map',
				'encoding',
			],
			'testTo',
			// There is no status to wait for: on such a service `send` ends with its answer.
			...['wait', 'waitTimeout'],
		],
		{
			template: ['send', '--from', 'news@example.com', '--to', 'ann@example.com', '--template', 'Welcome'],
			campaign: [...single, '--campaign', uuid],
			idempotencyKey: [...single, '--idempotency-key', 'k'],
			results: [...single, '--results', file],
			rate: [...single, '--rate', '10/s'],
			connections: [...single, '--connections', '2'],
			preview: [...single, '--preview', 'text'],
			previewAs: [...single, '--preview-as', 'ann@example.com'],
			eml: [...single, '--eml', '-'],
			// Its lists are read as they are: what picks people and times is the engine's.
			excludeList: [...toList, '--exclude-list', '1'],
			where: [...toList, '--where', 'name=Ann'],
			whereOpened: [...toList, '--where-opened', 'spring'],
			whereNotOpened: [...toList, '--where-not-opened', 'spring'],
			at: [...toList, '--at', 'tomorrow 9:00'],
			in: ['send', ...mail, '--csv', people, '--in', '2h', ...agreed],
			window: ['send', '--batch', requests, '--window', '09:00-18:00', ...agreed],
			attach: [...single, '--attach', file],
		},
	),
	'campaigns list': anywhere('campaigns there are kept on this machine'),
	'campaigns get': anywhere('campaigns there are kept on this machine'),
	'campaigns results': anywhere('campaigns there are kept on this machine'),
	'campaigns compare': ours('reports', 'campaigns', 'compare', uuid, uuid),
	'report compare': ours('reports', 'report', 'compare'),
	'campaigns links': ours('reports', 'campaigns', 'links', uuid),
	'campaigns report': document(
		[...['from', 'to', 'last', 'event', 'chart', 'failIf'], 'save', 'excel', 'force', 'watch'],
		{
			tag: ['campaigns', 'report', uuid, '--tag', 'news'],
			human: ['campaigns', 'report', uuid, '--human'],
		},
	),
	'campaigns resume': anywhere('goes on with a campaign kept on this machine'),
	'campaigns cancel': anywhere('campaigns there are kept on this machine'),
	report: document(
		[...['from', 'to', 'last', 'campaign', 'event', 'chart', 'failIf'], 'save', 'excel', 'force', 'watch'],
		{
			tag: ['report', '--tag', 'news'],
			human: ['report', '--human'],
		},
	),
	'templates list': ours('templates', 'templates', 'list'),
	'templates get': ours('templates', 'templates', 'get', uuid),
	'templates create': ours('templates', 'templates', 'create', '--name', 'W', '--text-file', file),
	'templates update': ours('templates', 'templates', 'update', uuid, '--name', 'X'),
	'templates delete': ours('templates', 'templates', 'delete', uuid, '-y'),
	'templates render': ours('templates', 'templates', 'render', uuid),
	'templates push': ours('templates', 'templates', 'push', 'mails', '--prune', '-y'),
	'templates pull': ours('templates', 'templates', 'pull', 'mails', '--force'),
	'senders list': document(),
	'senders add': document(),
	'senders remove': document(),
	'messages list': ours('messages', 'messages', 'list'),
	'messages get': ours('messages', 'messages', 'get', uuid),
	'messages raw': ours('messages', 'messages', 'raw', uuid),
	'messages cancel': ours('messages', 'messages', 'cancel', uuid, '-y'),
	'messages retry': ours('messages', 'messages', 'retry', uuid),
	why: document(['all']),
	'suppressions list': ours('suppressions', 'suppressions', 'list'),
	'suppressions add': ours('suppressions', 'suppressions', 'add', 'a@example.com'),
	'suppressions remove': ours('suppressions', 'suppressions', 'remove', 'a@example.com', '-y'),
	'suppressions import': ours('suppressions', 'suppressions', 'import', people),
	'suppressions export': ours('suppressions', 'suppressions', 'export'),
	apply: document(['file', 'prune']),
	diff: document(['file', 'prune']),
	serve: machine('serve', '--port', '0'),
	worker: machine('worker', '--drain'),
	'engine init': machine('engine', 'init', '--sender', 'a@example.com'),
	'engine status': machine('engine', 'status'),
	'engine backup': machine('engine', 'backup', 'b.db'),
	'engine restore': machine('engine', 'restore', 'b.db'),
	'engine check': machine('engine', 'check'),
	'engine migrate': machine('engine', 'migrate', '--to', 'b.db'),
	'engine secrets status': machine('engine', 'secrets', 'status'),
	'engine secrets wrap': machine('engine', 'secrets', 'wrap'),
	'engine secrets unwrap': machine('engine', 'secrets', 'unwrap', '--yes'),
	'engine smtp-test': machine('engine', 'smtp-test'),
	'engine settings get': machine('engine', 'settings', 'get'),
	'engine settings set': machine('engine', 'settings', 'set', 'time_zone', 'UTC'),
	'engine settings unset': machine('engine', 'settings', 'unset', 'time_zone'),
	'engine queue stats': machine('engine', 'queue', 'stats'),
	'engine queue pause': machine('engine', 'queue', 'pause'),
	'engine queue resume': machine('engine', 'queue', 'resume'),
	'engine tokens list': machine('engine', 'tokens', 'list'),
	'engine tokens create': machine('engine', 'tokens', 'create', '--name', 'ci'),
	'engine tokens revoke': machine('engine', 'tokens', 'revoke', 'ci', '-y'),
	'engine dkim add': machine('engine', 'dkim', 'add', '--domain', 'example.com', '--selector', 's1'),
	'engine dkim list': machine('engine', 'dkim', 'list'),
	'engine dkim remove': machine(
		'engine',
		'dkim',
		'remove',
		'--domain',
		'example.com',
		'--selector',
		's1',
		'-y',
	),
	'engine bounces ingest': machine('engine', 'bounces', 'ingest', file),
	'engine bounces explain': anywhere('explains a file, and goes to no deployment'),
	demo: { kind: 'machine', argv: ['demo'], says: /--base-url does not go with demo/ },
	sink: { kind: 'machine', argv: ['sink'], says: /--base-url does not go with sink/ },
	...Object.fromEntries(
		['bash', 'zsh', 'fish', 'powershell', 'words'].map((name) => [
			`completion ${name}`,
			anywhere('never goes to the network'),
		]),
	),
	api: anywhere('sends what it is told to, wherever that is'),
	smoke: anywhere('looks at any deployment; writes with --full only, which is what is asked for'),
	doctor: anywhere('looks at any deployment, and changes nothing'),
	login: anywhere('keeps a profile of any deployment'),
	logout: anywhere('forgets the token of a profile'),
	'profile list': anywhere('profiles are files of this machine'),
	'profile show': anywhere('profiles are files of this machine'),
	'profile add': anywhere('profiles are files of this machine'),
	'profile use': anywhere('profiles are files of this machine'),
	'profile rename': anywhere('profiles are files of this machine'),
	'profile remove': anywhere('profiles are files of this machine'),
	'config list': anywhere('settings are files of this machine'),
	'config get': anywhere('settings are files of this machine'),
	'config set': anywhere('settings are files of this machine'),
	'config unset': anywhere('settings are files of this machine'),
	'config path': anywhere('settings are files of this machine'),
	'config explain': anywhere('says which deployment it would be, and goes to none'),
	commands: anywhere('the tree itself'),
	version: anywhere('this program'),
	help: anywhere('this program'),
};

/** Calls of the document's commands that change something: with `--dry-run` they only read. */
const changes: Readonly<Record<string, Argv>> = {
	apply: ['-f', declared],
	'lists create': ['--name', 'New', '--email-reason', 'r'],
	'lists update': ['1', '--name', 'Other'],
	'lists delete': ['1'],
	'lists clear': ['1'],
	'subscribers create': ['-l', '1', '--email', 'new@example.com'],
	'subscribers update': ['ann@example.com', '-l', '1', '--meta', 'city=Rome'],
	'subscribers activate': ['1', '-l', '1'],
	'subscribers deactivate': ['1', '-l', '1'],
	'subscribers delete': ['1', '-l', '1'],
	'subscribers import': [people, '-l', '1', '--create-fields'],
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

describe('the table of what is ours', () => {
	it('has a row for every command, and no other', () => {
		expect(Object.keys(table).sort()).toEqual(commands.map(({ path }) => path).sort());
	});

	it.each(
		commands.filter(({ path }) => table[path]?.kind === 'document'),
	)('knows of every option of $path whether it is ours', ({ path, command }) => {
		const standing = table[path];
		if (standing?.kind !== 'document') throw new Error('filtered above');
		const known = [...new Set([...standing.plain, ...Object.keys(standing.ours)])];
		expect(
			known.sort(),
			`${path}: name each option in this file's table, in plain (any deployment) or ours`,
		).toEqual(Object.keys(command.options).sort());
	});
});

describe('on a deployment that is not ours', () => {
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
			[file]: 'file.txt',
			[people]: 'people.csv',
			[declared]: 'mail.yaml',
			[requests]: 'requests.ndjson',
		};
		const words = argv.map((word) => (files[word] === undefined ? word : join(home, files[word])));
		return cli(['--base-url', foreign.baseUrl, '--no-input', '--retries', '0', ...words], {
			env: { HOME: home, MAILCTL_TOKEN: 't' },
		});
	};

	const refused = async (argv: Argv, says: RegExp) => {
		const before = foreign.writes.length;
		const { code, stdout, stderr } = await call(argv);
		expect({ code, stdout, says: says.test(stderr) ? 'it' : stderr }).toEqual({
			code: 2,
			stdout: '',
			says: 'it',
		});
		expect(foreign.writes.slice(before)).toEqual([]);
	};

	const rows = commands.map(({ path }) => ({ path, standing: table[path] }));

	it.each(
		rows.flatMap(({ path, standing }) => (standing?.kind === 'ours' ? [{ path, ...standing }] : [])),
	)('$path is refused by its name, and nothing is written', ({ path, argv }) =>
		refused(argv, new RegExp(`mailctl ${path} is not for this deployment`)));

	it.each(
		rows.flatMap(({ path, standing }) =>
			standing?.kind === 'document'
				? Object.entries(standing.ours).map(([option, argv]) => ({ path, option, argv }))
				: [],
		),
	)('$path with the option $option is refused, and nothing is written', ({ argv }) =>
		refused(
			argv,
			/is not for this deployment|makes its messages by itself|embedded engine|machine that owns the database/,
		));

	it.each(
		rows.flatMap(({ path, standing }) => (standing?.kind === 'machine' ? [{ path, ...standing }] : [])),
	)('$path is refused: it is for the machine that owns the database', ({ argv, says }) =>
		refused(argv, says ?? /works on a database of this machine/));

	it.each(
		commands.flatMap(({ path, command }) =>
			command.writes === true && table[path]?.kind === 'document' ? [{ path }] : [],
		),
	)('$path with --dry-run shows what it would do, and writes nothing', async ({ path }) => {
		const argv = changes[path];
		if (argv === undefined) throw new Error(`no call of ${path} that changes something`);
		const before = foreign.writes.length;
		const { code, stdout, stderr } = await call([...path.split(' '), ...argv, '-n', '-o', 'json']);
		expect({ code, stderr, plan: JSON.parse(stdout) }).toMatchObject({ code: 0, plan: { dry_run: true } });
		expect(foreign.writes.slice(before)).toEqual([]);
		expect(foreign.reads.filter((read) => read.includes('run_test'))).toEqual([]);
	});

	it('the commands of the document work, and an import goes row by row', async () => {
		foreign.writes.splice(0);
		expect(await call(['lists', 'list', '-o', 'name'])).toMatchObject({ code: 0, stdout: 'Readers\n' });
		expect(await call(single)).toMatchObject({ code: 0, stdout: `ann@example.com\t${uuid}\n` });
		expect(foreign.writes.splice(0)).toEqual(['POST /message/send/']);
		const words = ['subscribers', 'import', people, '-l', '1', '--map', 'Town=city', '-o', 'json'];
		const { code, stdout, stderr } = await call(words);
		expect({ code, document: JSON.parse(stdout), said: said({ stderr }) }).toEqual({
			code: 0,
			document: { read: 1, created: 1, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 },
			said: [
				{
					warning:
						'1 row has a disable_reason, which this service has no way to set: the reason was left out, the rows are inactive unless is_active says otherwise',
				},
			],
		});
		expect(foreign.writes.splice(0)).toEqual(['POST /sub/lists/1/subscribers/']);
	});
});
