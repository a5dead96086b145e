/** One folder for all that tests leave in the machine's temporary one; gone when they end. */
import { mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const prefix = 'mailctl-tests-';
let folder: string | null = null;

export function setup(): void {
	// Once for each project of the run: a folder within a folder within a folder is too long a path for a socket.
	if (tmpdir().includes(prefix)) return;
	folder = mkdtempSync(join(process.env['TMPDIR'] ?? memoryFolder() ?? tmpdir(), prefix));
	process.env['TMPDIR'] = folder;
}

export function teardown(): void {
	if (folder !== null) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

const memory = '/dev/shm';
/** Four times what a run leaves. */
const roomBytes = 8 * 1024 ** 3;

/**
 * Where a sync costs nothing: hundreds of databases wait for a disk otherwise. What a killed process has written is
 * there on either. Null where there is none with room, or where programs and devices may not be.
 */
function memoryFolder(): string | null {
	try {
		const options =
			readFileSync('/proc/mounts', 'utf8')
				.match(/^\S+ \/dev\/shm tmpfs (\S+)/m)?.[1]
				?.split(',') ?? [];
		if (!options.includes('rw') || options.some((option) => /^no(?:exec|dev|suid)$/.test(option)))
			return null;
		const { bavail, bsize } = statfsSync(memory);
		return bavail * bsize > roomBytes ? memory : null;
	} catch {
		return null;
	}
}
