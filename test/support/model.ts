import { copyFileSync, cpSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';

export function copyOf(folder: string): string {
	const copy = mkdtempSync(`${folder}-`);
	cpSync(folder, copy, { recursive: true });
	return copy;
}

export function onceFor<Key = void, Made = unknown>(make: (key: Key) => Made): (key: Key) => Made {
	const made = new Map<Key, Made>();
	return (key) => {
		const found = made.get(key) ?? make(key);
		made.set(key, found);
		return found;
	};
}

const model = onceFor(async () => {
	const path = join(mkdtempSync(join(tmpdir(), 'mailctl-model-')), 'mailctl.db');
	await (await openStore(path, { clock: systemClock, mode: 'create' })).close();
	return path;
});

export async function emptyDatabase(path: string): Promise<string> {
	copyFileSync(await model(), path);
	return path;
}
