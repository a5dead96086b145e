/** One writer of the configuration at a time: reading, changing and writing would otherwise lose the other's change. */
import { closeSync, openSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { microsPerMs, systemClock } from '../api/datetime.js';
import type { Paths } from './config.js';
import { ConfigError } from './errors.js';

/** Nobody holds it for longer than a few milliseconds: an older one was left behind by a process that died. */
const staleMs = 5_000;
const everyMs = 20;

/** Runs `work` alone among all processes; the folder must be there. Throws `ConfigError` when it cannot be had. */
export async function exclusively<T>(paths: Paths, work: () => Promise<T>): Promise<T> {
	const file = join(paths.folder, 'lock');
	for (let waitedMs = 0; !taken(file); waitedMs += everyMs) {
		if (waitedMs > 2 * staleMs)
			throw new ConfigError(`another process holds ${file}`, { hint: 'remove it if none does' });
		removeStale(file);
		await delay(everyMs);
	}
	try {
		return await work();
	} finally {
		rmSync(file, { force: true });
	}
}

function taken(file: string): boolean {
	try {
		closeSync(openSync(file, 'wx', 0o600));
		return true;
	} catch (cause) {
		const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
		if (code === 'EEXIST') return false;
		throw new ConfigError(`${file} cannot be written (${code})`, { cause });
	}
}

function removeStale(file: string): void {
	const found = statSync(file, { throwIfNoEntry: false });
	if (found !== undefined && systemClock.now() / microsPerMs - found.mtimeMs > staleMs)
		rmSync(file, { force: true });
}
