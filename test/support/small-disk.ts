import { mkdtempSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { runProgram } from './run-program.js';

export function smallDisk(size: number, parent = tmpdir()): string | null {
	const folder = mkdtempSync(join(parent, 'mailctl-disk-'));
	if (process.getuid?.() !== 0) return null;
	const { status } = runProgram('mount', ['-t', 'tmpfs', '-o', `size=${size}m`, 'none', folder]);
	if (status !== 0) return null;
	onTestFinished(() => void runProgram('umount', ['-l', folder]));
	return folder;
}

export function fill(folder: string, but = 0): void {
	const ballast = join(folder, 'ballast');
	runProgram('sh', ['-c', `cat /dev/zero > "${ballast}" 2>/dev/null || true`]);
	if (but > 0) truncateSync(ballast, statSync(ballast).size - but);
}
