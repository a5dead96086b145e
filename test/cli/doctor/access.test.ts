// Who may open a database and what is beside it: what is said of that, and the command that mends all of it.
import { chmod, mkdir, mkdtemp, rename, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { type FileAccess, judgeFolder, judgePrivate, judgeSecrets } from '../../../src/cli/doctor/access.js';
import type { Finding } from '../../../src/cli/doctor/model.js';
import { cli, makeHome } from '../../support/cli.js';
import { makeProject, type Project } from '../../support/project.js';

describe('the files of a database', () => {
	let project: Project;
	beforeEach(async () => {
		project = await makeProject();
	});

	async function access(db = project.db): Promise<Omit<Finding, 'check'>[]> {
		const { stdout } = await cli(['doctor', '--db', db, '--only', 'config', '-o', 'json']);
		const findings = JSON.parse(stdout) as Finding[];
		return findings.flatMap(({ check, ...rest }) => (check === 'config.access' ? [rest] : []));
	}

	it('that everybody may read are closed with one command, the log and its index too', async () => {
		const writer = new Database(project.db);
		writer.exec("INSERT INTO settings VALUES ('time_zone', 'UTC', 1)");
		for (const suffix of ['', '-wal', '-shm']) await chmod(project.db + suffix, 0o644);
		expect(await access()).toEqual([
			{
				level: 'problem',
				message: `everybody on this machine may read ${project.db}, which holds secrets`,
				fix: `chmod 600 ${project.db} ${project.db}-wal ${project.db}-shm`,
			},
		]);
		await chmod(project.db, 0o600);
		await chmod(`${project.db}-shm`, 0o600);
		expect(await access()).toEqual([
			{
				level: 'problem',
				message: `everybody on this machine may read ${project.db}-wal, which holds secrets`,
				fix: `chmod 600 ${project.db}-wal`,
			},
		]);
		writer.close();
	});

	it('in a folder that others may write to are as good as theirs', async () => {
		const folder = join(project.folder, 'shared');
		await mkdir(folder);
		await rename(project.db, join(folder, 'news.db'));
		await chmod(folder, 0o757);
		expect(await access(join(folder, 'news.db'))).toEqual([
			{
				level: 'problem',
				message: `everybody on this machine may change ${folder}, and so replace what is kept in it`,
				fix: `chmod go-w ${folder}`,
			},
		]);
		await chmod(folder, 0o1777);
		expect(await access(join(folder, 'news.db'))).toEqual([
			{
				level: 'problem',
				message: `everybody on this machine may put files into ${folder}, beside what is kept in it`,
				fix: 'keep that in a folder of its own: mkdir -m 700 FOLDER',
			},
		]);
		await chmod(folder, 0o755);
		expect(await access(join(folder, 'news.db'))).toMatchObject([{ level: 'ok' }]);
	});

	it('are looked at where they are, and not where a link to them is', async () => {
		await chmod(project.db, 0o604);
		const links = await mkdtemp(join(tmpdir(), 'mailctl-links-'));
		await symlink(project.db, join(links, 'link.db'));
		expect(await access(join(links, 'link.db'))).toMatchObject([{ fix: `chmod 600 ${project.db}` }]);
	});

	it('are not what is no database: a device or a folder is not to be closed', async () => {
		expect(await access('/dev/null')).toMatchObject([{ level: 'ok' }]);
		expect(await access(tmpdir())).toMatchObject([{ level: 'ok' }]);
	});
});

it('a configuration folder that others may write to is a problem', async () => {
	const home = await makeHome();
	const folder = join(home, '.config/mailctl');
	await mkdir(folder, { recursive: true, mode: 0o700 });
	await chmod(folder, 0o777);
	const argv = ['doctor', '--base-url', 'https://mail.example.com', '--only', 'config', '-o', 'json'];
	const { code, stdout } = await cli(argv, { env: { HOME: home } });
	expect({ code, access: (JSON.parse(stdout) as Finding[])[1] }).toEqual({
		code: 11,
		access: {
			check: 'config.access',
			level: 'problem',
			message: `everybody on this machine may change ${folder}, and so replace what is kept in it`,
			fix: `chmod go-w ${folder}`,
		},
	});
});

describe('what belongs to another user', () => {
	const access = (mode: number, more: Partial<FileAccess> = {}): FileAccess => ({
		...{ path: '/srv/news.db', isFolder: false, mode, isPrivateGroup: false, owner: 'news', ...more },
	});

	it('is to be looked at by that user: to be given away it would be lost to the service', () => {
		const expected = {
			level: 'warning',
			message: '/srv/news.db belongs to news',
			fix: 'run doctor as its owner news',
		};
		expect([judgeSecrets([access(0o640)]), judgePrivate(access(0o600), '600')]).toEqual([expected, expected]);
	});

	it('and may be written to by more is that user’s to mend', () => {
		expect(judgeFolder(access(0o775, { path: '/srv' }))).toEqual({
			level: 'problem',
			message: 'its group may change /srv, and so replace what is kept in it',
			fix: 'chmod go-w /srv, as its owner news',
		});
	});

	it('by a group of that user alone is fine', () => {
		expect(judgeFolder(access(0o775, { isPrivateGroup: true }))).toBeNull();
		expect(judgeFolder(access(0o777, { isPrivateGroup: true }))).toMatchObject({ level: 'problem' });
	});
});
