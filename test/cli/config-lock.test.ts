// One process at a time writes the configuration, even if a clock change makes the lock file look old.
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { findPaths } from '../../src/cli/config/config.js';
import { exclusively } from '../../src/cli/config/config-write.js';

function lockedSince(hours: number) {
	const home = mkdtempSync(join(tmpdir(), 'mailctl-lock-'));
	const paths = { ...findPaths({ HOME: home }), folder: home };
	const file = join(home, 'lock');
	writeFileSync(file, '');
	const at = Date.now() / 1_000 - hours * 3_600;
	utimesSync(file, at, at);
	return { paths, file };
}

it('a lock that looks old after a clock change is respected', async () => {
	const { paths, file } = lockedSince(8);
	const order: string[] = [];
	const ours = exclusively(paths, async () => void order.push('ours'));
	await delay(200);
	order.push('theirs');
	rmSync(file);
	await ours;
	expect(order).toEqual(['theirs', 'ours']);
});

it('an abandoned lock is removed after a few seconds', async () => {
	const { paths } = lockedSince(0);
	expect(await exclusively(paths, async () => 'done')).toBe('done');
});
