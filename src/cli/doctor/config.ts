/** This machine, and the files of the configuration: whether they are readable, and which users may read them. */
import { stat } from 'node:fs/promises';
import { type Paths, readConfig, readTokens } from '../config/config.js';
import { shellWord } from '../frame/command-line.js';
import { type Answer, type Checks, ok, problem, type Verdict } from './checks.js';

export function configChecks(paths: Paths, secrets: readonly string[], folder: string | null = null): Checks {
	return {
		'machine.node': () => ok(`Node.js ${process.versions.node}`),
		'config.files': () => {
			try {
				const names = Object.keys(readConfig(paths).profiles);
				readTokens(paths);
				if (names.length === 0) return ok('no profiles are stored: nothing is needed there');
				return ok(`${paths.config} holds ${names.join(', ')}`);
			} catch (error) {
				const why = error instanceof Error ? error.message : String(error);
				return problem(why, 'correct the file, or move it away and log in again');
			}
		},
		'config.access': () => judgeAccess([paths.credentials, ...secrets], [paths.folder, folder]),
	};
}

async function judgeAccess(secrets: readonly string[], folders: readonly (string | null)[]): Promise<Answer> {
	if (process.platform === 'win32') return ok('permissions are those of the user folder');
	const modes = await Promise.all(secrets.map(modeOf));
	const open = secrets.filter((_, at) => ((modes[at] ?? 0) & 0o077) !== 0);
	const bits = modes.reduce<number>((all, mode) => all | (mode ?? 0), 0) & 0o077;
	const may = `${who(bits)} may ${(bits & 0o022) === 0 ? 'read' : 'change'} ${open[0]}, which holds secrets`;
	const complaints = [
		...(open.length > 0 ? [problem(may, `chmod 600 ${open.map(shellWord).join(' ')}`)] : []),
		...(await Promise.all(folders.map(judgeFolder))).flatMap((verdict) => verdict ?? []),
	];
	return complaints.length > 0 ? complaints : ok('only their owner may read these files');
}

/** Null: it is not a file, or cannot be seen. The mode of a device is not for its reader to change. */
async function modeOf(path: string): Promise<number | null> {
	const found = await stat(path).catch(() => null);
	return found?.isFile() ? found.mode : null;
}

/**
 * Judges the folder of files with secrets. A user who may write to it can replace the files. Such a user can also put a
 * forged log beside a database, which SQLite trusts. Null: no other user may write.
 */
async function judgeFolder(path: string | null): Promise<Verdict | null> {
	const found = path === null ? null : await stat(path).catch(() => null);
	if (path === null || !found?.isDirectory()) return null;
	// A group with the number of its owner has no other member on most systems.
	const bits = found.mode & (found.gid === found.uid ? 0o002 : 0o022);
	if (bits === 0) return null;
	// /tmp and the like are as they have to be.
	if ((found.mode & 0o1000) !== 0)
		return problem(`${who(bits)} may put files into ${path}`, 'use a private folder: mkdir -m 700 FOLDER');
	const says = `${who(bits)} may change ${path}, and so replace what is kept in it`;
	return problem(says, `chmod go-w ${shellWord(path)}`);
}

function who(bits: number): string {
	return (bits & 0o007) === 0 ? 'its group' : 'everybody on this machine';
}
