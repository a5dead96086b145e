/** One folder for all that tests leave in the machine's temporary one; gone when they end. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const prefix = 'mailctl-tests-';
let folder: string | null = null;

export function setup(): void {
	// Once for each project of the run: a folder within a folder within a folder is too long a path for a socket.
	if (tmpdir().includes(prefix)) return;
	folder = mkdtempSync(join(tmpdir(), prefix));
	process.env['TMPDIR'] = folder;
}

export function teardown(): void {
	if (folder !== null) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
