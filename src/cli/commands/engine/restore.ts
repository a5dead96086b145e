/** `mailctl engine restore`: a backup in the place of the database. */

import { stat } from 'node:fs/promises';
import { forServerPrograms, isPostgres } from '../../../store/url.js';
import { command } from '../../frame/command.js';
import { type Hint, mailctl, system } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { onlyLocal, UsageError } from '../../frame/errors.js';
import { answer } from '../../render/columns.js';
import type { Times } from '../../render/times.js';
import { counted } from '../../render/units.js';
import { notOfServers, recordsOf } from './backup.js';
import { inUse } from './in-use.js';

export const restore = command({
	name: 'restore',
	summary: 'put a backup in the place of the database',
	description:
		'The backup is read from end to end first, and brought up to date. A database that is there is kept beside the new ' +
		'one, as FILE.db.before-restore-TIME; it must not be in use. The queue of the restored one is paused: what was sent ' +
		'since the backup waits in it again. Who was erased since in the database that it replaces is erased in it again. Look through `messages list --status queued` and `--status deferred`, cancel what has left, then ' +
		'`engine queue resume`. What was being sent at the moment of the backup is `uncertain`. Wrapped secrets want their ' +
		'key (MAILCTL_KEY_FILE), which is in no backup.',
	args: [{ name: 'file', summary: 'a file of `engine backup`', of: 'file', ask: 'Backup:' }],
	writes: true,
	severity: 'severe',
	createsDatabase: false,
	columns: answer(
		...['database', 'file', 'kept', 'newest', 'size_bytes', 'schema_version'],
		...['lists', 'subscribers', 'messages'],
		...['uncertain', 'waiting', 'erased', 'queue', 'duration_ms'],
	),
	output:
		'{"database", "file", "kept", "newest", "size_bytes", "schema_version", "lists", "subscribers", "messages", "uncertain", "waiting", "erased", "queue", "duration_ms"}; "kept" is the old database, "newest" the time of the last record in the backup',
	exits: [74, 78],
	examples: [
		'mailctl --db restored.db engine restore latest.db',
		'mailctl engine restore latest.db --confirm restore',
	],
	run: async (cx, { args: { file } }) => {
		const target = cx.settings.target.target();
		if (target.kind !== 'local') throw onlyLocal('engine restore');
		if (isPostgres(target.url)) throw notOfServers('engine restore', restoring(target.url, file));
		await assertFile(file);
		const { assertNotOpen, assertSound, planRestore, restore } = await import('../../connect/backup.js');
		const plan = planRestore(target.url, file, cx.clock);
		const { place, old, newest } = plan;
		if (old !== null && old.usedBy.length > 0) throw inUse(old.usedBy, 'stop what runs, then run this again');
		const over = old === null ? place : withRecord(place, old.newest, cx.times);
		const what = `put ${withRecord(file, newest, cx.times)} in the place of ${over}`;
		if (cx.dryRun) {
			assertSound(file);
			return cx.wouldDo(what, { restore: file, with: { database: place, replaced: old !== null }, newest });
		}
		assertNotOpen(plan);
		if (old !== null)
			await cx.confirm({ kind: 'severe', what: `${what}, which is kept beside it`, name: 'restore' });
		const began = performance.now();
		let progress: ReturnType<CommandContext['progress']> | null = null;
		const { warn } = cx;
		const restored = await restore({
			plan,
			file,
			clock: cx.clock,
			env: cx.io.env,
			warn: (text) => void warn(text),
			signal: cx.signal,
			onProgress: ({ pages, of }) => {
				progress ??= cx.progress('restoring, pages', of);
				progress.update(pages);
			},
			onRemoved: (name) => cx.note(`removed ${name}, which one that was killed had left`),
		}).finally(() => progress?.stop());
		const duration_ms = Math.round(performance.now() - began);
		const { kept, uncertain, waiting, erased } = restored;
		await cx.out.document(
			{ database: place, file, newest, ...restored, queue: 'paused', duration_ms },
			`restored ${place} from ${withRecord(file, newest, cx.times)}: ${recordsOf(restored)}${kept === null ? '' : `; the old one is ${kept}`}`,
		);
		if (uncertain > 0)
			await cx.note(
				`${counted(uncertain, 'message')} may or may not have been sent when the backup was made, and ${uncertain === 1 ? 'is' : 'are'} not sent again`,
			);
		await sayErased(cx, { place, isReplaced: old !== null, erased });
		const waits =
			waiting === 0
				? 'and nothing waits in it'
				: `and ${counted(waiting, 'message')} ${waiting === 1 ? 'waits' : 'wait'} in it, what was sent since the backup too`;
		await cx.note(`the queue is paused, ${waits}`);
		// A move to another machine: the backup has all of them. After the loss of a disk it may lack some.
		if (old === null)
			await cx.hint([
				'persons who were erased since the backup, if any, are in it: ',
				mailctl('subscribers', 'erase', 'ADDRESS'),
			]);
		await cx.hint([
			...(waiting === 0
				? []
				: [
						mailctl('messages', 'list', '--status', 'queued'),
						' and ',
						mailctl('messages', 'list', '--status', 'deferred'),
						', cancel what has left, then ',
					]),
			mailctl('engine', 'queue', 'resume'),
		]);
	},
});

/** What is known of persons who were erased since the backup; where there was no database it is nothing. */
async function sayErased(
	cx: CommandContext,
	{ place, isReplaced, erased }: { place: string; isReplaced: boolean; erased: number | null },
): Promise<void> {
	if (!isReplaced) return;
	if (erased === null)
		await cx.warn(
			`the erasures in ${place} could not be read: persons who were erased since the backup, if any, are in it again`,
		);
	else if (erased > 0)
		await cx.note(
			`${counted(erased, 'person')} of the backup had been erased since, and ${erased === 1 ? 'is' : 'are'} erased again`,
		);
}

/** A dump of one schema makes it. */
function restoring(url: string, file: string): Hint {
	const { url: database } = forServerPrograms(url);
	return [
		'into a new, empty database: ',
		system('pg_restore', '--no-owner', '--exit-on-error', '-d', database, file),
	];
}

async function assertFile(file: string): Promise<void> {
	const found = await stat(file).catch((cause: unknown) => {
		const code = cause instanceof Error && 'code' in cause ? cause.code : cause;
		throw new UsageError(`${file}: ${code === 'ENOENT' ? 'no such file' : String(code)}`, { cause });
	});
	if (!found.isFile())
		throw new UsageError(`${file} is ${found.isDirectory() ? 'a directory' : 'no regular file'}`);
}

function withRecord(file: string, newest: string | null, times: Times): string {
	return newest === null ? file : `${file} (last record: ${times.moment(newest)})`;
}
