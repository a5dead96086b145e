import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { cli, makeHome, programPath } from '../support/cli.js';
import { isInstalled, runProgram } from '../support/run-program.js';
import { startServer } from '../support/running-server.js';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFile(join(root, path), 'utf8');
const units = join(root, 'packaging/systemd');

let db: string;
beforeAll(async () => {
	db = join(await makeHome(), 'mail.db');
	const made = await cli(['--db', db, 'engine', 'init', '--smtp', 'smtp://127.0.0.1:25']);
	expect(made.code).toBe(0);
});

/** Parses and checks the command line without changing anything. */
const dryRun = async (words: readonly string[]) => {
	const { code, stderr } = await cli(['--db', db, ...words, '--dry-run']);
	return { words, code, stderr };
};
const done = (words: readonly string[]) => ({ words, code: 0, stderr: expect.any(String) });

/** Returns the JSON arrays that follow a word, one for each line with it. */
function lists(text: string, word: RegExp): string[][] {
	return [...text.matchAll(new RegExp(`^\\s*${word.source} (\\[.*\\])$`, 'gm'))].map(([, json = '']) =>
		JSON.parse(json),
	);
}

/** Returns the script of a health check, which requests port 8080. */
const scriptOf = (words: readonly string[]) => words[words.indexOf('-e') + 1] ?? '';

describe('the Docker image', () => {
	it('copies only files that exist and that .dockerignore allows', async () => {
		const [file, ignored] = await Promise.all([read('Dockerfile'), read('.dockerignore')]);
		const copies = [...file.matchAll(/^COPY (--from=build )?(.*) \S+$/gm)];
		const allowed = ignored.split('\n').filter((line) => line.startsWith('!'));
		const copied = new Set<string>();
		for (const [, isBuilt, paths = ''] of copies) {
			for (const path of paths.split(' ')) {
				const name = path.replace('/build/', '');
				expect([path, (await stat(join(root, name))) !== null]).toEqual([path, true]);
				if (isBuilt === undefined) copied.add(name);
				// The build creates `dist` and `node_modules`; all other files must be copied into it.
				else expect([...copied, 'dist', 'node_modules']).toContain(name);
			}
		}
		expect([...copied].map((name) => `!${name}`).sort()).toEqual(allowed.sort());
		expect(ignored).toMatch(/^\*$/m);
		const { files } = JSON.parse(await read('package.json'));
		for (const name of files.filter((one: string) => /^(bin|dist)$/.test(one)))
			expect(file).toContain(`COPY --from=build /build/${name} `);
	});

	it('starts a command that exists', async () => {
		const file = await read('Dockerfile');
		expect(lists(file, /ENTRYPOINT/)).toEqual([['mailctl']]);
		const [words = []] = lists(file, /CMD/);
		expect(await dryRun(words)).toEqual(done(words));
	});

	it('has the same health check as the Compose file, and the check succeeds only while the server runs', async () => {
		const [file, compose] = await Promise.all([read('Dockerfile'), read('packaging/compose.yaml')]);
		const [[, words = '[]'] = []] = [...file.matchAll(/^HEALTHCHECK .* CMD (\[.*\])$/gm)];
		const [check = []] = lists(compose, /test:/);
		const script = scriptOf(JSON.parse(words));
		expect(scriptOf(check)).toBe(script);
		const path = join(await makeHome(), 'mail.db');
		await cli(['--db', path, 'engine', 'init']);
		const server = await startServer(path, ['--no-worker']);
		const ask = () =>
			new Promise((resolve) => {
				const asked = script.replace('http://127.0.0.1:8080', server.baseUrl);
				execFile(process.execPath, ['-e', asked], (error) => resolve(error?.code ?? 0));
			});
		expect(await ask()).toBe(0);
		await server.stop();
		expect(await ask()).toBe(1);
	});
});

describe('the Compose file', () => {
	it('starts only commands that exist, and gives them one shared volume', async () => {
		const text = await read('packaging/compose.yaml');
		const commands = lists(text, /command:/);
		expect(commands.map(([command]) => command)).toEqual(['serve', 'worker']);
		for (const words of commands) expect(await dryRun(words)).toEqual(done(words));
		const [, [, ...check] = []] = lists(text, /test:/);
		expect(check[0]).toBe('mailctl');
		expect((await cli(['--db', db, ...check.slice(1)])).code).toBe(0);
		expect(lists(text, /volumes:/)).toEqual([['data:/data']]);
		expect(text).toContain('\n    build: ..\n');
	});
});

describe('the systemd units', async () => {
	const services = (await readdir(units)).filter((name) => name.endsWith('.service'));

	it.each(services)('start a command that exists: %s', async (name) => {
		const [, line = ''] = /^ExecStart=(.*)$/m.exec(await readFile(join(units, name), 'utf8')) ?? [];
		const [, inShell] = /^\/bin\/sh -c '(?:exec )?(.*)'$/.exec(line) ?? [];
		const [program, ...words] = (inShell ?? line).split(' ');
		expect(program).toBe('mailctl');
		if (inShell === undefined) return expect(await dryRun(words)).toEqual(done(words));
		// The command runs unchanged, except for the folder and the program, which are not installed here.
		const folder = await mkdtemp(join(tmpdir(), 'mailctl-units-'));
		const command = inShell
			.replaceAll('%%', '%')
			.replace('/var/lib/mailctl/backup', folder)
			.replace(/^mailctl/, `"${process.execPath}" "${programPath}"`);
		const env = { PATH: process.env['PATH'], HOME: folder, MAILCTL_DB: db };
		for (let day = 0; day < 2; day++) {
			const { status, stderr } = runProgram('/bin/sh', ['-c', command], { env });
			expect({ status, stderr }).toEqual({ status: 0, stderr: expect.any(String) });
		}
		expect((await readdir(folder)).filter((one) => one.endsWith('.db'))).toEqual([
			expect.stringMatching(/^mailctl-[1-7]\.db$/),
		]);
	});

	/** Copies the units, with the program of this checkout. */
	const installed = async () => {
		const folder = await mkdtemp(join(tmpdir(), 'mailctl-units-'));
		await cp(units, folder, { recursive: true });
		for (const name of services) {
			const text = await readFile(join(folder, name), 'utf8');
			await writeFile(join(folder, name), text.replace('ExecStart=mailctl', `ExecStart=${programPath}`));
		}
		return folder;
	};

	it.skipIf(!isInstalled('systemd-analyze'))('are accepted by systemd (needs systemd)', async () => {
		const folder = await installed();
		const paths = (await readdir(folder))
			.filter((name) => !name.endsWith('.d'))
			.map((name) => join(folder, name));
		expect(paths).toHaveLength(4);
		const { status, stderr } = runProgram('systemd-analyze', ['verify', ...paths]);
		expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
	});

	it.skipIf(!isInstalled('systemd-analyze') || !isInstalled('strace'))(
		'allow every system call of the program (needs systemd, strace)',
		async () => {
			const setOf = (name: string): string[] =>
				runProgram('systemd-analyze', ['syscall-filter', name])
					.stdout.split('\n')
					.map((line) => line.trim())
					.filter((line) => /^[@\w]/.test(line) && line !== name)
					.flatMap((line) => (line.startsWith('@') ? setOf(line) : [line]));
			const allowed = new Set(['@system-service', '@pkey'].flatMap(setOf));
			const refused = new Set(setOf('@privileged'));
			const home = await makeHome();
			const trace = join(home, 'trace');
			const words = ['-f', '-qq', '-o', trace, process.execPath, programPath, 'demo'];
			const env = { PATH: process.env['PATH'], HOME: home };
			expect(runProgram('strace', words, { env }).status).toBe(0);
			// SQLite calls fchown only as root, to give its files the owner of the database.
			const ofRoot = new Set(['fchown']);
			const calls = new Set(
				[...(await readFile(trace, 'utf8')).matchAll(/^\d+\s+(\w+)\(/gm)].map(([, call = '']) => call),
			);
			expect(calls.size).toBeGreaterThan(40);
			const forbidden = [...calls].filter((call) => !allowed.has(call) || refused.has(call));
			expect(forbidden.filter((call) => !ofRoot.has(call))).toEqual([]);
		},
	);
});
