import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { openStore } from '../../../src/store/open.js';
import { newUuid, send, submissionOf, verify } from '../../contract/store/fixture.js';
import { cli } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { refuses } from '../../support/refuses.js';
import { fill, smallDisk } from '../../support/small-disk.js';

const mebibyte = 1_048_576;

function keepLast(folder: string): { free(): void } {
	const last = join(folder, 'last');
	writeFileSync(last, Buffer.alloc(mebibyte));
	return { free: () => rmSync(last) };
}

const big = (at: number) =>
	submissionOf([`r${at}@example.org`], {
		content: { subject: 'Hi', text: `${at} ${'x'.repeat(200_000)}`, html: null, disable_inline: true },
		content_sha256: `hash ${at}`,
		id: newUuid(),
	});

describe.each(['with_commits', 'apart'] as const)('a database on a full disk (checkpoints %s)', (upkeep) => {
	it('accepts writes again with 1 MiB free, and has lost nothing', async (context) => {
		const folder = smallDisk(48);
		if (folder === null) return context.skip('no disk can be mounted here');
		const path = join(folder, 'news.db');
		const store = await openStore(path, { clock: systemClock, mode: 'create', role: 'serve', upkeep });
		await verify(store);
		const last = keepLast(folder);
		let accepted = 0;
		let failure: unknown = null;
		for (let at = 0; failure === null && at < 1_000; at += 1) {
			await store.writes.acceptSubmission({ ...big(at), key: null }).then(
				() => {
					accepted += 1;
				},
				(error: unknown) => {
					failure = error;
				},
			);
		}
		expect(failure).toMatchObject({ code: 'disk_full' });
		// SQLite has truncated the log, so the database file fills most of the disk.
		expect(statSync(path).size).toBeGreaterThan(36 * mebibyte);
		fill(folder);
		await refuses(store.writes.acceptSubmission({ ...big(2_000), key: null }), 'disk_full');
		last.free();
		await send(store, ['again@example.org'], {});
		const { messages } = await store.reads.status();
		expect(messages).toEqual({ queued: accepted + 1 });
		await store.close();
	});

	it('keeps committed data if another program fills the disk, and accepts writes again', async (context) => {
		const folder = smallDisk(96);
		if (folder === null) return context.skip('no disk can be mounted here');
		const path = join(folder, 'news.db');
		const store = await openStore(path, { clock: systemClock, mode: 'create', role: 'serve', upkeep });
		await verify(store);
		for (let at = 0; at < 150; at += 1) await store.writes.acceptSubmission({ ...big(at), key: null });
		const last = keepLast(folder);
		let at = 1_000;
		// SQLite may truncate the log after the disk is filled, which frees space for the writes. Then the next round
		// tries again.
		await eventually(async () => {
			await send(store, ['small@example.org'], {});
			fill(folder);
			const writes = Array.from({ length: 20 }, () =>
				store.writes.acceptSubmission({ ...big(at++), key: null }),
			);
			// Wait for all writes, because a write after the first failure would use the space that is freed below.
			const ends = await Promise.allSettled(writes);
			const failures = ends.filter((end) => end.status === 'rejected').map(({ reason }) => reason);
			expect(failures).not.toEqual([]);
			for (const failure of failures) expect(failure).toMatchObject({ code: 'disk_full' });
		});
		last.free();
		await send(store, ['again@example.org'], {});
		const { messages } = await store.reads.status();
		expect(messages['queued']).toBeGreaterThanOrEqual(151);
		await store.close();
	});
});

it('a full disk prevents opening a database, even to read it', async (context) => {
	const folder = smallDisk(4);
	if (folder === null) return context.skip('no disk can be mounted here');
	const db = join(folder, 'news.db');
	const env = { HOME: mkdtempSync(join(tmpdir(), 'mailctl-home-')) };
	expect(await cli(['--db', db, 'engine', 'init'], { env })).toMatchObject({ code: 0 });
	fill(folder);
	const ann = 'ann@example.com';
	for (const words of [
		['subscribers', 'erase', ann, '--confirm', ann],
		['lists', 'list'],
	])
		expect(await cli(['--db', db, ...words], { env })).toEqual({
			code: 74,
			stdout: '',
			stderr: `error: no space left on the disk of ${db}\nhint: free some space, then run the command again\n`,
		});
});
