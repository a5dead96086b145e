/** The files of the configuration: whether they can be read, and by whom. */
import { stat } from 'node:fs/promises';
import { type Paths, readConfig, readTokens } from '../../config.js';
import { shellWord } from '../../shell-word.js';
import { type Check, ok, problem, type Verdict, warning } from '../model.js';

/** Which files. */
export interface ConfigOptions {
	paths: Paths;
	/** Files with secrets beside those of the configuration: the database, a token file. */
	secrets: readonly string[];
}

/** `config.files` and `config.access`. */
export function configChecks({ paths, secrets }: ConfigOptions): Check[] {
	return [
		{ name: 'config.files', run: async () => judgeFiles(paths) },
		{ name: 'config.access', run: () => lookAtAccess(paths, secrets) },
	];
}

/** Whoever may open them, as the system says it. */
export interface FileAccess {
	path: string;
	/** Permission bits; 0o600 is the owner alone. */
	mode: number;
	isOwn: boolean;
	isFolder: boolean;
	/** Others who read it learn a secret. */
	isSecret: boolean;
}

/** Null: there is nothing to say against it. */
function judgeAccess({ path, mode, isOwn, isFolder, isSecret }: FileAccess): Verdict | null {
	const word = shellWord(path);
	if (!isOwn) return warning(`${path} belongs to another user`, `chown "$(id -un)" ${word}`);
	const open = mode & 0o077;
	if (open === 0) return null;
	const who = (open & 0o007) === 0 ? 'its group' : 'everybody on this machine';
	const how = (open & 0o022) === 0 ? 'read' : 'change';
	const found = `${who} may ${how} ${path}`;
	const fix = `chmod ${isFolder ? '700' : '600'} ${word}`;
	return isSecret ? problem(`${found}, which holds secrets`, fix) : warning(found, fix);
}

function judgeFiles(paths: Paths): Verdict {
	try {
		const { profiles } = readConfig(paths);
		readTokens(paths);
		const names = Object.keys(profiles);
		if (names.length === 0) return ok('no profiles are stored: nothing is needed there');
		return ok(`${paths.config} holds ${names.join(', ')}`);
	} catch (error) {
		return problem(
			error instanceof Error ? error.message : String(error),
			'mend the file, or move it away and log in again',
		);
	}
}

async function lookAtAccess(paths: Paths, secrets: readonly string[]): Promise<Verdict | Verdict[]> {
	if (process.platform === 'win32') return ok('permissions are those of the user folder');
	const files = [
		{ path: paths.folder, isSecret: false },
		{ path: paths.config, isSecret: false },
		...[paths.credentials, ...secrets].map((path) => ({ path, isSecret: true })),
	];
	const accesses = await Promise.all(files.map(readAccess));
	const found = accesses.flatMap((access) => (access === null ? [] : [judgeAccess(access)]));
	const complaints = found.filter((verdict) => verdict !== null);
	return complaints.length > 0 ? complaints : ok('nobody else may read what is kept here');
}

/** Null: it is not there. */
async function readAccess(file: { path: string; isSecret: boolean }): Promise<FileAccess | null> {
	const found = await stat(file.path).catch(() => null);
	if (found === null) return null;
	return {
		...file,
		mode: found.mode & 0o777,
		isOwn: found.uid === process.getuid?.() || process.getuid?.() === 0,
		isFolder: found.isDirectory(),
	};
}
