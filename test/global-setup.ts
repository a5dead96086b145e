/** One folder for all that tests leave in the machine's temporary one; gone when they end. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const prefix = 'mailctl-tests-';

export default function setup(): () => void {
	// Once for each project of the run: a folder within a folder within a folder is too long a path for a socket.
	if (tmpdir().includes(prefix)) return () => undefined;
	const folder = mkdtempSync(join(tmpdir(), prefix));
	process.env['TMPDIR'] = folder;
	return () => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
