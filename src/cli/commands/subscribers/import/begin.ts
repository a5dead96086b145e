/** How an import begins: at its first row, or where an earlier run of the same stopped, in that run's rejects file. */
import { resolve } from 'node:path';
import type { ImportSpec, Imports } from '../../../../api/capabilities.js';
import type { List } from '../../../../api/records.js';
import type { CommandContext } from '../../../context.js';
import { importName, layoutOfRejects } from '../../../importing.js';
import { counted } from '../../../render/counted.js';
import { TableError } from '../../../tabular/finding.js';
import type { Mapping } from '../../../tabular/header.js';
import type { Table } from '../../../tabular/read-table.js';
import type { RejectsFile } from '../../../tabular/rejects.js';
import type { ImportMark, MarkFile } from './mark.js';
import type { ImportOptions } from './options.js';

export interface Identity {
	/** The same list, content, mapping and options are the same job. */
	key: string;
	/** SHA-256 of the file, empty for standard input. */
	sha256: string;
	/** About as many as the file has; null where nobody knows. */
	rows: number | null;
	/** Null: nobody can go on with it. */
	mark: MarkFile | null;
	/** What an earlier run of this job has left; null without `--resume` too. */
	earlier: ImportMark | null;
}

export interface IdentifiedJob {
	/** As given; `-` is standard input. */
	file: string;
	list: List;
	table: Table;
	mapping: Mapping;
	spec: ImportSpec;
	options: ImportOptions;
}

/** With `--resume` a source that is not the one of the run that stopped is refused here, before anything is written. */
export async function identify(cx: CommandContext, job: IdentifiedJob): Promise<Identity> {
	const { file, list, options } = job;
	const named = await nameJob(cx, job);
	// Without a name standard input has no second time: each run is a job of its own.
	if (file === '-' && options.job === undefined) return { ...named, mark: null, earlier: null };
	const { assertSame, openMark } = await import('./mark.js');
	const source = options.job === undefined ? { file } : { job: options.job };
	const mark = await openMark(cx, source, list.id);
	const earlier = options.resume ? await mark.read() : null;
	assertSame(importName(file), earlier, named);
	return { ...named, mark, earlier: earlier?.key === named.key ? earlier : null };
}

async function nameJob(
	cx: CommandContext,
	{ file, table, mapping, spec, options }: IdentifiedJob,
): Promise<Pick<Identity, 'key' | 'sha256' | 'rows'>> {
	const { importKey } = await import('../../../../jobs/import-key.js');
	const { encoding, delimiter } = table;
	const keyOf = (source: { job: string } | { sha256: string }) =>
		importKey({ spec, mapping, source, encoding, delimiter });
	if (file === '-')
		return { key: keyOf({ job: options.job ?? `stdin ${cx.clock.now()}` }), sha256: '', rows: null };
	const { surveySource } = await import('../../../tabular/source.js');
	const { sha256, lineFeeds } = await surveySource(file, cx.signal);
	const headers = table.format === 'csv' ? 1 : 0;
	return { key: keyOf({ sha256 }), sha256, rows: lineFeeds > 1 ? lineFeeds - headers : null };
}

export interface BeginningJob extends Identity {
	table: Table;
	mapping: Mapping;
	spec: ImportSpec;
	options: ImportOptions;
	imports: Imports;
	rejectsPath: string;
}

/**
 * The rejects file of a run that may begin: a new one, or that of the run it goes on with. Throws `TableError` before
 * the first row where a file is there that is none of its own.
 */
export async function begin(cx: CommandContext, job: BeginningJob): Promise<RejectsFile> {
	const { key, sha256, mark, options } = job;
	const path = resolve(job.rejectsPath);
	const rejects = options.resume
		? await goOn(cx, job, path)
		: await openNew(job).catch((error: unknown) => sayResume(job, error));
	await mark?.write({ key, sha256, rejects: path, hasEnded: false });
	return rejects;
}

/**
 * What an earlier import of another content left in that file would hide the rejects of this one. After the end of a run
 * of the same content, which a kill may have followed at once, the same rows are refused again, and stand there already.
 */
async function goOn(cx: CommandContext, job: BeginningJob, path: string): Promise<RejectsFile> {
	const { imports, key, spec, earlier, rejectsPath } = job;
	const { openRejects } = await import('../../../tabular/rejects.js');
	const { id, position } = await imports.open(key, spec, { signal: cx.signal });
	if (position === 0 && earlier?.rejects !== path) {
		const rejects = await openNew(job).catch(async (error: unknown) => {
			await imports.finish(id);
			throw error instanceof TableError && error.code === 'file_exists' ? nothingToResume(error) : error;
		});
		await cx.note('there is nothing to resume: importing from the beginning');
		return rejects;
	}
	const isOwn = earlier === null || earlier.rejects === null || earlier.rejects === path;
	const rejects = await openRejects({
		...layoutOfRejects(job.table, job.mapping),
		path: rejectsPath,
		resume: isOwn,
	});
	await cx.note(
		position === 0
			? beginsAnew(earlier)
			: `going on after the ${counted(position, 'row')} of the earlier run`,
	);
	return rejects;
}

/** A file that a run of the same import has left, which was stopped: moved away, it would be of no use to anybody. */
async function sayResume({ key, mark }: BeginningJob, error: unknown): Promise<never> {
	const left = error instanceof TableError && error.code === 'file_exists' ? await mark?.read() : null;
	if (!(error instanceof TableError) || left?.key !== key || left.hasEnded) throw error;
	throw new TableError('file_exists', error.message, {
		hint: `--resume goes on with the import that was stopped; to begin anew ${error.hint ?? ''}`,
	});
}

function beginsAnew(earlier: ImportMark | null): string {
	return earlier?.hasEnded === true
		? 'the earlier run had come to its end: importing from the beginning'
		: 'the earlier run had acknowledged no rows: importing from the beginning';
}

async function openNew(job: BeginningJob): Promise<RejectsFile> {
	const { openRejects } = await import('../../../tabular/rejects.js');
	return openRejects({ ...layoutOfRejects(job.table, job.mapping), path: job.rejectsPath });
}

function nothingToResume({ message, hint }: TableError): TableError {
	return new TableError('file_exists', `there is nothing to resume, and ${message}`, {
		...(hint !== null && { hint }),
	});
}
