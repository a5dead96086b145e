/** This machine and the files of the configuration: whether they are readable, and which users may read them. */

import { stat } from 'node:fs/promises';
import { type Paths, readConfig, readTokens } from '../config/config.js';
import { shellWord } from '../frame/words.js';
import { type Answer, type Checks, firstError, ok, problem, Skip, type Verdict } from './checks.js';

export function configChecks(paths: Paths, secrets: readonly string[], folder: string | null): Checks {
	return {
		'machine.node': () => ok(`Node.js ${process.versions.node}`),
		'config.files': () => {
			try {
				const names = Object.keys(readConfig(paths).profiles);
				readTokens(paths);
				return ok(names.length === 0 ? 'no profiles stored' : `${paths.config} holds ${names.join(', ')}`);
			} catch (error) {
				return problem(firstError(error), 'correct the file, or move it away and log in again');
			}
		},
		'config.access': () => judgeAccess(paths.config, [paths.credentials, ...secrets], [paths.folder, folder]),
	};
}

async function judgeAccess(
	config: string,
	secrets: readonly string[],
	folders: readonly (string | null)[],
): Promise<Answer> {
	if (process.platform === 'win32') throw new Skip('file permissions are not checked on Windows');
	// The mode of a device is not for its reader to change.
	const modeOf = async (path: string) => {
		const found = await stat(path).catch(() => null);
		return found?.isFile() ? found.mode & 0o077 : 0;
	};
	const modes = await Promise.all(secrets.map(modeOf));
	const open = secrets.filter((_, at) => modes[at] !== 0);
	const bits = modes.reduce((all, mode) => all | mode, 0);
	const may = `${who(bits)} can ${(bits & 0o022) === 0 ? 'read' : 'change'}`;
	const fix = `chmod 600 ${open.map(shellWord).join(' ')}`;
	// Whoever changes this file decides where the tokens are sent.
	const writers = (await modeOf(config)) & 0o022;
	const complaints = [
		open.length > 0 ? problem(`${may} ${open[0]}, which holds secrets`, fix) : null,
		...(await Promise.all(folders.map(judgeFolder))),
		writers !== 0 ? problem(`${who(writers)} can change ${config}`, `chmod 600 ${shellWord(config)}`) : null,
	].filter((verdict) => verdict !== null);
	return complaints.length > 0 ? complaints : ok('only their owner can read files with secrets');
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
	// The mode of /tmp must stay.
	const fix = (found.mode & 0o1000) === 0 ? `chmod go-w ${shellWord(path)}` : null;
	const says = `${who(bits)} can write to the folder ${path}, which holds secrets`;
	return problem(says, fix ?? 'use a private folder: mkdir -m 700 FOLDER');
}

function who(bits: number): string {
	return (bits & 0o007) === 0 ? 'its group' : 'everyone on this machine';
}
