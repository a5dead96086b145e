/** Missing values on a terminal: each command asks for them, offers existing records, and can be interrupted. */
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { flagOf } from '../../src/cli/frame/command.js';
import { cli, makeHome } from '../support/cli.js';
import { allCommands } from '../support/command-tree.js';
import { makeProject } from '../support/project.js';
import { typing } from '../support/typing.js';

const ctrlC = '\x03';
const ctrlD = '\x04';

/** Shells call these commands, so they print nothing instead of asking for missing values. */
const silent = new Set(['completion complete']);

/** These commands have no `--db`. */
const ofProfiles = new Set(['profile', 'config']);

async function filled() {
	const project = await makeProject();
	const { json, run } = project;
	await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	await json(['lists', 'create', '--name', 'Writers', '--email-reason', 'r']);
	await json(['subscribers', 'create', '-l', '2', '--email', 'ann@example.com', '--name', 'Ann']);
	await json(['fields', 'create', '--variable', 'city', '--name', 'City']);
	await json(['templates', 'create', '--name', 'Welcome', '--text-file', await project.file('w.txt', 'Hi')]);
	await json(['webhooks', 'create', '--url', 'https://hooks.example.com/in', '--type', 'OPENED']);
	await json(['engine', 'tokens', 'create', '--name', 'shop']);
	const key = ['--domain', 'example.com', '--selector', 's1', '--type', 'ed25519'];
	await json(['engine', 'dkim', 'add', ...key]);
	const HOME = await makeHome();
	await cli(['profile', 'add', 'trial', '--db', 'trial.db'], { env: { HOME } });
	const typed = (argv: readonly string[], answers: Parameters<typeof typing>[0], columns?: number) =>
		typing(
			answers,
			(options) =>
				ofProfiles.has(argv[0] ?? '') ? cli(argv, { ...options, env: { HOME } }) : run(argv, options),
			columns,
		);
	return { ...project, typed };
}

const needing = (await allCommands()).filter(({ path, command }) => {
	const isAsked = command.args.some(({ optional }) => optional !== true);
	const required = Object.values(command.options).some((spec) => spec.required === true);
	return (isAsked || required) && !silent.has(path) && command.hidden !== true;
});

describe('a command on a terminal with 40 columns', () => {
	let project: Awaited<ReturnType<typeof filled>>;
	beforeAll(async () => {
		project = await filled();
	});

	it.each(needing)('asks for values, and stops on Ctrl-C: $path', async ({ path, command }) => {
		const [change] = command.changes ?? [];
		const words = [...path.split(' '), ...(change === undefined ? [] : [flagOf(change), 'X'])];
		for (const key of [ctrlC, ctrlD]) {
			const result = await project.typed(words, [['? ', key, 'all']], 40);
			const shown = stripVTControlCharacters(result.stderr);
			expect(shown).not.toContain('missing');
			if (/no \w+ to choose from/.test(shown)) expect(result.code).toBe(2);
			else {
				expect(shown.trim().split('\n').at(-1)).toBe('declined, nothing was changed');
				expect(result.code).toBe(130);
			}
		}
	});
});

describe('a missing value', () => {
	it('can be chosen from the existing records that match the typed text', async () => {
		const { typed } = await filled();
		expect(
			(
				await typed(
					['lists', 'get', '--fields', 'id'],
					[
						['Which list', 'writ', 'all'],
						['❯ Writers', ''],
					],
				)
			).stdout,
		).toContain('2');
		const person = await typed(
			['subscribers', 'get', '--fields', 'email'],
			[
				['Which list', 'Writ', 'all'],
				['❯ Writers', ''],
				['❯ ann@example.com', ''],
			],
		);
		expect(person).toMatchObject({ code: 0 });
		expect(person.stdout).toContain('ann@example.com');
	});

	it('is looked up by the exact name first, then by the beginning of the name, then by any part of it', async () => {
		const { run, json, file } = await makeProject();
		for (const name of ['L', 'Big S', 'Subscribed', 'S', 'Subscribers'])
			await json(['lists', 'create', '--name', name, '--email-reason', 'r']);
		const people = await file('people.csv', 'email\nann@example.com\nbob@example.com\n');
		await json(['subscribers', 'import', people, '-l', 'L']);
		const chosen = async (keys: string) => {
			const words = ['lists', 'get', '--fields', 'name', '-o', 'csv'];
			return (await typing([['Which list:', keys]], (options) => run(words, options))).stdout;
		};
		expect(await chosen('Subscribers')).toBe('name\r\nSubscribers\r\n');
		expect(await chosen('S')).toBe('name\r\nS\r\n');
		expect(await chosen('sub')).toBe('name\r\nSubscribed\r\n');
		expect(await chosen('ig')).toBe('name\r\nBig S\r\n');
		expect(await chosen('4')).toBe('name\r\nS\r\n');
	});

	it('can be a subscriber’s whole address, even if many longer addresses contain it', async () => {
		const { run, json, file } = await makeProject();
		await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		const others = Array.from({ length: 120 }, (_, at) => `x${at}.ann@example.com,Ann\n`).join('');
		const people = await file('people.csv', `email,name\n${others}ann@example.com,Zoe\n`);
		await json(['subscribers', 'import', people, '-l', '1']);
		const words = ['subscribers', 'get', '-l', '1', '--fields', 'email', '-o', 'csv'];
		const keys = 'ann@example.com';
		const { stdout } = await typing([['Which subscriber:', keys]], (options) => run(words, options));
		expect(stdout).toBe('email\r\nann@example.com\r\n');
	});

	it('is asked for again if the answer is invalid; mailctl prints the reason and keeps the text', async () => {
		const { typed, json } = await filled();
		const back = '\x7f'.repeat(3);
		const made = await typed(
			['fields', 'create'],
			[
				['Variable:', '2nd'],
				['do not begin with a digit', `${back}second`],
				['Name:', 'Second'],
			],
		);
		expect(made.code).toBe(0);
		expect(await json(['fields', 'get', 'second'])).toMatchObject({ name: 'Second' });
	});

	it('is asked for again if the engine would reject the answer', async () => {
		const { typed, run } = await filled();
		const refused = await typed(
			['engine', 'settings', 'set', 'time_zone'],
			[
				['New value', 'Europe/Nowhere'],
				['time zone', `${'\x7f'.repeat(14)}Europe/Oslo`],
			],
		);
		expect(refused.code).toBe(0);
		expect((await run(['engine', 'settings', 'get', 'time_zone'])).stdout).toBe('Europe/Oslo\n');
	});

	it('can be the path of an existing file or directory', async () => {
		const { typed, file, folder, db, run } = await filled();
		const text = await file('subject.txt', 'Hi');
		const mails = join(folder, 'mails');
		const clear = '\x15';
		const pulled = await typed(['templates', 'pull'], [['Directory:', mails]]);
		expect(pulled).toMatchObject({ code: 0, stderr: expect.stringContaining(`pulled to ${mails}`) });
		const pushed = await typed(
			['templates', 'push'],
			[
				['Directory:', `${mails}/no`],
				['no such directory', clear + text],
				['is not a directory', clear + mails],
			],
		);
		expect(pushed).toMatchObject({ code: 0, stderr: expect.stringContaining('1 unchanged') });
		const ingested = await typed(
			['engine', 'bounces', 'ingest'],
			[
				['Bounces:', `${mails}/no`],
				['no such file', clear + mails],
			],
		);
		expect(ingested.code).toBe(0);
		await run(['engine', 'backup', `${db}.backup`]);
		const restored = await typed(
			['engine', 'restore'],
			[
				['Backup:', mails],
				['is a directory', `${clear}${db}.backup`],
				['Type restore', 'restore'],
			],
		);
		expect(restored).toMatchObject({ code: 0, stderr: expect.stringContaining('the queue is paused') });
	});

	it('can be the base URL for profile add', async () => {
		const env = { HOME: await makeHome() };
		const answers = [['Base URL of the service:', 'https://mail.example.com\r']] as const;
		const added = await typing([...answers], (options) =>
			cli(['profile', 'add', 'prod'], { ...options, env }),
		);
		expect(added).toMatchObject({ code: 0, stdout: expect.stringContaining('https://mail.example.com') });
	});

	it('of `templates create` can be written in $EDITOR', async () => {
		const { run } = await makeProject();
		const env = { EDITOR: `sh -c 'echo Hello > "$0"'` };
		const words = ['templates', 'create', '--name', 'Welcome'];
		const made = await typing([['Text:', '\r']], (options) => run(words, { ...options, env }));
		expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining('Welcome') });
	});

	it('cannot be chosen if there is no record, and a hint shows how to create one', async () => {
		const { run } = await makeProject();
		const result = await typing([], (options) => run(['lists', 'get'], options));
		expect(result.code).toBe(2);
		expect(result.stderr).toMatch(/no list to choose from[\s\S]*hint: mailctl --db .* lists create/);
	});

	it('makes the command exit with 2 in a script, with --no-input and on a dumb terminal', async () => {
		const { run } = await filled();
		expect(await run(['lists', 'get'])).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('missing <list>'),
		});
		for (const [more, env] of [
			[['--no-input'], {}],
			[[], { TERM: 'dumb' }],
		] as const) {
			const told = await typing([], (options) => run(['lists', 'get', ...more], { ...options, env }));
			expect(told).toMatchObject({ code: 2, stderr: expect.stringContaining('missing <list>') });
		}
	});

	it.each([
		[['campaigns', 'get'], 'missing <campaign>: a name or a UUID', 'mailctl campaigns list'],
		[['campaigns', 'compare'], 'missing <campaign>: names or UUIDs, two or more', 'mailctl campaigns list'],
		[['lists', 'get'], 'missing <list>: id or exact name', 'mailctl lists list'],
		[['fields', 'get'], /^missing <field>: /, 'mailctl fields list'],
		[['subscribers', 'get', '-l', '1'], /^missing <subscriber>: /, 'mailctl subscribers list --list 1'],
		[['subscribers', 'list'], /^missing --list: /, 'mailctl lists list; or set MAILCTL_LIST'],
		[['messages', 'get'], /^missing <id>: /, 'mailctl messages list'],
		[['templates', 'get'], /^missing <template>: /, 'mailctl templates list'],
		[['senders', 'delete'], /^missing <address>: /, 'mailctl senders list'],
		[['engine', 'tokens', 'revoke'], /^missing <name>: /, 'mailctl engine tokens list'],
		[['engine', 'settings', 'set'], /^missing <setting>: /, 'mailctl engine settings get'],
	])('is reported for %j together with the command that lists the possible values', async (words, message, hint) => {
		const { run } = await filled();
		const { code, stderr } = await run([...words, '--json']);
		const { error } = JSON.parse(stderr);
		expect({ code, hint: error.hint.replace(/ --db \S+/, '') }).toEqual({ code: 2, hint });
		if (typeof message === 'string') expect(error.message).toBe(message);
		else expect(error.message).toMatch(message);
	});
});

describe('a secret', () => {
	it('is hidden while the user types it for a setting', async () => {
		const { typed, run } = await filled();
		const words = ['engine', 'settings', 'set'];
		const answers: Parameters<typeof typing>[0] = [
			['Which setting', 'smtp_password', 'all'],
			['❯ smtp_password', ''],
			['New value', 'opensesame'],
		];
		const { code, stdout, stderr } = await typed(words, answers);
		expect(code).toBe(0);
		expect(`${stdout}${stderr}`).not.toContain('opensesame');
		const kept = await run(['engine', 'settings', 'get', 'smtp_password']);
		expect(kept.stdout).toBe('********\n');
	});

	it('is hidden while the user types it for a webhook or a login', async () => {
		const { typed } = await filled();
		const hook = ['webhooks', 'create', '--url', 'https://hooks.example.com/b', '--type', 'OPENED'];
		const made = await typed([...hook, '--login', 'me'], [['Password of me', 'opensesame']]);
		expect(made).toMatchObject({ code: 0, stderr: expect.not.stringContaining('opensesame') });
		const login = await typing(
			[
				['Base URL', 'ftp://mail.example.com'],
				['is not an http or https URL', `${'\x7f'.repeat(22)}127.0.0.1:9`],
				['http://127.0.0.1:9', `${'\x7f'.repeat(11)}http://127.0.0.1:9`],
				['API token', 'open sesame'],
				['ASCII characters', `${'\x7f'.repeat(11)}opensesame`],
			],
			(options) => cli(['login', '--no-check'], options),
		);
		expect(login).toMatchObject({ code: 0, stderr: expect.not.stringContaining('sesame') });
	});

	it.each([
		['engine settings set smtp_password opensesame', 'other users can see arguments'],
		['login --token=opensesame', "unknown option '--token'"],
	])('is rejected as an argument and not printed: mailctl %s', async (line, said) => {
		const { run } = await makeProject();
		const { code, stdout, stderr } = await run(line.split(' '));
		expect([code, stdout]).toEqual([2, '']);
		expect(stderr).toContain(said);
		expect(stderr).not.toContain('opensesame');
	});
});

it('mailctl deletes nothing if the user types the wrong name to confirm', async () => {
	const { typed, run } = await filled();
	const answers: Parameters<typeof typing>[0] = [['Type Readers to confirm:', 'Reader']];
	expect(await typed(['lists', 'delete', '1'], answers)).toMatchObject({
		code: 130,
		stderr: expect.stringMatching(/declined, nothing was changed\nhint: "Reader" is not "Readers"\n$/),
	});
	expect((await run(['lists', 'list', '-o', 'name'])).stdout).toBe('Readers\nWriters\n');
});
