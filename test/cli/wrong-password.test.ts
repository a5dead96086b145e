/** With a wrong PostgreSQL password, a command exits with 4 and a hint, and never prints the password. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cli } from '../support/cli.js';
import { allCommands } from '../support/command-tree.js';
import { parseShellLine } from '../support/golden/shell-line.js';
import { ask, canRunPostgres, type OwnPostgres, startOwn } from '../support/postgres.js';
import { makeProject, type Project } from '../support/project.js';

/** These commands open no database, or only a file. */
const apart =
	/^(sink|demo|login|logout|version|help|commands|(completion|config|profile)( .*)?|engine (backup|restore|secrets .*|bounces explain))$/;

/** Arguments instead of the command's first example, which would not connect to MAILCTL_DB. */
const ownCalls: Readonly<Record<string, (url: string) => string[]>> = {
	'engine migrate': (url) => ['engine', 'migrate', '--from', 'news.db', '--to', url, '--yes'],
};

/** Mail servers retry a pipe after exit 75; `doctor` reports the fault as a finding. */
const ownCodes: Readonly<Record<string, number>> = { 'engine bounces ingest': 75, doctor: 11 };

const files: Readonly<Record<string, string>> = {
	'people.csv': 'email\nann@example.com\n',
	'mail.yaml': 'senders: [news@example.com]\n',
	'bounce.eml': 'Subject: failure notice\n\n<ann@example.com>:\n550 5.1.1 no such user\n',
	'welcome.html': '<p>Welcome</p>',
};

const examples = (await allCommands())
	.filter(({ path }) => !apart.test(path))
	.map(({ path, command }) => ({ path, example: command.examples?.[0] ?? '' }));

describe.skipIf(!canRunPostgres())('a wrong or missing PostgreSQL password', () => {
	let server: OwnPostgres;
	let project: Project;
	let url: URL;
	const home = process.cwd();
	beforeAll(async () => {
		server = await startOwn();
		const admin = await server.createDatabase();
		await ask(admin, "CREATE ROLE guarded LOGIN PASSWORD 'right'");
		url = new URL(admin);
		url.username = 'guarded';
		url.password = 'geheim';
		project = await makeProject();
		for (const [name, content] of Object.entries(files)) await project.file(name, content);
		process.chdir(project.folder);
	});
	afterAll(async () => {
		process.chdir(home);
		await server.stop();
	});

	async function run(words: readonly string[], stdin = '') {
		const env = { HOME: project.folder, MAILCTL_DB: url.href };
		const said = await cli(words, { env, stdin });
		expect(said.stdout + said.stderr).not.toContain('geheim');
		return said;
	}

	it.each(examples)('is named as the cause of the error by $path', async ({ path, example }) => {
		const { argv, text } = parseShellLine(example);
		const words = ownCalls[path]?.(url.href) ?? argv;
		const { code, stdout, stderr } = await run(words, text ?? '');
		expect({ words, code }).toEqual({ words, code: ownCodes[path] ?? 4 });
		expect(stdout + stderr).toContain('the server refuses the user or the password');
	});

	it('in --from makes engine migrate exit with 4, and is not printed with --debug', async () => {
		const away = ['engine', 'migrate', '--from', url.href, '--to', 'back.db', '--yes'];
		expect(await run(away)).toMatchObject({ code: 4, stderr: expect.stringContaining('the password') });
		for (const format of ['json', 'table'])
			expect(await run(['lists', 'list', '--debug', '-o', format])).toMatchObject({ code: 4 });
	});

	it('is reported as missing if the URL contains no password', async () => {
		const without = new URL(url);
		without.password = '';
		expect(await run(['--db', without.href, 'lists', 'list'])).toMatchObject({
			code: 4,
			stderr: expect.stringContaining('wants a password: PGPASSWORD, or the URL, has it'),
		});
	});
});
