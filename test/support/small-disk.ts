/** A disk of one's own that can be filled. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { runProgram } from './run-program.js';

/** A folder on a disk of so many MiB, below `parent`; null: none can be mounted here. */
export function smallDisk(size: number, parent = tmpdir()): string | null {
	const folder = mkdtempSync(join(parent, 'mailctl-disk-'));
	if (process.getuid?.() !== 0) return null;
	const { status } = runProgram('mount', ['-t', 'tmpfs', '-o', `size=${size}m`, 'none', folder]);
	if (status !== 0) return null;
	onTestFinished(() => void runProgram('umount', ['-l', folder]));
	return folder;
}

/** Takes all the room that is left. */
export function fill(folder: string): void {
	runProgram('sh', ['-c', `cat /dev/zero > "${join(folder, 'ballast')}" 2>/dev/null || true`]);
}
