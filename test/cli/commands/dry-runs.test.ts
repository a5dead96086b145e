// Each command's dry run prints the change in one shape, exits like the change, and changes nothing.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { flagOf } from '../../../src/cli/frame/command.js';
import { type CliResult, cli, makeHome } from '../../support/cli.js';
import { allCommands } from '../../support/command-tree.js';
import { makeProject, type Project, said } from '../../support/project.js';
import { type RunningServer, startServer } from '../../support/running-server.js';

let project: Project;
const known = { MESSAGE: '', CANCELED: '', TEMPLATE: '' };

/** Stays open to see commits, and to keep SQLite from checkpointing the log when a command closes. */
let reader: Database.Database;

beforeAll(async () => {
	project = await makeProject({ smtp: 9 });
	const { json, file } = project;
	const run = (line: string) => json(line.split(' '));
	const configure = (line: string) => cli(line.split(' '), { env: { HOME: project.folder } });
	await run('lists create --name L --email-reason r');
	await run('fields create --variable city --name City');
	await run('fields create --variable age --name Age');
	await run('subscribers create -l 1 --email ann@example.com --meta city=Oslo');
	await run('subscribers create -l 1 --email off@example.com --inactive');
	await run('subscribers create -l 1 --email dora@example.com');
	await run('suppressions add gone@example.com');
	await run('suppressions add also-gone@example.com');
	await run('suppressions add hard@example.com --reason HARDBOUNCED');
	await run('subscribers create -l 1 --email hard@example.com');
	await run('subscribers erase erased@example.com --confirm erased@example.com');
	await run('webhooks create --url https://hooks.example.com/ --type OPENED');
	await file('text.txt', 'Hello');
	await file('deep.html', '<b>'.repeat(401));
	await mkdir(join(project.folder, 'mails.d', 'T'), { recursive: true });
	await mkdir(join(project.folder, 'deep.d', 'T'), { recursive: true });
	await file('mails.d/T/body.txt', 'Hello all');
	await file('deep.d/T/body.html', '<b>'.repeat(401));
	await run(`templates create --name T --text-file ${join(project.folder, 'text.txt')}`);
	await run(`templates create --name U --text-file ${join(project.folder, 'text.txt')}`);
	await run('senders add other@example.com');
	const mail = '--from news@example.com --subject S --text T --no-wait';
	await run(`send ${mail} --to ann@example.com`);
	await run(`send ${mail} --list 1 --campaign j --yes --expect-count 2`);
	await run(
		'send --from news@example.com --subject S --text T --no-wait --to late@example.com --to canceled@example.com',
	);
	const { token } = (await run('engine tokens create --name t')) as { token: string };
	await file('news.db.token', token);
	await run('engine dkim add --domain example.com --selector s1 --type ed25519');
	expect(await configure('profile add p --base-url http://127.0.0.1:9')).toMatchObject({ code: 0 });
	expect(await configure('profile add q --base-url http://127.0.0.1:9')).toMatchObject({ code: 0 });
	expect(await configure('config set timeout 1m')).toMatchObject({ code: 0 });
	await file('people.csv', 'email,city\nann@example.com,Bergen\nnew@example.com,Oslo\nbad,\n');
	await file('gone.csv', 'email\nx@example.com\n');
	await run(`engine backup ${join(project.folder, 'kept.db')}`);
	await file('mail.yaml', 'lists: [{name: New, email_reason: r}]\n');
	await file('note.eml', 'From: a@example.com\r\nSubject: x\r\n\r\nhello\r\n');
	const [template] = (await run('templates list')) as { id: string }[];
	const messages = (await run('messages list')) as { id: string; to: string }[];
	const idOf = (address: string) => messages.find(({ to }) => to === address)?.id ?? '';
	await run(`messages cancel ${idOf('canceled@example.com')} --yes`);
	Object.assign(known, {
		TEMPLATE: template?.id,
		MESSAGE: idOf('late@example.com'),
		CANCELED: idOf('canceled@example.com'),
	});
	reader = new Database(project.db, { readonly: true });
	reader.prepare('SELECT count(*) FROM lists').get();
}, 120_000);
afterAll(() => void reader.close());

const mail = ['--from', 'news@example.com', '--subject', 'S', '--text', 'T'];

const calls: Readonly<Record<string, readonly [words: readonly string[], says: object]>> = {
	'lists create': [
		['--name', 'M', '--email-reason', 'r', '--public-name', 'P'],
		{ create: { name: 'M', email_reason: 'r', public_name: 'P' } },
	],
	'lists update': [
		['1', '--name', 'N', '--public-name', 'P'],
		{ update: 1, with: { name: 'N', public_name: 'P' } },
	],
	'lists delete': [['1'], { delete: [1] }],
	'lists clear': [['1'], { clear: 1, subscribers: 4 }],
	'subscribers create': [
		['-l', '1', '--email', 'a@example.com', '--meta', 'city=Oslo'],
		{ create: { email: 'a@example.com', meta: { city: 'Oslo' } } },
	],
	'subscribers update': [
		['ann@example.com', '-l', '1', '--name', 'Ann', '--meta', 'age=7', '--unset-meta', 'city'],
		{ update: 1, with: { name: 'Ann', meta: { age: '7' } } },
	],
	'subscribers activate': [['off@example.com', '-l', '1'], { activate: [2] }],
	'subscribers deactivate': [['ann@example.com', '-l', '1'], { deactivate: [1] }],
	'subscribers delete': [['ann@example.com', '-l', '1'], { delete: [1] }],
	'subscribers import': [
		['people.csv', '-l', '1'],
		{ import: 'people.csv', list_id: 1, read: 3, created: 1, updated: 1, rejected: 1 },
	],
	'subscribers erase': [['ann@example.com'], { erase: 'ann@example.com', subscribers: 1, messages: 2 }],
	'fields create': [['--variable', 'zip', '--name', 'Zip'], { create: { variable: 'zip', name: 'Zip' } }],
	'fields update': [['city', '--variable', 'town'], { update: 1, with: { variable: 'town' } }],
	'fields delete': [['city'], { delete: [1] }],
	'webhooks create': [
		['--url', 'https://hooks.example.com/', '--type', 'OPENED'],
		{ create: { url: 'https://hooks.example.com/', type: 'OPENED' } },
	],
	'webhooks update': [['1', '--type', 'HARDBOUNCED'], { update: 1, with: { type: 'HARDBOUNCED' } }],
	'webhooks delete': [['1'], { delete: [1] }],
	'webhooks test': [['1'], { test: 1 }],
	'webhooks listen': [
		['--port', '0', '--register', '--type', 'HARDBOUNCED'],
		{ listen: 0, with: { register: true, type: ['HARDBOUNCED'] } },
	],
	'webhooks replay': [['1', '--failed'], { replay: 1, with: { failed: true } }],
	'webhooks secret': [['--rotate'], { rotate: 'secret' }],
	send: [[...mail, '--to', 'ann@example.com'], { send: { to: ['ann@example.com'], subject: 'S' } }],
	'campaigns resume': [['j'], { resume: 'j', state: 'sending' }],
	'campaigns cancel': [['j'], { cancel: 'j', state: 'sending' }],
	'templates create': [
		['--name', 'W', '--text-file', 'text.txt'],
		{ create: { name: 'W', text_body: 'Hello' } },
	],
	'templates update': [['T', '--name', 'W'], { update: 'TEMPLATE', with: { name: 'W' } }],
	'templates delete': [['T'], { delete: ['TEMPLATE'] }],
	'templates push': [
		['mails.d', '--prune'],
		{
			push: 'mails.d',
			with: {
				templates: [
					{ action: 'updated', name: 'T', folder: 'T', files: [expect.stringMatching(/^body\.txt$/)] },
					{ action: 'deleted', name: 'U', folder: null, files: [] },
				],
			},
		},
	],
	'templates pull': [['other.d'], { pull: 'other.d', with: { templates: expect.anything() } }],
	'senders add': [['b@example.com'], { create: { from_email: 'b@example.com' } }],
	'senders remove': [['other@example.com'], { delete: [2] }],
	'messages cancel': [['MESSAGE'], { cancel: ['MESSAGE'] }],
	'messages retry': [['MESSAGE'], { retry: ['MESSAGE'] }],
	'suppressions add': [
		['x@example.com', '--reason', 'COMPLAINED'],
		{ suppress: ['x@example.com'], with: { reason: 'COMPLAINED' } },
	],
	'suppressions remove': [['gone@example.com'], { delete: ['gone@example.com'], with: {} }],
	'suppressions import': [['gone.csv'], { import: 'gone.csv', read: 1, created: 1 }],
	serve: [['--port', '0'], { serve: 'DB', with: { host: '127.0.0.1', port: 0 } }],
	worker: [[], { send: 'due', messages: { queued: 4 } }],
	smoke: [['--full'], { check: expect.arrayContaining([expect.objectContaining({ changes: true })]) }],
	'engine init': [
		['--sender', 'c@example.com', '--time-zone', 'Europe/Oslo'],
		{ init: 'DB', with: { settings: { time_zone: 'Europe/Oslo' }, sender: 'c@example.com' }, created: false },
	],
	'engine settings set': [['time_zone', 'Europe/Oslo'], { set: 'time_zone', with: { value: 'Europe/Oslo' } }],
	'engine settings unset': [['smtp_url'], { unset: 'smtp_url' }],
	'engine tokens create': [['--name', 'shop'], { create: { name: 'shop', scopes: ['admin'] } }],
	'engine tokens revoke': [['t'], { revoke: ['t'] }],
	'engine dkim add': [
		['--domain', 'example.com', '--selector', 's2', '--type', 'ed25519'],
		{ create: { domain: 'example.com', selector: 's2', type: 'ed25519' } },
	],
	'engine dkim remove': [
		['--domain', 'example.com', '--selector', 's1'],
		{ delete: [{ domain: 'example.com', selector: 's1' }] },
	],
	'engine queue pause': [['--reason', 'r'], { pause: 'queue', with: { reason: 'r' } }],
	'engine queue resume': [[], { resume: 'queue' }],
	'engine bounces ingest': [['note.eml'], { ingest: 'note.eml', read: 1, not_reports: 1 }],
	'engine secrets wrap': [[], { wrap: [{ key: null, secrets: expect.any(Number) }] }],
	'engine secrets unwrap': [[], { unwrap: [{ key: null, secrets: expect.any(Number) }] }],
	'engine backup': [['copy.db'], { backup: 'DB', with: { file: 'copy.db', replaced: false } }],
	'engine check': [['--repair'], { check: 'DB', with: { repair: true }, orphans: [], figures: 0 }],
	'engine migrate': [['--to', 'there.db'], { migrate: 'DB', with: { goes_on: false } }],
	'engine restore': [['kept.db'], { restore: 'kept.db', with: { database: 'DB', replaced: true } }],
	apply: [
		['--file', 'mail.yaml'],
		{
			apply: expect.stringContaining('mail.yaml'),
			changes: [{ action: 'create', kind: 'lists', name: 'New', changes: expect.anything() }],
		},
	],
	api: [
		['POST', '/sub/fields/', '--data', '{"variable": "zip", "name": "Zip"}'],
		{ request: { method: 'POST', path: '/sub/fields/', body: { variable: 'zip', name: 'Zip' } } },
	],
	login: [
		['--profile', 'far', '--base-url', 'http://127.0.0.1:9', '--token-file', 'text.txt', '--no-check'],
		{ login: 'far', with: { base_url: 'http://127.0.0.1:9' } },
	],
	logout: [['--profile', 'p'], { logout: 'p', removed: false }],
	'profile add': [
		['r', '--base-url', 'http://127.0.0.1:9'],
		{ create: { name: 'r', baseUrl: 'http://127.0.0.1:9' } },
	],
	'profile use': [['p'], { use: 'p' }],
	'profile rename': [['p', 'other'], { update: 'p', with: { name: 'other' } }],
	'profile remove': [['p'], { delete: ['p'] }],
	'config set': [['timeout', '2m'], { set: 'timeout', with: { value: '2m' } }],
	'config unset': [['timeout'], { unset: 'timeout' }],
};

/** Hashes of all files, without the -shm index of SQLite's log, which changes when a process reads. */
function everything(folder = project.folder): Record<string, string> {
	const found: Record<string, string> = {};
	for (const name of readdirSync(folder, { recursive: true }).map(String)) {
		const path = join(folder, name);
		if (!statSync(path).isFile() || name.endsWith('-shm')) continue;
		found[name] = createHash('sha256').update(readFileSync(path)).digest('hex');
	}
	return found;
}

const version = () => reader.pragma('data_version', { simple: true });

/** Replaces placeholders in expected values by ids and paths that are known only after the setup. */
function filled<T>(value: T): T {
	if (typeof value === 'string') return nameOf(value) as T;
	if (typeof value !== 'object' || value === null || 'asymmetricMatch' in value) return value;
	if (Array.isArray(value)) return value.map(filled) as T;
	return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, filled(inner)])) as T;
}

function nameOf(text: string): string {
	const names: Record<string, string> = { DB: project.db, ...known };
	return (
		names[text] ?? (/^[\w.-]+\.(csv|txt|html|eml|db|yaml|d)$/.test(text) ? join(project.folder, text) : text)
	);
}

function run(path: string, words: readonly string[], more: readonly string[] = []) {
	const env = {
		HOME: project.folder,
		...(path === 'engine secrets wrap' && more.includes('json') && { MAILCTL_KEY: 'a'.repeat(64) }),
	};
	const all = [...path.split(' '), ...filled(words), ...more];
	return /^(login|logout|profile|config)\b/.test(path) ? cli(all, { env }) : project.run(all, { env });
}

const commands = (await allCommands()).filter(
	({ path, command }) => command.writes === true || path in calls,
);

describe('a dry run', () => {
	it('is tested in this file for every command that writes', () => {
		expect(commands.map(({ path }) => path).filter((path) => !(path in calls))).toEqual([]);
	});

	it.each(Object.keys(calls))('of %s prints the change but does not make it', async (path) => {
		const [words, says] = calls[path] ?? [[], {}];
		const before = { files: everything(), version: version() };
		const { code, stdout, stderr } = await run(path, words, ['-n', '-o', 'json']);
		expect({ code, stderr }).toMatchObject({ code: 0 });
		expect({ files: everything(), version: version() }).toEqual(before);
		const answer = JSON.parse(stdout);
		expect(answer).toMatchObject({ dry_run: true, ...filled(says) });
		expect(typeof (answer.with ?? {})).toBe('object');
	});

	const off = ['-l', '1'];
	const nobody = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';

	it('of erase --lift prints the address that erase would unblock', async () => {
		const words = ['erased@example.com', '--lift'];
		const { stdout } = await run('subscribers erase', words, ['-n', '-o', 'json']);
		expect(JSON.parse(stdout)).toEqual({ dry_run: true, lift: 'erased@example.com' });
	});

	it.each<[code: number, path: string, ...words: string[]]>([
		[5, 'lists create', '--name', ' ', '--email-reason', 'r'],
		[5, 'lists update', '1', '--public-name', 'x'.repeat(256)],
		[3, 'lists delete', '9', '--confirm', 'N'],
		[3, 'subscribers create', '-l', '9', '--email', 'a@example.com'],
		[5, 'subscribers create', ...off, '--email', 'a@'],
		[5, 'subscribers create', ...off, '--email', 'erased@example.com'],
		[3, 'subscribers update', 'no@example.com', ...off, '--name', 'N'],
		[5, 'subscribers update', 'hard@example.com', ...off, '--active'],
		[5, 'subscribers activate', 'hard@example.com', ...off],
		[9, 'subscribers activate', 'hard@example.com', 'ann@example.com', ...off],
		[3, 'subscribers delete', 'no@example.com', ...off, '--yes'],
		[3, 'subscribers erase', 'no@example.com', '--lift', '--yes'],
		[2, 'subscribers import', 'no.csv', ...off],
		[5, 'fields create', '--variable', 'city', '--name', 'Town'],
		[5, 'fields update', 'age', '--variable', 'city'],
		[3, 'fields delete', 'zip', '--confirm', 'zip'],
		[5, 'webhooks create', '--url', 'http://127.0.0.1:8080/', '--type', 'OPENED'],
		[5, 'webhooks update', '1', '--url', 'http://127.0.0.1:8080/'],
		[3, 'webhooks test', '9'],
		[3, 'webhooks replay', '1', nobody],
		[3, 'webhooks secret', '9', '--rotate'],
		[5, 'send', '--from', 'no@example.com', '--subject', 'S', '--text', 'T', '--to', 'ann@example.com'],
		[3, 'send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--list', '9'],
		[3, 'campaigns resume', 'k'],
		[3, 'campaigns cancel', 'k', '--yes'],
		[5, 'templates create', '--name', 'T', '--text-file', 'text.txt'],
		[5, 'templates update', 'U', '--html-file', 'deep.html'],
		[3, 'templates delete', 'W', '--yes'],
		[5, 'templates push', 'deep.d'],
		[2, 'templates push', 'none.d'],
		[3, 'templates pull', 'other.d', 'W'],
		[2, 'senders add', 'news@'],
		[5, 'senders add', 'News@Example.com'],
		[3, 'senders remove', 'no@example.com', '--yes'],
		[3, 'messages cancel', nobody, '--yes'],
		[5, 'messages retry', 'CANCELED'],
		[9, 'messages retry', 'CANCELED', 'MESSAGE'],
		[5, 'suppressions add', 'erased@example.com'],
		[9, 'suppressions add', 'erased@example.com', 'gone@example.com'],
		[3, 'suppressions remove', 'no@example.com', '--yes'],
		[9, 'suppressions remove', 'no@example.com', 'also-gone@example.com', '--yes'],
		[2, 'suppressions import', 'no.csv'],
		[2, 'engine settings set', 'time_zone', 'Nowhere'],
		[2, 'engine init', '--sender', 'news@'],
		[5, 'engine tokens create', '--name', 't'],
		[3, 'engine tokens revoke', 'u', '--yes'],
		[5, 'engine dkim add', '--domain', 'example.com', '--selector', 's1'],
		[2, 'engine dkim add', '--domain', 'example.com', '--selector', 's2', '--key-file', 'text.txt'],
		[3, 'engine dkim remove', '--domain', 'example.com', '--selector', 's2', '--yes'],
		[2, 'engine bounces ingest', 'no.eml'],
		[2, 'engine secrets wrap'],
		[2, 'engine backup', 'news.db'],
		[74, 'engine migrate', '--to', 'news.db'],
		[2, 'engine migrate', '--from', 'none.db', '--to', 'there.db'],
		[2, 'engine restore', 'news.db'],
		[74, 'engine restore', 'text.txt', '--confirm', 'restore'],
		[2, 'profile add', 'p', '--base-url', 'http://127.0.0.1:9'],
		[2, 'profile rename', 'p', 'q'],
		[2, 'config set', 'timeout', 'soon'],
		[2, 'login', '--base-url', 'http://127.0.0.1:9', '--token-file', 'no.csv', '--no-check'],
		[2, 'login', '--base-url', 'http://127.0.0.1:9'],
		[2, 'smoke', '--report-file', 'none/report.txt'],
		[2, 'worker', '--rate', 'fast'],
		[2, 'webhooks listen', '--secret-file', 'people.csv'],
		[6, 'login', '--base-url', 'http://127.0.0.1:9', '--token-file', 'text.txt'],
	])('exits with %i as the real run does: %s', async (code, path, ...words) => {
		const before = { files: everything(), version: version() };
		const dry = await run(path, words, ['-n']);
		expect({ files: everything(), version: version() }).toEqual(before);
		const real = await run(path, words);
		const complaints = ({ stderr }: CliResult) =>
			stderr.split('\n').filter((line) => /^(error|warning):/.test(line));
		expect(real.code).toBe(code);
		expect({ code: dry.code, says: complaints(dry) }).toEqual({ code, says: complaints(real) });
	});
});

describe('a dry run with a missing file', () => {
	const files = commands.flatMap(({ path, command }) =>
		Object.entries(command.options).flatMap(([key, { kind }]) =>
			kind === 'file' || kind === 'content' ? [{ path, flag: flagOf(key), kind }] : [],
		),
	);

	it.each(files)('exits with 2: $path $flag', async ({ path, flag, kind }) => {
		const words: readonly string[] = calls[path]?.[0] ?? [];
		const at = words.indexOf(flag);
		const others = [...words.slice(0, Math.max(at, 0)), ...words.slice(at === -1 ? 0 : at + 2)];
		const instead = ['--text', '--type'].filter((one) => one !== '--type' || flag === '--key-file');
		const bodies = others.filter(
			(word, index) => ![word, others[index - 1] ?? ''].some((one) => instead.includes(one)),
		);
		const beside: Readonly<Record<string, readonly string[]>> = {
			'--tls-cert': ['--tls-key', 'text.txt'],
			'--tls-key': ['--tls-cert', 'text.txt'],
			'--password-file': ['--login', 'me'],
			'--context-file': ['--text', 'T'],
		};
		const given = [...bodies, flag, kind === 'content' ? '@no.txt' : 'no.txt', ...(beside[flag] ?? [])];
		expect(await run(path, given, ['-n'])).toMatchObject({
			code: 2,
			stderr: expect.stringMatching(/^error: .*no\.txt: no such file\n/),
		});
	});
});

describe('a dry run without a database', () => {
	it('creates no database, not even the default one', async () => {
		const home = await makeHome();
		const dry = (...words: string[]) => cli([...words, '-n', '-o', 'json'], { env: { HOME: home } });
		const made = await dry('lists', 'create', '--name', 'L', '--email-reason', 'r');
		expect({ ...made, stdout: JSON.parse(made.stdout) }).toEqual({
			code: 0,
			stdout: { dry_run: true, create: { name: 'L', email_reason: 'r' } },
			stderr: '',
		});
		expect(JSON.parse((await dry('engine', 'init', '--time-zone', 'Europe/Oslo')).stdout)).toMatchObject({
			init: expect.stringContaining(home),
			created: true,
		});
		const db = join(home, 'named.db');
		expect(JSON.parse((await dry('--db', db, 'engine', 'init')).stdout)).toMatchObject({ init: db });
		expect((await dry('--db', db, 'lists', 'create', '--name', 'L', '--email-reason', 'r')).code).toBe(2);
		expect(readdirSync(home)).toEqual([]);
	});
});

describe('a dry run on a server', () => {
	let server: RunningServer;
	beforeAll(async () => {
		server = await startServer(project.db, ['--no-worker']);
	}, 60_000);
	afterAll(() => void server.stop());
	const served = (words: readonly string[]) =>
		cli(['--base-url', server.baseUrl, ...words], { env: { MAILCTL_TOKEN: server.token } });
	const unchecked = 'the service may still refuse this: only the service knows its own rules';
	const changes = () =>
		server
			.log()
			.trimEnd()
			.split('\n')
			.map((line): { method?: string; path?: string } => JSON.parse(line || '{}'))
			.filter(({ method = 'GET', path }) => method !== 'GET' && path !== '/ext/suppressions/check/');

	const ofThisMachine = /^(engine|serve|worker|login|logout|profile|config|smoke)\b/;
	const paths = Object.keys(calls).filter((path) => !ofThisMachine.test(path));

	it.each(paths)('prints that the service may still refuse the real run: %s', async (path) => {
		const [words] = calls[path] ?? [[]];
		const before = changes().length;
		const all = [...path.split(' '), ...filled(words), '-n', '-o', 'json'];
		const { code, stderr } = await served(all);
		expect({ code, said: said({ stderr }).filter(({ note }) => note === unchecked) }).toEqual({
			code: 0,
			said: [{ note: unchecked }],
		});
		expect(changes().slice(before)).toEqual([]);
		expect((await run(path, words, ['-n'])).stderr).not.toContain(unchecked);
	});

	it.each<[code: number, path: string, ...words: string[]]>([
		[9, 'suppressions add', 'erased@example.com', 'gone@example.com'],
		[3, 'webhooks test', '9'],
	])('exits with %i as the real run does: %s', async (code, path, ...words) => {
		const all = [...path.split(' '), ...filled(words)];
		const before = changes().length;
		const dry = await served([...all, '-n']);
		expect(changes().slice(before)).toEqual([]);
		const real = await served(all);
		const [first] = real.stderr.split('\n');
		expect(real.code).toBe(code);
		expect({ code: dry.code, says: dry.stderr.split('\n')[0] }).toEqual({ code, says: first });
	});
});
