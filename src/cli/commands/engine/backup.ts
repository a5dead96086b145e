/** `mailctl engine backup`: the database as one file, while it is in use. */

import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { forServerPrograms, isPostgres } from '../../../store/url.js';
import { command } from '../../frame/command.js';
import { type Hint, joinHints, mailctl, system } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, onlyLocal, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { answer } from '../../render/columns.js';
import { counted, numberText } from '../../render/units.js';
import { mayReplace } from '../../verbs/exporting.js';

export const backup = command({
	name: 'backup',
	summary: 'write the whole database to one file, while it is in use',
	description:
		'Works beside `serve`, `worker` and imports, and changes nothing: the file is the database as it was when the ' +
		'backup began, whatever version of mailctl wrote it. It is written under another name, read from end to end, and put into ' +
		'place when it is whole; one that exists is replaced with --force, or when a person agrees. What a kill leaves ' +
		'(.FILE.….backup.part), a later backup into that folder removes after an hour. The file is readable by ' +
		'its owner alone: it holds addresses, and secrets unless `engine secrets wrap` has wrapped them.',
	args: [{ name: 'file', summary: 'where to', ask: 'File to write:' }],
	options: { force: { kind: 'flag', summary: 'replace a file of that name' } },
	createsDatabase: false,
	columns: answer(
		...['database', 'file', 'size_bytes', 'schema_version', 'lists', 'subscribers', 'messages'],
		...['replaced', 'duration_ms'],
	),
	output:
		'{"database", "file", "size_bytes", "schema_version", "lists", "subscribers", "messages", "replaced", "duration_ms"}; every page of the file was checked',
	exits: [74],
	examples: ['mailctl engine backup news-2026-11-01.db', 'mailctl engine backup latest.db --force -o json'],
	run: async (cx, { args, options }) => {
		const target = cx.settings.target.target();
		if (target.kind !== 'local') throw onlyLocal('engine backup');
		const file = args.file;
		if (file === '-')
			throw new UsageError('a backup is checked from end to end, and so needs a file of its own');
		if (isPostgres(target.url)) throw notOfServers('engine backup', dumping(target.url, file));
		await assertElsewhere(target.url, file);
		const replaced = await isReplaced(cx, file, options.force);
		if (cx.dryRun) {
			const { createOutputFile } = await import('../../../tables/output-file.js');
			await (await createOutputFile(file, replaced ? 'replace' : 'refuse')).discard();
			return cx.wouldDo(`back up ${target.url} to ${file}`, { backup: target.url, with: { file, replaced } });
		}
		const began = performance.now();
		let progress: ReturnType<CommandContext['progress']> | null = null;
		const { backUp } = await import('../../connect/backup.js');
		const made = await backUp({
			database: target.url,
			file,
			whenThere: replaced ? 'replace' : 'refuse',
			signal: cx.signal,
			onProgress: ({ pages, of }) => {
				progress ??= cx.progress('backing up, pages', of);
				progress.update(pages);
			},
			onRemoved: (name) => cx.note(`removed ${name}, which a backup that was killed had left`),
		}).finally(() => progress?.stop());
		const duration_ms = Math.round(performance.now() - began);
		await cx.out.document(
			{ database: target.url, file: resolve(file), ...made, replaced, duration_ms },
			`backed up ${target.url} to ${file} (${recordsOf(made)}; ${numberText(made.size_bytes)} bytes, every page checked)`,
		);
	},
});

function dumping(url: string, file: string): Hint {
	const { url: database, schema } = forServerPrograms(url);
	return system('pg_dump', '-Fc', '-d', database, ...(schema === 'public' ? [] : ['-n', schema]), '-f', file);
}

/** PostgreSQL has its own programs. A restored dump holds what was sent since as waiting. */
export function notOfServers(path: string, program: Hint): CliError {
	return new CliError(
		'unsupported_database',
		exits.usage,
		`${path} works on a SQLite file; PostgreSQL has programs of its own`,
		{
			hint: joinHints([
				program,
				[
					'a dump holds as waiting what was sent after it: before any worker works on a restored one, pause it and look through what waits: ',
					mailctl('engine', 'queue', 'pause'),
				],
			]),
		},
	);
}

/** `2 lists, 1,000 subscribers, 3,000 messages`. */
export function recordsOf(made: { lists: number; subscribers: number; messages: number }): string {
	const { lists, subscribers, messages } = made;
	return [counted(lists, 'list'), counted(subscribers, 'subscriber'), counted(messages, 'message')].join(
		', ',
	);
}

/** Refuses to back up over the database itself, or over its log, which would be lost. */
async function assertElsewhere(database: string, file: string): Promise<void> {
	const path = await placeOf(file);
	const own = await placeOf(database);
	if (!['', '-wal', '-shm', '-journal'].some((suffix) => path === `${own}${suffix}`)) return;
	throw new UsageError(`${file} is the database itself`, { hint: 'name another file' });
}

/** The real path of a name, also of a missing file. */
async function placeOf(file: string): Promise<string> {
	const path = resolve(file);
	return realpath(path).catch(async () =>
		join(await realpath(dirname(path)).catch(() => dirname(path)), basename(path)),
	);
}

/** True: the file exists, and may be replaced. Throws `UsageError` and `Declined`. */
async function isReplaced(cx: CommandContext, file: string, force: boolean): Promise<boolean> {
	const there = await stat(file).catch(() => null);
	if (there === null) return false;
	if (!there.isFile()) throw new UsageError(`${file} is no regular file`, { hint: 'name another file' });
	if (await mayReplace(cx, file, force)) return true;
	throw new UsageError(`${file} exists already`, { hint: '--force replaces it' });
}
