import { createHash } from 'node:crypto';
import { chmodSync, statSync } from 'node:fs';
import {
	chmod,
	copyFile,
	mkdir,
	mkdtemp,
	readdir,
	readFile,
	rename,
	symlink,
	writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Finding } from '../../../src/cli/doctor/checks.js';
import { cli, makeHome } from '../../support/cli.js';
import { makeProject, type Project } from '../../support/project.js';
import { runProgram } from '../../support/run-program.js';

let project: Project;
beforeEach(async () => {
	project = await makeProject();
});

async function found(check: string, argv: readonly string[] = [], code = 0): Promise<Finding[]> {
	const group = check.split('.')[0] ?? '';
	const all = await project.json(['doctor', '--offline', '--only', group, ...argv], { code });
	return (all as Finding[]).filter((one) => one.check === check);
}

describe('doctor on a database', () => {
	it('rejects an empty selection of checks and prints the names of the groups', async () => {
		const stderr = expect.stringContaining('choose from the groups of this target: machine, config');
		expect(await project.run(['doctor', '--only', 'service'])).toMatchObject({ code: 2, stderr });
	});

	it('prints only warnings and problems with --quiet, and all checks as JSON', async () => {
		const words = ['doctor', '--offline', '-q', '--only', 'settings'];
		for (const output of ['tsv', 'table']) {
			const { code, stdout, stderr } = await project.run([...words, '-o', output]);
			expect({ code, stderr, names: stdout.match(/settings\.[\w-]+/g) }, output).toEqual({
				code: 11,
				stderr: '',
				names: ['settings.smtp', 'settings.public-url', 'settings.bounces'],
			});
			expect(stdout).not.toContain('mailctl doctor');
		}
		expect(await project.json(words, { code: 11 })).toHaveLength(6);
	});
});

describe('doctor', () => {
	const snapshot = async () =>
		Promise.all(
			(await readdir(project.folder)).sort().map(async (name) => {
				const bytes = await readFile(join(project.folder, name)).catch(() => '');
				return [name, createHash('sha256').update(bytes).digest('hex')];
			}),
		);

	it('changes neither an unused database nor the files beside it', async () => {
		const before = await snapshot();
		await project.run(['doctor', '--offline', '--full']);
		expect(await snapshot()).toEqual(before);
	});

	it('does not change the write-ahead log that a killed process left', async () => {
		const writer = new Database(project.db);
		writer.exec("INSERT INTO settings VALUES ('time_zone', 'Mars/Base', 1)");
		const left = join(project.folder, 'left.db');
		await copyFile(project.db, left);
		await copyFile(`${project.db}-wal`, `${left}-wal`);
		writer.close();
		const before = [await readFile(left), await readFile(`${left}-wal`)];
		await cli(['doctor', '--db', left, '--offline', '-o', 'json']);
		expect([await readFile(left), await readFile(`${left}-wal`)]).toEqual(before);
	});

	it('reports a missing default database as a problem, and creates no file', async () => {
		const home = await makeHome();
		const { code, stdout } = await cli(['doctor', '--only', 'database', '-o', 'json'], {
			env: { HOME: home },
		});
		expect({ code, first: JSON.parse(stdout)[0], files: await readdir(home) }).toEqual({
			code: 11,
			first: {
				check: 'database.file',
				level: 'problem',
				message: `no database at ${home}/.local/share/mailctl/mailctl.db`,
				fix: 'mailctl engine init --sender ADDRESS --smtp smtp://USER@HOST:587',
			},
			files: [],
		});
	});
});

/**
 * Makes `file` read-only, but not `but` inside it. Root needs a mount for this. Returns false if that is impossible.
 */
function makeReadOnly(file: string, but?: string): boolean {
	if (process.getuid?.() !== 0) {
		const { mode } = statSync(file);
		onTestFinished(() => chmodSync(file, mode));
		chmodSync(file, mode & 0o555);
		return true;
	}
	if (runProgram('mount', ['--bind', file, file]).status !== 0) return false;
	onTestFinished(() => void runProgram('umount', ['-l', file]));
	if (runProgram('mount', ['-o', 'remount,bind,ro', file]).status !== 0) return false;
	if (but === undefined) return true;
	if (runProgram('mount', ['--bind', but, but]).status !== 0) return false;
	onTestFinished(() => void runProgram('umount', ['-l', but]));
	return runProgram('mount', ['-o', 'remount,bind,rw', but]).status === 0;
}

describe('the file of a database', () => {
	it('is a problem if another program made the SQLite database', async () => {
		const other = join(project.folder, 'other.db');
		const db = new Database(other);
		db.exec('CREATE TABLE t (a)');
		db.close();
		const { code, stdout } = await cli(['doctor', '--db', other, '--only', 'database', '-o', 'json']);
		expect({ code, first: JSON.parse(stdout)[0] }).toMatchObject({
			code: 11,
			first: { level: 'problem', message: `${other} is a SQLite database, but not a mailctl database` },
		});
	});

	it('is fully checked only up to 128 MiB, unless --full is given', async () => {
		expect(await found('database.sound')).toMatchObject([{ level: 'ok', message: 'no damage found' }]);
		const db = new Database(project.db);
		db.prepare('INSERT INTO attachments VALUES (?, 1, 1, NULL, zeroblob(?))').run(
			'0'.repeat(64),
			129 * 2 ** 20,
		);
		db.close();
		expect(await found('database.sound')).toEqual([
			{
				check: 'database.sound',
				level: 'skipped',
				message: expect.stringMatching(/^the file is large \(130 MiB\): mailctl .* doctor --full checks it$/),
				fix: null,
			},
		]);
		expect(await found('database.sound', ['--full'])).toMatchObject([{ level: 'ok' }]);
	});

	it.each([
		[0xff, 3, 9],
		[0, 5, 6],
		[0, 9, 10],
	])('is a problem if damaged (byte %d repeated from page %d up to page %d)', async (byte, first, end) => {
		const bytes = await readFile(project.db);
		bytes.fill(byte, 8192 * first, 8192 * end);
		await writeFile(project.db, bytes);
		expect(await found('database.sound', [], 11)).toMatchObject([
			{
				level: 'problem',
				message: expect.stringMatching(/damaged|malformed/),
				fix: expect.stringContaining('engine restore BACKUP'),
			},
		]);
		const all = (await project.json(['doctor', '--offline'], { code: 11 })) as Finding[];
		expect(all.some(({ message }) => /\n|\*\*\*/.test(message))).toBe(false);
	});

	it('is a problem for doctor if it is read-only, and commands that write exit with 74', async ({ skip }) => {
		if (!makeReadOnly(project.db)) return skip('nothing can be mounted here');
		expect(await found('database.file', [], 11)).toMatchObject([
			{ level: 'problem', message: expect.stringContaining(`this user may not write to ${project.db}`) },
		]);
		const { code, stderr } = await project.run(['senders', 'add', 'new@example.com']);
		expect({ code, stderr }).toMatchObject({ code: 74, stderr: expect.stringContaining('writable') });
	});

	it('is reported as read-only if both the file and its folder are read-only', async ({ skip }) => {
		if (!makeReadOnly(project.folder)) return skip('nothing can be mounted here');
		expect(await found('database.file', [], 11)).toMatchObject([
			{
				level: 'problem',
				message: `${project.db}: the database file is read-only`,
				fix: expect.stringContaining('as the owner of the database'),
			},
		]);
		const { code, stderr } = await project.run(['lists', 'list']);
		expect({ code, stderr }).toMatchObject({ code: 74, stderr: expect.stringContaining('writable') });
	});

	it('is a problem for doctor and other commands if only its folder is read-only', async ({ skip }) => {
		if (!makeReadOnly(project.folder, project.db)) return skip('nothing can be mounted here');
		const says = `${project.db}: this user may not write to its folder`;
		expect(await found('database.file', [], 11)).toMatchObject([{ level: 'problem', message: says }]);
		expect(await project.run(['lists', 'list'])).toMatchObject({
			code: 74,
			stderr: expect.stringContaining(`error: ${says}\nhint: run mailctl as the owner of the database`),
		});
	});

	it('with a newer schema is a problem, and doctor suggests an upgrade of mailctl', async () => {
		const db = new Database(project.db);
		db.pragma('user_version = 99');
		db.close();
		expect(await found('database.schema', [], 11)).toMatchObject([
			{ level: 'problem', fix: 'upgrade mailctl' },
		]);
	});
});

describe('permissions of files', () => {
	async function access(db = project.db): Promise<Omit<Finding, 'check'>[]> {
		const { stdout } = await cli(['doctor', '--db', db, '--only', 'config', '-o', 'json']);
		const findings = JSON.parse(stdout) as Finding[];
		return findings.flatMap(({ check, ...rest }) => (check === 'config.access' ? [rest] : []));
	}

	it('are a problem if everyone can read a database; doctor prints one command for all files of the database', async () => {
		const writer = new Database(project.db);
		onTestFinished(() => void writer.close());
		writer.exec("INSERT INTO settings VALUES ('time_zone', 'UTC', 1)");
		for (const suffix of ['', '-wal', '-shm']) await chmod(project.db + suffix, 0o644);
		const message = `everyone on this machine can read ${project.db}, which holds secrets`;
		const fix = `chmod 600 ${project.db} ${project.db}-wal ${project.db}-shm`;
		expect(await access()).toEqual([{ level: 'problem', message, fix }]);
		const links = await mkdtemp(join(tmpdir(), 'mailctl-links-'));
		await symlink(project.db, join(links, 'link.db'));
		expect(await access(join(links, 'link.db'))).toEqual([{ level: 'problem', message, fix }]);
		await chmod(project.db, 0o600);
		await chmod(`${project.db}-shm`, 0o600);
		expect(await access()).toMatchObject([{ fix: `chmod 600 ${project.db}-wal` }]);
	});

	it('are a problem if other users may write to the database’s folder', async () => {
		const folder = join(project.folder, 'shared');
		const db = join(folder, 'news.db');
		await mkdir(folder);
		await rename(project.db, db);
		await chmod(folder, 0o757);
		const message = `everyone on this machine can write to the folder ${folder}, which holds secrets`;
		expect(await access(db)).toEqual([
			{
				level: 'problem',
				message,
				fix: `chmod go-w ${folder}`,
			},
		]);
		await chmod(folder, 0o1777);
		expect(await access(db)).toEqual([
			{
				level: 'problem',
				message,
				fix: 'use a private folder: mkdir -m 700 FOLDER',
			},
		]);
		await chmod(folder, 0o755);
		expect(await access(db)).toMatchObject([{ level: 'ok' }]);
	});

	it('are not checked if the database’s path is a device or a folder', async () => {
		expect(await access('/dev/null')).toMatchObject([{ level: 'ok' }]);
		expect(await access(tmpdir())).toMatchObject([{ level: 'ok' }]);
	});

	it.each([
		['the configuration, which decides where tokens are sent', '/config.json', 0o666, 'chmod 600'],
		['the configuration folder', '', 0o777, 'chmod go-w'],
	])('are checked for %s', async (_, name, mode, fix) => {
		const home = await makeHome();
		const folder = join(home, '.config/mailctl');
		await mkdir(folder, { recursive: true, mode: 0o700 });
		await writeFile(`${folder}/config.json`, '{"profiles":{}}', { mode: 0o600 });
		await chmod(folder + name, mode);
		const argv = ['doctor', '--base-url', 'https://mail.example.com', '--only', 'config', '-o', 'json'];
		const { code, stdout } = await cli(argv, { env: { HOME: home } });
		const may =
			name === '' ? `write to the folder ${folder}, which holds secrets` : `change ${folder}${name}`;
		expect({ code, access: JSON.parse(stdout)[1] }).toEqual({
			code: 11,
			access: {
				...{ check: 'config.access', level: 'problem' },
				...{ message: `everyone on this machine can ${may}`, fix: `${fix} ${folder}${name}` },
			},
		});
	});
});
