/**
 * A root folder with one foreign program in it, to run by `chroot`: some mail servers have the paths of their queue and
 * the names of their users built in. It shares nothing with the system but the network; only root can make one.
 *
 * A program is looked for in the folders named by MAILCTL_MAIL_SERVERS (parted by colons), in PATH and in /usr/sbin. Such
 * a folder holds Debian packages unpacked, not installed, because Debian lets one mail server be installed at a time. Of
 * Debian 12, the libraries being those that little else needs:
 *
 *     apt-get download exim4-daemon-light libidn12 libgnutls-dane0 libunbound8 libevent-2.1-7 libdb5.3 opensmtpd
 *     for package in *.deb; do dpkg -x "$package" servers; done
 *     MAILCTL_MAIL_SERVERS=$PWD/servers npx vitest run test/e2e/exim.long.test.ts test/e2e/opensmtpd.long.test.ts
 */
import { execFile } from 'node:child_process';
import {
	chownSync,
	closeSync,
	existsSync,
	mkdtempSync,
	openSync,
	readdirSync,
	rmSync,
	writeFileSync,
} from 'node:fs';
import { chmod, chown, copyFile, cp, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { runProgram, runs } from './run-program.js';

const run = promisify(execFile);

export interface FoundProgram {
	path: string;
	prefix: string;
}

export function findProgram(name: string, beside = ''): FoundProgram | null {
	const unpacked = (process.env['MAILCTL_MAIL_SERVERS'] ?? '').split(':').filter((folder) => folder !== '');
	const installed = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin'];
	const places = [
		...unpacked.map((prefix) => ({ path: join(prefix, 'usr/sbin', name), prefix })),
		...installed.map((folder) => ({ path: join(folder, name), prefix: '/' })),
	];
	return places.find(({ path, prefix }) => existsSync(path) && existsSync(join(prefix, beside))) ?? null;
}

/** Why a program cannot be run in a root of its own; null: it can. `packageName` is Debian's. */
export function whyNot(program: FoundProgram | null, packageName: string): string | null {
	if (program === null) return `Debian package ${packageName} is neither installed nor unpacked`;
	if (process.getuid?.() !== 0) return 'only root can run it in a folder of its own';
	const missing = linkedBy(program.path, program.prefix).filter((line) => line.includes('not found'));
	const names = missing.map((line) => line.trim().split(' ')[0]);
	if (names.length > 0) return `${program.path} lacks ${names.join(', ')}`;
	const right = withheldRight();
	return right === null ? null : `root may not ${right} here`;
}

interface RootContents {
	program: FoundProgram;
	more?: readonly string[];
	users: Readonly<Record<string, number>>;
	folders: Readonly<Record<string, { owner: number; mode: number }>>;
	files: Readonly<Record<string, string>>;
}

export const nobody = 65_534;

export async function makeRoot({ program, more = [], users, folders, files }: RootContents): Promise<string> {
	const root = await mkdtemp('/tmp/mailctl-root-');
	await chmod(root, 0o755);
	const target = join('/usr/sbin', basename(program.path));
	await copyProgram(root, program.path, { target, prefix: program.prefix });
	await copyProgram(root, '/bin/sh', { target: '/bin/sh', prefix: '/' });
	for (const path of more) await cp(join(program.prefix, path), join(root, path), { recursive: true });
	const all = { '/dev': { owner: 0, mode: 0o755 }, '/tmp': { owner: 0, mode: 0o1777 }, ...folders };
	for (const [path, { owner, mode }] of Object.entries(all)) {
		await mkdir(join(root, path), { recursive: true });
		await chown(join(root, path), owner, owner);
		await chmod(join(root, path), mode);
	}
	await run('mknod', ['-m', '666', join(root, 'dev/null'), 'c', '1', '3']);
	await run('mknod', ['-m', '666', join(root, 'dev/urandom'), 'c', '1', '9']);
	for (const [path, content] of Object.entries({ ...accounts(users), ...files })) {
		await mkdir(dirname(join(root, path)), { recursive: true });
		await writeFile(join(root, path), content);
	}
	return root;
}

async function copyProgram(
	root: string,
	path: string,
	{ target, prefix }: { target: string; prefix: string },
): Promise<void> {
	await mkdir(join(root, dirname(target)), { recursive: true });
	await copyFile(path, join(root, target));
	await mkdir(join(root, 'lib'), { recursive: true });
	for (const line of linkedBy(path, prefix)) {
		const [library] = /\/[^ ]+/.exec(line) ?? [];
		if (library === undefined) continue;
		const to = line.includes('=>') ? join(root, 'lib', basename(library)) : join(root, library);
		await mkdir(dirname(to), { recursive: true });
		await copyFile(library, to);
	}
}

function linkedBy(path: string, prefix: string): string[] {
	const env = { ...process.env, LD_LIBRARY_PATH: librariesOf(prefix) };
	return runProgram('ldd', [path], { env }).stdout.split('\n');
}

function librariesOf(prefix: string): string {
	const folder = join(prefix, 'usr/lib');
	if (prefix === '/' || !existsSync(folder)) return '';
	return [folder, ...readdirSync(folder).map((name) => join(folder, name))].join(':');
}

function accounts(users: Readonly<Record<string, number>>): Record<string, string> {
	const all = Object.entries({ root: 0, nobody, ...users });
	return {
		'/etc/passwd': all.map(([name, id]) => `${name}:x:${id}:${id}::/mail:/bin/sh\n`).join(''),
		'/etc/group': all.map(([name, id]) => `${name}:x:${id}:\n`).join(''),
		'/etc/services': 'smtp 25/tcp\n',
		'/etc/hosts': '127.0.0.1 localhost\n',
		'/etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
	};
}

/**
 * What root is not always allowed to do: a container may withhold capabilities, forbid devices, or map no other user
 * than its own. Asked by trying, because a list of capabilities does not tell all of that.
 */
const rights: readonly { what: string; attempt: (folder: string) => void }[] = [
	{ what: 'make devices', attempt: (folder) => quietly('mknod', join(folder, 'null'), 'c', '1', '3') },
	{ what: 'open the devices it makes', attempt: (folder) => closeSync(openSync(join(folder, 'null'), 'r')) },
	{ what: 'give files to other users', attempt: giveAway },
	{
		what: 'run a program in another root folder as another user',
		attempt: () => quietly('chroot', '--userspec=65534:65534', '/', 'true'),
	},
];

function withheldRight(): string | null {
	const folder = mkdtempSync('/tmp/mailctl-rights-');
	try {
		return rights.find(({ attempt }) => !succeeds(() => attempt(folder)))?.what ?? null;
	} finally {
		rmSync(folder, { recursive: true });
	}
}

function giveAway(folder: string): void {
	const file = join(folder, 'file');
	writeFileSync(file, '');
	chownSync(file, 65_534, 65_534);
}

function quietly(program: string, ...words: string[]): void {
	if (!runs(program, ...words)) throw new Error(`${program} ${words.join(' ')} failed`);
}

function succeeds(attempt: () => void): boolean {
	try {
		attempt();
		return true;
	} catch {
		return false;
	}
}
