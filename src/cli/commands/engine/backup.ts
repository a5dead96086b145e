import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { forServerPrograms, isPostgres, shownDatabase } from '../../../store/url.js';
import { confirmChange } from '../../config/profiles.js';
import { command } from '../../frame/command.js';
import { type Hint, joinHints, mailctl, system } from '../../frame/command-line.js';
import type { CountCheck, OtherProcess } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, onlyLocal, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { answer } from '../../render/columns.js';
import { counted, numberText } from '../../render/units.js';
import { mayReplace } from '../../verbs/exporting.js';

export const backup = command({
	name: 'backup',
	summary: 'copy the database to a file while it is in use',
	description:
		'Works beside `serve` and `worker`. The file appears only when it is complete and every page was ' +
		'checked. Only its owner can read it, because it holds addresses and secrets. `engine secrets wrap` ' +
		'encrypts the secrets.',
	args: [{ name: 'file', summary: 'the file to write', ask: 'File to write:' }],
	options: { force: { kind: 'flag', summary: 'replace an existing file' } },
	createsDatabase: false,
	columns: answer(
		...['database', 'file', 'size_bytes', 'schema_version', 'lists', 'subscribers', 'messages'],
		...['replaced', 'duration_ms'],
	),
	output:
		'{"database", "file", "size_bytes", "schema_version", "lists", "subscribers", "messages", "replaced", "duration_ms"}; every page of the file was checked',
	exits: [74],
	examples: ['mailctl engine backup news-2026-11-01.db', 'mailctl engine backup latest.db --force -o json'],
	run: async (cx, { args: { file }, options }) => {
		if (file === '-') throw new UsageError('a backup needs a file, because mailctl checks the written file');
		const database = localFile(cx, 'engine backup', (url) => {
			const { url: from, schema } = forServerPrograms(url);
			const only = schema === 'public' ? [] : ['-n', schema];
			return system('pg_dump', '-Fc', '-d', from, ...only, '-f', file);
		});
		// A backup that replaces the database or its write-ahead log would lose data.
		const [path, own] = [await placeOf(file), await placeOf(database)];
		if (['', '-wal', '-shm', '-journal'].some((suffix) => path === `${own}${suffix}`))
			throw new UsageError(`${file} is the database itself`, { hint: 'name another file' });
		const there = await stat(file).catch(() => null);
		if (there?.isFile() === false) throw new UsageError(`${file} is not a file`);
		const replaced = await mayReplace(cx, file, options.force);
		const whenThere = replaced ? 'replace' : 'refuse';
		if (cx.dryRun) {
			const { createOutputFile } = await import('../../../tables/output-file.js');
			await (await createOutputFile(file, whenThere)).discard();
			return cx.wouldDo(`back up ${database} to ${file}`, { backup: database, with: { file, replaced } });
		}
		const { backUp } = await import('../../connect/backup.js');
		const began = performance.now();
		const { stop, onProgress } = pagesOf(cx, 'backing up, pages');
		const made = await backUp({
			...{ database, file, whenThere, onProgress },
			signal: cx.signal,
			onRemoved: (name) => cx.note(`removed ${name}, left by a backup that was killed`),
		}).finally(stop);
		const duration_ms = Math.round(performance.now() - began);
		await cx.out.document(
			{ database, file: resolve(file), ...made, replaced, duration_ms },
			`backed up ${database} to ${file} (${recordsOf(made)}; ${numberText(made.size_bytes)} bytes, every page checked)`,
		);
	},
});

export const restore = command({
	name: 'restore',
	summary: 'replace the database with a backup',
	description:
		'Checks the backup, and keeps the old database as FILE.db.before-restore-TIME. First stop all processes ' +
		'that use the database. Messages that were sent after the backup are queued again, but the queue is paused: ' +
		'cancel them, then run `engine queue resume`. Encrypted secrets need their key (MAILCTL_KEY_FILE).',
	args: [{ name: 'file', summary: 'a file that `engine backup` wrote', of: 'file', ask: 'Backup:' }],
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
		const url = localFile(cx, 'engine restore', (url) => {
			const { url: database } = forServerPrograms(url);
			const restoring = system('pg_restore', '--no-owner', '--exit-on-error', '-d', database, file);
			// Messages that were sent after the dump are still queued in the dump, so a worker would send them again.
			const pause = ['before any worker uses the new database: ', mailctl('engine', 'queue', 'pause')];
			return joinHints([['into a new, empty database: ', restoring], pause]);
		});
		const found = await stat(file).catch(() => null);
		if (found?.isFile() !== true)
			throw new UsageError(`${file}${found === null ? ': no such file' : ' is not a regular file'}`);
		const { assertNotOpen, assertSound, planRestore, restore } = await import('../../connect/backup.js');
		const plan = planRestore(url, file, cx.clock);
		const { place, old, newest } = plan;
		if (old !== null && old.usedBy.length > 0)
			throw inUse(old.usedBy, 'stop these processes, then try again');
		const withRecord = (name: string, at: string | null) =>
			at === null ? name : `${name} (last record: ${cx.times.moment(at)})`;
		const what = `replace ${withRecord(place, old?.newest ?? null)} with ${withRecord(file, newest)}`;
		if (cx.dryRun) {
			assertSound(file);
			return cx.wouldDo(what, { restore: file, with: { database: place, replaced: old !== null }, newest });
		}
		assertNotOpen(plan);
		if (old !== null)
			await cx.confirm({ kind: 'severe', what: `${what}, and rename the old database`, name: 'restore' });
		const began = performance.now();
		const { stop, onProgress } = pagesOf(cx, 'restoring, pages');
		const restored = await restore({
			...{ plan, file, clock: cx.clock, env: cx.io.env, signal: cx.signal, onProgress },
			warn: (text) => void cx.warn(text),
			onRemoved: (name) => cx.note(`removed ${name}, left by a restore that was killed`),
		}).finally(stop);
		const duration_ms = Math.round(performance.now() - began);
		const kept = restored.kept === null ? '' : `; the old database is now ${restored.kept}`;
		await cx.out.document(
			{ database: place, file, newest, ...restored, queue: 'paused', duration_ms },
			`restored ${place} from ${withRecord(file, newest)}: ${recordsOf(restored)}${kept}`,
		);
		await sayWhatToLookAt(cx, restored, old !== null);
	},
});

type Restored = { uncertain: number; waiting: number; erased: number | null };

/**
 * The restore repeats the erasures that the old database lists. Without an old database, people who were erased after
 * the backup may be back.
 */
async function sayWhatToLookAt(cx: CommandContext, restored: Restored, isReplaced: boolean): Promise<void> {
	const { uncertain, waiting, erased } = restored;
	if (uncertain > 0)
		await cx.note(
			`${counted(uncertain, 'message')} that mailctl was sending during the backup may have arrived, and will not be sent again`,
		);
	if (!isReplaced || erased === null)
		await cx.warn('the restored database may contain people who were erased after the backup');
	const waits = `and ${counted(waiting, 'waiting message')} may have been sent since the backup`;
	await cx.note(`the queue is paused, ${waiting === 0 ? 'and no message is waiting' : waits}`);
	const first =
		waiting === 0
			? ''
			: 'cancel waiting messages that were already sent (messages list, messages cancel), then ';
	await cx.hint([first, mailctl('engine', 'queue', 'resume')]);
}

function localFile(cx: CommandContext, path: string, ofServer: (url: string) => Hint): string {
	const target = cx.settings.target.target();
	if (target.kind !== 'local') throw onlyLocal(path);
	if (!isPostgres(target.url)) return target.url;
	const message = `${path} needs a SQLite file; for PostgreSQL use pg_dump and pg_restore`;
	throw new CliError('unsupported_database', exits.usage, message, { hint: ofServer(target.url) });
}

function pagesOf(cx: CommandContext, what: string) {
	let progress: ReturnType<CommandContext['progress']> | null = null;
	return {
		onProgress: ({ pages, of }: { pages: number; of: number }) => {
			progress ??= cx.progress(what, of);
			progress.update(pages);
		},
		stop: () => progress?.stop(),
	};
}

function recordsOf(made: { lists: number; subscribers: number; messages: number }): string {
	const { lists, subscribers, messages } = made;
	return `${counted(lists, 'list')}, ${counted(subscribers, 'subscriber')}, ${counted(messages, 'message')}`;
}

async function placeOf(file: string): Promise<string> {
	const path = resolve(file);
	return realpath(path).catch(async () =>
		join(await realpath(dirname(path)).catch(() => dirname(path)), basename(path)),
	);
}

export function inUse(by: readonly OtherProcess[], hint: string): UsageError {
	const names = by.map(({ role, host, pid }) => `${role} (pid ${pid} on ${host})`);
	return new UsageError(`the database is in use by ${names.join(', ')}; nothing was changed`, { hint });
}

export const check = command({
	name: 'check',
	summary: 'verify the database and its counters',
	description:
		'Reads every page and index, looks for rows without a parent, and recounts lists, report figures and ' +
		'campaigns; on PostgreSQL it only recounts. --repair corrects counters. Restore a damaged file from a ' +
		'backup.',
	options: { repair: { kind: 'flag', summary: 'correct wrong counters' } },
	writes: true,
	asksItself: true,
	createsDatabase: false,
	columns: answer('database', 'orphans', 'lists', 'figures', 'campaigns', 'repaired'),
	output:
		'{"database", "orphans": [texts], "lists": [{"list_id", "name", "active", "inactive"}], "figures", "campaigns": [names], "repaired"}; each counter has "kept" and "counted"; "figures" is the number of wrong figures',
	exits: [11, 74],
	examples: ['mailctl engine check', 'mailctl engine check --repair -o json'],
	run: async (cx, { options: { repair } }): Promise<ExitCode> => {
		const target = cx.settings.target.target();
		if (target.kind !== 'local') throw onlyLocal('engine check');
		const database = shownDatabase(target.url);
		const { counts } = await cx.local();
		const { readWhole } = await import('../../connect/inspect.js');
		const orphans = await cx.killable(async () => readWhole(target.url), `reading ${database}`);
		if (repair) await confirmChange(cx, 'engine check --repair');
		const recount = () => (repair ? counts.repair() : counts.check());
		const found = await cx.killable(recount, `recounting ${database}`);
		const wrong = found.lists.length + found.figures + found.campaigns.length;
		if (cx.dryRun) {
			const what = repair ? `correct ${counted(wrong, 'counter')} of ${database}` : `check ${database}`;
			await cx.wouldDo(what, { check: database, with: { repair }, orphans, ...found });
			return exits.done;
		}
		const repaired = repair && wrong > 0;
		const isWell = orphans.length === 0 && (wrong === 0 || repaired);
		const says = repaired ? `; ${counted(wrong, 'counter')} corrected` : ', and its counters are correct';
		await cx.out.document(
			{ database, orphans, ...found, repaired },
			isWell ? `${database} is undamaged${says}` : undefined,
		);
		for (const line of [...orphans, ...(repaired ? [] : faultsIn(found))]) await cx.warn(line);
		if (wrong > 0 && !repaired) await cx.hint(mailctl('engine', 'check', '--repair'));
		return isWell ? exits.done : exits.found;
	},
});

function* faultsIn({ lists, figures, campaigns }: CountCheck): Generator<string> {
	for (const { list_id, name } of lists)
		yield `the counters of list ${list_id} "${name}" do not match its subscribers`;
	if (figures > 0) yield `the reports have ${counted(figures, 'wrong figure')}`;
	for (const name of campaigns) yield `campaign "${name}" has waiting messages that no worker would send`;
}
