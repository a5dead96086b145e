/** This machine, and the files of the configuration: whether they are readable, and which users may read them. */
import { stat } from 'node:fs/promises';
import { type Paths, readConfig, readTokens } from '../config/config.js';
import { shellWord } from '../frame/command-line.js';
import { type Check, ok, problem, type Verdict, warning } from './checks.js';

/**
 * `secrets`: further files with secrets, each in a group with the files that belong to it: a database, a token file.
 * `folder`: the folder of the database.
 */
export function configChecks(
	paths: Paths,
	secrets: readonly (readonly string[])[],
	folder: string | null = null,
): Check[] {
	return [
		{ name: 'machine.node', run: () => judgeNode(process.versions.node) },
		{ name: 'config.files', run: () => judgeFiles(paths) },
		{ name: 'config.access', run: () => lookAtAccess(paths, secrets, folder) },
	];
}

/** The least minor version of a major one, as `engines` of the package and the program's first lines have it. */
const leastMinors = new Map([
	[20, 19],
	[22, 14],
	[23, 6],
]);

export function judgeNode(version: string): Verdict {
	const [major = 0, minor = 0] = version.split('.').map(Number);
	if (major > 23 || minor >= (leastMinors.get(major) ?? Number.POSITIVE_INFINITY))
		return ok(`Node.js ${version}`);
	return problem(
		`Node.js ${version} is too old: 20.19 or 22.14, or newer is needed`,
		'install a newer Node.js: https://nodejs.org/',
	);
}

function judgeFiles(paths: Paths): Verdict {
	try {
		const { profiles } = readConfig(paths);
		readTokens(paths);
		const names = Object.keys(profiles);
		if (names.length === 0) return ok('no profiles are stored: nothing is needed there');
		return ok(`${paths.config} holds ${names.join(', ')}`);
	} catch (error) {
		const why = error instanceof Error ? error.message : String(error);
		return problem(why, 'mend the file, or move it away and log in again');
	}
}

async function lookAtAccess(
	paths: Paths,
	secrets: readonly (readonly string[])[],
	folder: string | null,
): Promise<Verdict | Verdict[]> {
	if (process.platform === 'win32') return ok('permissions are those of the user folder');
	const [own, config, around] = await Promise.all([paths.folder, paths.config, folder].map(readAccess));
	const families = await Promise.all(
		[[paths.credentials], ...secrets].map(async (files) => {
			const all = await Promise.all(files.map(readAccess));
			return all.filter((access) => access !== null).filter(({ isFolder }) => !isFolder);
		}),
	);
	const complaints = [
		own && (judgeFolder(own) ?? judgeClosed([own], '700')),
		config && judgeClosed([config], '600'),
		...families.map((files) => judgeClosed(files, 'secrets')),
		around && judgeFolder(around),
	].filter((verdict) => verdict !== null && verdict !== undefined);
	return complaints.length > 0 ? complaints : ok('only their owner may read these files');
}

export interface FileAccess {
	path: string;
	isFolder: boolean;
	/** Permission bits with the sticky one: 0o600 is the owner alone, 0o1777 is /tmp. */
	mode: number;
	/** Its group is the owner's own, of the same number: on most systems it has no other member. */
	isPrivateGroup: boolean;
}

/** Null: it cannot be seen, or is a device, whose mode is not for its reader to change. */
async function readAccess(path: string | null): Promise<FileAccess | null> {
	const found = path === null ? null : await stat(path).catch(() => null);
	if (path === null || found === null || !(found.isFile() || found.isDirectory())) return null;
	return {
		path,
		isFolder: found.isDirectory(),
		mode: found.mode & 0o1777,
		isPrivateGroup: found.gid === found.uid,
	};
}

/**
 * One verdict and one command for files that belong together, such as a database with its log; `as` is the mode they
 * should have. Null: only their owner may open them.
 */
export function judgeClosed(files: readonly FileAccess[], as: '600' | '700' | 'secrets'): Verdict | null {
	const open = files.filter(({ mode }) => (mode & 0o077) !== 0);
	const [first] = open;
	if (first === undefined) return null;
	const bits = open.reduce((all, { mode }) => all | mode, 0) & 0o077;
	const says = `${who(bits)} may ${(bits & 0o022) === 0 ? 'read' : 'change'} ${first.path}`;
	const paths = open.map(({ path }) => shellWord(path)).join(' ');
	return as === 'secrets'
		? problem(`${says}, which holds secrets`, `chmod 600 ${paths}`)
		: warning(says, `chmod ${as} ${paths}`);
}

/**
 * Judges the folder of files with secrets. A user who may write to it can replace the files. Beside a database, such a
 * user can put a forged log, which SQLite trusts. Null: no other user may write.
 */
export function judgeFolder({ path, mode, isPrivateGroup }: FileAccess): Verdict | null {
	const bits = mode & (isPrivateGroup ? 0o002 : 0o022);
	if (bits === 0) return null;
	// /tmp and the like are as they have to be.
	if ((mode & 0o1000) !== 0)
		return problem(
			`${who(bits)} may put files into ${path}, beside what is kept in it`,
			'keep that in a folder of its own: mkdir -m 700 FOLDER',
		);
	return problem(
		`${who(bits)} may change ${path}, and so replace what is kept in it`,
		`chmod go-w ${shellWord(path)}`,
	);
}

function who(bits: number): string {
	return (bits & 0o007) === 0 ? 'its group' : 'everybody on this machine';
}
