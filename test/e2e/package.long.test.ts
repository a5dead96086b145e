import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProgram } from '../support/run-program.js';

const root = join(import.meta.dirname, '../..');

let place: string;
let packed: { filename: string; size: number; unpackedSize: number; files: { path: string; mode: number }[] };
beforeAll(async () => {
	place = await mkdtemp(join(tmpdir(), 'mailctl-package-'));
	// Scripts are skipped, because `dist` exists and other tests run its code.
	const words = ['pack', '--ignore-scripts', '--json', '--pack-destination', place];
	const { status, stdout, stderr } = runProgram('npm', words, { cwd: root });
	expect({ status, stderr }).toMatchObject({ status: 0 });
	[packed] = JSON.parse(stdout);
});
afterAll(() => rm(place, { recursive: true }));

const run = (program: string, ...words: string[]) =>
	runProgram(program, words, {
		cwd: place,
		env: { PATH: process.env['PATH'], HOME: place, LANG: 'C.UTF-8' },
	});

describe('the package', () => {
	it('contains only the program and its deployment files', () => {
		const paths = packed.files.map(({ path }) => path);
		const [built, rest] = [true, false].map((isBuilt) =>
			paths.filter((path) => path.startsWith('dist/') === isBuilt),
		);
		expect(rest?.sort()).toEqual([
			'CHANGELOG.md',
			'LICENSE',
			'README.md',
			'bin/mailctl.js',
			'bin/package.json',
			'bin/program.js',
			'package.json',
			'packaging/cluster/compose.yaml',
			'packaging/cluster/haproxy.cfg',
			'packaging/cluster/nginx.conf',
			'packaging/cluster/pgbouncer.ini',
			'packaging/cluster/replica.sh',
			'packaging/cluster/roles.sh',
			'packaging/compose.yaml',
			'packaging/systemd/mailctl-.service.d/hardening.conf',
			'packaging/systemd/mailctl-backup.service',
			'packaging/systemd/mailctl-backup.timer',
			'packaging/systemd/mailctl-serve.service',
			'packaging/systemd/mailctl-worker.service',
		]);
		expect(built?.filter((path) => !/\.js$|^dist\/man\//.test(path)).sort()).toEqual([
			'dist/demo/offer.html',
			'dist/demo/people.csv',
			'dist/package.json',
			'dist/third-party-licences.txt',
		]);
		expect(built?.filter((path) => path.includes('compiled'))).toEqual([]);
		expect(packed.size).toBeLessThan(3_600_000);
		expect(packed.unpackedSize).toBeLessThan(14_400_000);
	});

	it('lists exactly the unbundled packages as dependencies, and contains the licences of the bundled ones', async () => {
		const { dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
		const texts = await Promise.all(
			packed.files
				.filter(({ path }) => /^dist\/.*\.js$/.test(path))
				.map(({ path }) => readFile(join(root, path), 'utf8')),
		);
		const asked = texts.flatMap((text) =>
			[...text.matchAll(/\brequire\("([^".][^"]*)"\)/g)].map(([, name]) => name),
		);
		const licences = await readFile(join(root, 'dist/third-party-licences.txt'), 'utf8');
		const isInside = (name: string) => new RegExp(`^${name} \\d+\\.`, 'm').test(licences);
		// Bundled packages may contain `require` in code that they generate, and a dependency may also be bundled.
		const outside = asked
			.filter((name = '') => !isBuiltin(name))
			.map((name = '') => name.split('/')[0] ?? '')
			.filter((name) => name in dependencies || !isInside(name));
		expect([...new Set(outside)]).toEqual(Object.keys(dependencies));
		for (const name of ['commander', 'undici', 'nodemailer', '@inquirer/core'])
			expect(licences).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+\\n\\n`, 'm'));
	});

	it('runs the demo from its tarball with the installed dependencies', async () => {
		const folder = join(place, 'unpacked');
		await mkdir(folder);
		expect(run('tar', '-xzf', join(place, packed.filename), '-C', folder).status).toBe(0);
		await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
		const program = join(folder, 'package/bin/mailctl.js');
		expect(run(process.execPath, program, '--version')).toMatchObject({ status: 0, stdout: '0.1.0\n' });
		const { status, stdout } = run(process.execPath, program, 'demo');
		expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringMatching(/sent +1,000/) });
	});

	it('can be installed globally with npm (needs the registry)', async (context) => {
		const prefix = join(place, 'prefix');
		const tarball = join(place, packed.filename);
		// Uses the npm configuration of this machine, and does not rebuild SQLite's addon.
		const words = ['install', '-g', '--prefix', prefix, '--ignore-scripts', '--prefer-offline', tarball];
		const { status, stderr } = runProgram('npm', words, { cwd: place });
		if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH/.test(stderr))
			context.skip('the registry cannot be reached');
		expect({ status, stderr }).toMatchObject({ status: 0 });
		expect(await readdir(join(prefix, 'bin'))).toEqual(['mailctl']);
		expect(await readdir(join(prefix, 'share/man/man1'))).toContain('mailctl-send.1');
		const sqlite = join(prefix, 'lib/node_modules/mailctl/node_modules/better-sqlite3');
		// On Node 22 and newer, npm installs a version with a prebuilt addon.
		if (!(await readdir(sqlite)).includes('prebuilds')) {
			await rm(sqlite, { recursive: true });
			await symlink(join(root, 'node_modules/better-sqlite3'), sqlite);
		}
		const program = join(prefix, 'bin/mailctl');
		expect(run(program, '--version')).toMatchObject({ status: 0, stdout: '0.1.0\n' });
		const { status: ended, stdout } = run(program, 'demo');
		expect({ ended, stdout }).toEqual({ ended: 0, stdout: expect.stringMatching(/sent +1,000/) });
	});
});
