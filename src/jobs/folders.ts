import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { assertNotHome, codeOf } from '../api/errors.js';

/** Returns the topmost folder created. Avoids mkdir's `recursive`, which never returns for some paths (/proc). */
export function makeFolders(path: string): string | undefined {
	try {
		mkdirSync(path, { mode: 0o700 });
		return path;
	} catch (error) {
		if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return undefined;
		const above = dirname(path);
		const isAboveMissing = codeOf(error) === 'ENOENT';
		if (!isAboveMissing || above === path || statSync(above, { throwIfNoEntry: false }) !== undefined)
			throw error;
		assertNotHome(above);
		const topmost = makeFolders(above);
		mkdirSync(path, { mode: 0o700 });
		return topmost;
	}
}
