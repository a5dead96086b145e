/** Users who may open, change or replace private files, and the command that stops it. */
import { readFile, stat } from 'node:fs/promises';
import { shellWord } from '../frame/command-line.js';
import { problem, type Verdict, warning } from './model.js';

/** A file or folder, from `stat`. */
export interface FileAccess {
	path: string;
	isFolder: boolean;
	/** Permission bits with the sticky one: 0o600 is the owner alone, 0o1777 is /tmp. */
	mode: number;
	/** Its group is the owner's own, of the same number: on most systems it has no other member. */
	isPrivateGroup: boolean;
	/** Null: the file is this user's, or this user is root. Else the name of the owner. */
	owner: string | null;
}

/** Null: it is not there, or not to be seen, or neither a file nor a folder: its mode is not for its reader to change. */
export async function readAccess(path: string): Promise<FileAccess | null> {
	const found = await stat(path).catch(() => null);
	if (found === null || !(found.isFile() || found.isDirectory())) return null;
	const user = process.getuid?.();
	return {
		path,
		isFolder: found.isDirectory(),
		mode: found.mode & 0o1777,
		isPrivateGroup: found.gid === found.uid,
		owner: user === found.uid || user === 0 ? null : await nameOf(found.uid),
	};
}

/**
 * One verdict and one command for files with secrets that belong together, a database with its log. Null: no complaint.
 */
export function judgeSecrets(files: readonly FileAccess[]): Verdict | null {
	const strange = files.find(({ owner }) => owner !== null);
	if (strange !== undefined) return ofAnother(strange);
	const open = files.filter(({ mode }) => (mode & 0o077) !== 0);
	const [first] = open;
	if (first === undefined) return null;
	const bits = open.reduce((all, { mode }) => all | mode, 0);
	return problem(
		`${whoMay(bits & 0o077)} ${first.path}, which holds secrets`,
		`chmod 600 ${open.map(({ path }) => shellWord(path)).join(' ')}`,
	);
}

/** Judges a file that is private but holds no secret; `ownMode` is the mode it should have. Null: no complaint. */
export function judgePrivate(access: FileAccess, ownMode: '600' | '700'): Verdict | null {
	if (access.owner !== null) return ofAnother(access);
	const bits = access.mode & 0o077;
	return bits === 0
		? null
		: warning(`${whoMay(bits)} ${access.path}`, `chmod ${ownMode} ${shellWord(access.path)}`);
}

/**
 * Judges the folder of files with secrets. A user who may write to it can replace the files. Beside a database, such a
 * user can put a forged log, which SQLite trusts. Null: no other user may write.
 */
export function judgeFolder({ path, mode, isPrivateGroup, owner }: FileAccess): Verdict | null {
	const bits = mode & (isPrivateGroup ? 0o002 : 0o022);
	if (bits === 0) return null;
	// /tmp and the like are as they have to be.
	if ((mode & 0o1000) !== 0)
		return problem(
			`${who(bits)} may put files into ${path}, beside what is kept in it`,
			'keep that in a folder of its own: mkdir -m 700 FOLDER',
		);
	const fix = `chmod go-w ${shellWord(path)}`;
	return problem(
		`${whoMay(bits)} ${path}, and so replace what is kept in it`,
		owner === null ? fix : `${fix}, as its owner ${owner}`,
	);
}

/** Giving it to this user would take it from the service that uses it. */
function ofAnother({ path, owner }: FileAccess): Verdict {
	return warning(`${path} belongs to ${owner}`, `run doctor as its owner ${owner}`);
}

function whoMay(bits: number): string {
	return `${who(bits)} may ${(bits & 0o022) === 0 ? 'read' : 'change'}`;
}

function who(bits: number): string {
	return (bits & 0o007) === 0 ? 'its group' : 'everybody on this machine';
}

/** Node.js has the name of its own user only. */
async function nameOf(uid: number): Promise<string> {
	const users = await readFile('/etc/passwd', 'utf8').catch(() => '');
	const line = users.split('\n').find((one) => one.split(':')[2] === String(uid));
	return line?.split(':')[0] ?? `user ${uid}`;
}
