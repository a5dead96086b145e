/**
 * The beginning of an import: at its first row, or where an earlier run of the same stopped, in that run's rejects
 * file. The mark of a run holds the hash of the file, the request, and the path of its rejects. A session is identified
 * by the first two together, so without the mark a changed file would look like one that was never begun.
 */
import { createHash } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { ImportSpec, Imports } from '../../../../api/capabilities.js';
import type { List } from '../../../../api/records.js';
import { makeFolders } from '../../../../jobs/folders.js';
import { shownDatabase } from '../../../../store/url.js';
import { TableError } from '../../../../tables/finding.js';
import type { Mapping } from '../../../../tables/map-columns.js';
import type { Table } from '../../../../tables/read-table.js';
import { isSameSeries } from '../../../../tables/rejects-names.js';
import type { RejectsFile } from '../../../../tables/write-rejects.js';
import { mailctl } from '../../../frame/command-line.js';
import type { CommandContext } from '../../../frame/context.js';
import { CliError } from '../../../frame/errors.js';
import { counted } from '../../../render/plurals.js';
import { holdAlone, importName } from '../../../verbs/importing.js';
import { layoutOfRejects } from '../../../verbs/rejects.js';
import type { ImportOptions } from './options.js';

export interface Identity {
	/** The same list, content, mapping and options are the same job. */
	key: string;
	/** SHA-256 of the file, empty for what comes once. */
	sha256: string;
	/** About as many as the file has; null where that is unknown. */
	rows: number | null;
	/** Null: it cannot be resumed. */
	mark: MarkFile | null;
	/** The mark of an earlier run of this job; null without `--resume` too. */
	earlier: ImportMark | null;
}

export interface IdentifiedJob {
	/** As given; `-` is standard input. */
	file: string;
	/** Its bytes come once. */
	isOnce: boolean;
	list: List;
	table: Table;
	mapping: Mapping;
	spec: ImportSpec;
	options: ImportOptions;
}

/** With `--resume` a source that is not the one of the run that stopped is refused here, before anything is written. */
export async function identify(cx: CommandContext, job: IdentifiedJob): Promise<Identity> {
	const { file, isOnce, list, options } = job;
	const named = await nameJob(cx, job);
	// What comes once, without a name: each run is a job of its own.
	if (isOnce && options.job === undefined) return { ...named, mark: null, earlier: null };
	const source = options.job === undefined ? { file } : { job: options.job };
	const mark = await openMark(cx, source, list.id);
	await holdAlone(cx, [mark.path], `the import of ${importName(file)} into list ${list.id}`);
	const earlier = options.resume ? await mark.read() : null;
	assertSame(importName(file), earlier, named);
	return { ...named, mark, earlier: earlier?.key === named.key ? earlier : null };
}

async function nameJob(
	cx: CommandContext,
	{ file, isOnce, table, mapping, spec, options }: IdentifiedJob,
): Promise<Pick<Identity, 'key' | 'sha256' | 'rows'>> {
	const { encoding, delimiter } = table;
	const keyOf = (source: { job: string } | { sha256: string }) =>
		importKey({ spec, mapping, source, encoding, delimiter });
	if (isOnce)
		return { key: keyOf({ job: options.job ?? `stdin ${cx.clock.now()}` }), sha256: '', rows: null };
	const { surveySource } = await import('../../../../tables/source.js');
	const { sha256, lineFeeds } = await surveySource(file, cx.signal);
	const headers = table.format === 'csv' ? 1 : 0;
	return { key: keyOf({ sha256 }), sha256, rows: lineFeeds > 1 ? lineFeeds - headers : null };
}

export interface BeginningJob extends Identity {
	table: Table;
	mapping: Mapping;
	spec: ImportSpec;
	options: ImportOptions;
	file: string;
	imports: Imports;
	/** Row by row, to a service that keeps no imports. */
	isForeign: boolean;
	rejectsPath: string;
}

/**
 * The rejects file of a run that may begin: a new one, or that of the resumed run. Throws `TableError` before the first
 * row where a foreign file is there.
 */
export async function begin(cx: CommandContext, job: BeginningJob): Promise<RejectsFile> {
	const { key, sha256, mark, options, isForeign } = job;
	await assertSameRoad(importName(job.file), mark, { key, isForeign });
	const rejects = options.resume ? await goOn(cx, job) : await openAnew(job);
	await mark?.write({ key, sha256, rejects: resolve(rejects.path), hasEnded: false, isForeign });
	return rejects;
}

/**
 * Rejects of an import of other content in that file would hide those of this one. After the end of a run of the same
 * content, which a kill may have followed at once, the same rows are refused again, and are in the file already.
 */
async function goOn(cx: CommandContext, job: BeginningJob): Promise<RejectsFile> {
	const { imports, key, spec, earlier } = job;
	const path = rejectsOfRun(job);
	const { openRejects } = await import('../../../../tables/write-rejects.js');
	const { id, position } = await imports.open(key, spec, { signal: cx.signal });
	if (position === 0 && earlier?.rejects !== resolve(path)) {
		const rejects = await openNew(job).catch(async (error: unknown) => {
			await imports.finish(id);
			throw error instanceof TableError && error.code === 'file_exists' ? nothingToResume(error) : error;
		});
		await cx.note('there is nothing to resume: importing from the beginning');
		return rejects;
	}
	// Without a mark the usual name may be an earlier import's.
	const isOwn =
		earlier === null || earlier.rejects === null
			? job.options.rejects !== undefined
			: earlier.rejects === resolve(path);
	const rejects = await openRejects({
		...layoutOfRejects(job.table, job.mapping),
		path,
		isNumbered: job.options.rejects === undefined,
		resume: isOwn,
	});
	await cx.note(
		position === 0
			? beginsAnew(earlier)
			: `going on after the ${counted(position, 'row')} of the earlier run`,
	);
	return rejects;
}

/** The usual path, or the numbered one that the earlier run took in its place. */
function rejectsOfRun({ rejectsPath, earlier, options }: BeginningJob): string {
	const last = earlier?.rejects ?? null;
	if (options.rejects !== undefined || last === null || !isSameSeries(last, resolve(rejectsPath)))
		return rejectsPath;
	return join(dirname(rejectsPath), basename(last));
}

/** A rejects file left by a stopped run of this import: the hint is `--resume`, not to move the file away. */
async function openAnew(job: BeginningJob): Promise<RejectsFile> {
	const last = (await job.mark?.read()) ?? null;
	if (last?.key !== job.key || last.hasEnded) return openNew(job);
	const left = { ...job, rejectsPath: rejectsOfRun({ ...job, earlier: last }), isNumbered: false };
	return openNew(left).catch((error: unknown) => {
		if (!(error instanceof TableError) || error.code !== 'file_exists') throw error;
		throw new TableError('file_exists', error.message, {
			hint: `--resume goes on with the import that was stopped; to begin anew ${error.hint ?? ''}`,
		});
	});
}

function beginsAnew(earlier: ImportMark | null): string {
	return earlier?.hasEnded === true
		? 'the earlier run had come to its end: importing from the beginning'
		: 'the earlier run had acknowledged no rows: importing from the beginning';
}

async function openNew(job: BeginningJob & { isNumbered?: boolean }): Promise<RejectsFile> {
	const { openRejects } = await import('../../../../tables/write-rejects.js');
	const { table, mapping, options, rejectsPath: path } = job;
	const { isNumbered = options.rejects === undefined } = job;
	return openRejects({ ...layoutOfRejects(table, mapping), path, isNumbered });
}

function nothingToResume({ message, hint }: TableError): TableError {
	return new TableError('file_exists', `there is nothing to resume, and ${message}`, {
		...(hint !== null && { hint }),
	});
}

export interface ImportMark {
	/** SHA-256 of the file; empty for standard input, which has no second time. */
	sha256: string;
	/** The job's key: list, content, columns and options. */
	key: string;
	/** Absolute path of its rejects file; null where it is unknown. */
	rejects: string | null;
	/** It came to its end: the same import then begins anew, in the same rejects file. */
	hasEnded: boolean;
	/** Row by row to a service that keeps no imports; null where an earlier version wrote the mark. */
	isForeign: boolean | null;
}

export interface MarkFile {
	readonly path: string;
	/** The mark of the last run; null: missing or unreadable. */
	read(): Promise<ImportMark | null>;
	/** Before the first row, and at the end. Without a writable folder only this later check is lost. */
	write(mark: ImportMark): Promise<void>;
}

/** Where the rows come from: a file by its path, or standard input under the name of a job. */
export type MarkedSource = { file: string } | { job: string };

/** The mark of this source for this list of this target. */
export async function openMark(cx: CommandContext, source: MarkedSource, listId: number): Promise<MarkFile> {
	const { target } = await cx.connection();
	const where = target.kind === 'local' ? shownDatabase(target.url) : target.baseUrl;
	const from = 'file' in source ? resolve(source.file) : ['job', source.job];
	const name = createHash('sha256')
		.update(JSON.stringify([from, listId, where]))
		.digest('hex');
	const path = join(cx.paths.imports, `${name.slice(0, 32)}.json`);
	return {
		path,
		read: () => readMark(path),
		write: async (mark) => {
			try {
				makeFolders(dirname(path));
				// Renamed: a kill leaves the mark before, or this one.
				await writeFile(`${path}.part`, `${JSON.stringify(mark)}\n`, { mode: 0o600 });
				await rename(`${path}.part`, path);
			} catch {
				// A home that cannot be written has no mark.
			}
		},
	};
}

/**
 * Refuses to go on where the content or the options are not those of the run that stopped (exit 2). `name` is how the
 * source is called.
 */
export function assertSame(
	name: string,
	earlier: ImportMark | null,
	now: Pick<ImportMark, 'sha256' | 'key'>,
): void {
	if (earlier === null || earlier.hasEnded || earlier.key === now.key) return;
	throw earlier.sha256 === now.sha256 ? otherOptions(name) : changed(name);
}

/**
 * Refuses to go on, or to begin again, by another road than that of the run that stopped (exit 2): a page in the place of
 * our own server makes it look like a service of others, where each row would be a request.
 */
export async function assertSameRoad(
	name: string,
	mark: MarkFile | null,
	now: Pick<ImportMark, 'key'> & { isForeign: boolean },
): Promise<void> {
	const last = (await mark?.read()) ?? null;
	if (mark === null || last === null || last.hasEnded || last.key !== now.key) return;
	if (last.isForeign === null || last.isForeign === now.isForeign) return;
	const [was, is] = last.isForeign ? ['no mailctl server', 'one'] : ['a mailctl server', 'none'];
	const text = `the import of ${name} that stopped was begun when this service was ${was}; now it says that it is ${is}`;
	throw new CliError('other_road', 2, text, {
		hint: [
			'look at what answers there: ',
			mailctl('api', 'GET', '/'),
			`; where the service was replaced for good, remove ${mark.path}`,
		],
	});
}

async function readMark(path: string): Promise<ImportMark | null> {
	try {
		const found: unknown = JSON.parse(await readFile(path, 'utf8'));
		if (typeof found !== 'object' || found === null || !('sha256' in found) || !('key' in found)) return null;
		const rejects = 'rejects' in found && typeof found.rejects === 'string' ? found.rejects : null;
		const hasEnded = 'hasEnded' in found && found.hasEnded === true;
		const isForeign = 'isForeign' in found && typeof found.isForeign === 'boolean' ? found.isForeign : null;
		return { sha256: String(found.sha256), key: String(found.key), rejects, hasEnded, isForeign };
	} catch {
		return null;
	}
}

function changed(file: string): CliError {
	return new CliError('file_changed', 2, `${file} has changed since the import that stopped`, {
		hint: 'import it without --resume (and with another --rejects FILE): what is there already is found unchanged',
	});
}

function otherOptions(file: string): CliError {
	return new CliError('other_options', 2, `the import of ${file} that stopped had other columns or options`, {
		hint: 'repeat them as they were, or leave out --resume: what is there already is found unchanged',
	});
}

export interface ImportIdentity {
	spec: ImportSpec;
	/** The file's SHA-256, or the name given by `--job` (stdin cannot be hashed beforehand). */
	source: { sha256: string } | { job: string };
	mapping: Mapping;
	/** As used, not as named: they decide which rows there are. */
	encoding: string;
	delimiter: string;
}

/** 64 hex digits. The size of batches is no part of it: rows are numbered, batches may be cut otherwise. */
export function importKey({ spec, source, mapping, encoding, delimiter }: ImportIdentity): string {
	const columns = mapping.columns.map(({ index, target, joined = [] }) => [index, target, ...joined]);
	const from = 'sha256' in source ? ['sha256', source.sha256] : ['job', source.job];
	const words = mapping.states?.[0]?.words ?? {};
	const parts = [spec.list_id, spec.on_conflict, spec.reactivate, from, columns, encoding, delimiter];
	if (Object.keys(words).length > 0) parts.push(Object.entries(words).map((pair) => pair.join('=')));
	return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
