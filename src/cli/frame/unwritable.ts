/** What to do where this user may not write a file: its place is looked at, and the command that opens it is named. */
import { accessSync, constants, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Hint, joinHints, system } from './command-line.js';

/**
 * `path`: a file that could not be written, there or not. `elsewhere`: how another one is named. Null where its place is
 * not in the way, as with a full disk or a name that is too long.
 */
export function unwritableHint(path: string, elsewhere: string): Hint | null {
	const found = statOf(path);
	if (found?.isDirectory() === false) {
		const code = refusal(path, constants.W_OK);
		if (code !== null) return opening(path, { found, code, elsewhere });
	}
	const folder = dirname(path);
	const there = nearest(folder);
	if (there.found?.isDirectory() !== true) return null;
	const code = refusal(there.path, constants.W_OK | constants.X_OK);
	if (code !== null) return opening(there.path, { found: there.found, code, elsewhere });
	return there.path === folder
		? null
		: joinHints([system('mkdir', '-p', operand(folder)), `or ${elsewhere}`]);
}

/**
 * For a database that can be read and not written. A copy has no log that would have to come with it, and modes of its own:
 * that of a file which its owner may not write would stay.
 */
export function readOnlyHint(named: string): Hint {
	// SQLite keeps its log beside the file that a link leads to.
	const path = pathOf(named);
	const closed = [path, dirname(path)].flatMap((one) => {
		const [found, code] = [statOf(one), refusal(one, constants.W_OK)];
		return found === null || code === null
			? []
			: [{ one, isOpened: code !== 'EROFS' && isOwnAndClosed(found) }];
	});
	const isOpened = closed.length > 0 && closed.every((one) => one.isOpened);
	const hasLog = ['-wal', '-journal'].some((suffix) => statOf(path + suffix) !== null);
	return joinHints([
		'run mailctl as the owner of the database, or make the file, its folder and its disk writable for this user: it keeps a log there even to read',
		...(isOpened ? [system('chmod', 'u+w', ...closed.map(({ one }) => operand(one)))] : []),
		...(hasLog
			? []
			: [
					[
						system('install', '-m', '600', operand(path), 'COPY.db'),
						' makes a copy that can be read, by --db COPY.db',
					],
				]),
	]);
}

function pathOf(named: string): string {
	try {
		return realpathSync(named);
	} catch {
		return named;
	}
}

/** The folder, or the closest above it that is there. */
function nearest(path: string): { path: string; found: Stats | null } {
	const found = statOf(path);
	return found === null && dirname(path) !== path ? nearest(dirname(path)) : { path, found };
}

function opening(
	path: string,
	{ found, code, elsewhere }: { found: Stats; code: string; elsewhere: string },
): Hint {
	const named = path === '.' ? resolve(path) : path;
	if (code === 'EROFS') return `the file system of ${named} is read-only; ${elsewhere}`;
	if (isOwnAndClosed(found)) {
		const rights = (found.mode & 0o100) === 0 && found.isDirectory() ? 'u+wx' : 'u+w';
		return joinHints([['to write there: ', system('chmod', rights, operand(named))], `or ${elsewhere}`]);
	}
	if (isOwn(found)) return `this user may not write to ${named}; ${elsewhere}`;
	const owner = found.uid === 0 ? 'root' : 'another user';
	return `${named} belongs to ${owner}, and this user may not write to it; ${elsewhere}`;
}

/** No option of a command, whatever it begins with. */
function operand(path: string): string {
	return path.startsWith('-') ? `./${path}` : path;
}

function isOwn({ uid }: Stats): boolean {
	return uid === process.geteuid?.();
}

/** An owner who is refused with these rights is so by something else, such as an attribute of the file. */
function isOwnAndClosed(found: Stats): boolean {
	const needed = found.isDirectory() ? 0o300 : 0o200;
	return isOwn(found) && (found.mode & needed) !== needed;
}

function statOf(path: string): Stats | null {
	try {
		return statSync(path, { throwIfNoEntry: false }) ?? null;
	} catch {
		// Below a file, or in a folder that lets this user not in: what stands above it tells.
		return null;
	}
}

/** The system's code, `EACCES`; null: it is allowed. */
function refusal(path: string, mode: number): string | null {
	try {
		accessSync(path, mode);
		return null;
	} catch (error) {
		return error instanceof Error && 'code' in error ? String(error.code) : '';
	}
}
