/**
 * What root is not always allowed to do: a container may withhold capabilities, forbid devices, or map no other user
 * than its own. Asked by trying, because a list of capabilities does not tell all of that.
 */
import { chownSync, closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runs } from './run-program.js';

const rights: readonly { what: string; attempt: (folder: string) => void }[] = [
	{ what: 'make devices', attempt: (folder) => quietly('mknod', join(folder, 'null'), 'c', '1', '3') },
	// A file system mounted with nodev has devices that nobody can open.
	{ what: 'open the devices it makes', attempt: (folder) => closeSync(openSync(join(folder, 'null'), 'r')) },
	{ what: 'give files to other users', attempt: giveAway },
	{
		what: 'run a program in another root folder as another user',
		attempt: () => quietly('chroot', '--userspec=65534:65534', '/', 'true'),
	},
];

/** The first thing that this process may not do in /tmp, where roots are made, as said after "may not"; null: nothing. */
export function withheldRight(): string | null {
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
