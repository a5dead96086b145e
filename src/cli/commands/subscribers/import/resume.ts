/**
 * The beginning of an import: at its first row, or where an earlier run of the same stopped, in that run's rejects
 * file. The mark of a run holds the hash of the file, the request, and the path of its rejects. A session is identified
 * by the first two together, so without the mark a changed file would look like one that was never begun.
 */
import { createHash } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { ImportSpec, Imports } from '../../../../api/capabilities.js';
import { isRecord, readJson } from '../../../../api/json.js';
import { makeFolders } from '../../../../jobs/folders.js';
import { shownDatabase } from '../../../../store/url.js';
import type { Mapping } from '../../../../tables/map-columns.js';
import { isSameSeries } from '../../../../tables/rejects-names.js';
import type { RejectsFile } from '../../../../tables/write-rejects.js';
import type { CommandContext } from '../../../frame/context.js';
import { CliError, exits } from '../../../frame/errors.js';
import { counted } from '../../../render/units.js';
import { holdAlone, importName } from '../../../verbs/importing.js';
import { layoutOfRejects } from '../../../verbs/rejects.js';
import type { TableJob } from './put.js';

interface Identity {
	key: string;
	sha256: string;
	rows: number | null;
	mark: MarkFile | null;
	earlier: Mark | null;
}

/** With `--resume` another source than that of the stopped run is refused here, before anything is written. */
export async function identify(cx: CommandContext, job: TableJob): Promise<Identity> {
	const { file, isOnce, list, table, options } = job;
	const named = { sha256: '', key: '', rows: null as number | null };
	if (isOnce) {
		const source = { job: options.job ?? `stdin ${cx.clock.now()}` };
		named.key = importKey({ ...job, ...table, source });
		// Each run of a stream without a name is a job.
		if (options.job === undefined) return { ...named, mark: null, earlier: null };
	} else {
		const { surveySource } = await import('../../../../tables/source.js');
		const { sha256, lineFeeds } = await surveySource(file, cx.signal);
		const headers = table.format === 'csv' ? 1 : 0;
		named.sha256 = sha256;
		named.key = importKey({ ...job, ...table, source: { sha256 } });
		named.rows = lineFeeds > 1 ? lineFeeds - headers : null;
	}
	const mark = await markOf(cx, options.job === undefined ? resolve(file) : ['job', options.job], list.id);
	await holdAlone(cx, [mark.path], `the import of ${importName(file)} into list ${list.id}`);
	const earlier = options.resume ? await mark.read() : null;
	if (earlier === null || earlier.key === named.key) return { ...named, mark, earlier };
	if (earlier.hasEnded) return { ...named, mark, earlier: null };
	const isSame = earlier.sha256 === named.sha256;
	const what = isSame
		? `the import of ${importName(file)} that stopped had other columns or options`
		: `${importName(file)} has changed since the import that stopped`;
	throw new CliError(isSame ? 'other_options' : 'file_changed', exits.usage, what, {
		hint: 'leave out --resume: what is there already is found unchanged',
	});
}

type BeginningJob = TableJob & Identity & { imports: Imports; rejectsPath: string };

export async function begin(cx: CommandContext, job: BeginningJob): Promise<RejectsFile> {
	const { key, sha256, mark, options } = job;
	const last = options.resume ? null : await mark?.read();
	const rejects = options.resume
		? await goOn(cx, job)
		: last?.key !== key || last.hasEnded
			? await openRejects(job, {})
			: // It is there: the stopped run of this import left it.
				await openRejects(job, { path: rejectsOfRun(job, last), isNumbered: false });
	await mark?.write({ key, sha256, rejects: resolve(rejects.path), hasEnded: false });
	return rejects;
}

/**
 * Rejects of other content in that file would hide those of this import. After the end of a run of the same content,
 * which a kill may have followed at once, the same rows are refused again, and are in the file already.
 */
async function goOn(cx: CommandContext, job: BeginningJob): Promise<RejectsFile> {
	const { imports, key, spec, earlier, options } = job;
	const path = rejectsOfRun(job, earlier);
	const { id, position } = await imports.open(key, spec, { signal: cx.signal });
	const isKnown = earlier?.rejects === resolve(path);
	if (position === 0 && !isKnown) {
		const rejects = await openRejects(job, {}).catch(async (error: unknown) => {
			await imports.finish(id);
			throw error;
		});
		await cx.note('there is nothing to resume: importing from the beginning');
		return rejects;
	}
	// Without a mark the usual name may be an earlier import's.
	const isOwn = earlier === null ? options.rejects !== undefined : isKnown;
	const rejects = await openRejects(job, { path, resume: isOwn });
	await cx.note(
		position === 0
			? 'the earlier run left no rows: importing from the beginning'
			: `going on after the ${counted(position, 'row')} of the earlier run`,
	);
	return rejects;
}

function rejectsOfRun({ rejectsPath, options }: BeginningJob, earlier: Mark | null): string {
	if (options.rejects !== undefined || earlier === null) return rejectsPath;
	if (!isSameSeries(earlier.rejects, resolve(rejectsPath))) return rejectsPath;
	return join(dirname(rejectsPath), basename(earlier.rejects));
}

async function openRejects(
	{ table, mapping, options, rejectsPath }: BeginningJob,
	how: { path?: string; isNumbered?: boolean; resume?: boolean },
): Promise<RejectsFile> {
	const { openRejects } = await import('../../../../tables/write-rejects.js');
	const usual = { path: rejectsPath, isNumbered: options.rejects === undefined };
	return openRejects({ ...layoutOfRejects(table, mapping), ...usual, ...how });
}

interface Mark extends Pick<Identity, 'key' | 'sha256'> {
	rejects: string;
	/** It came to its end: the same import then begins anew, in the same rejects file. */
	hasEnded: boolean;
}

interface MarkFile {
	readonly path: string;
	read(): Promise<Mark | null>;
	/** Before the first row, and at the end. Without a writable folder only this later check is lost. */
	write(mark: Mark): Promise<void>;
}

async function markOf(cx: CommandContext, source: unknown, listId: number): Promise<MarkFile> {
	const { target } = await cx.connection();
	const where = target.kind === 'local' ? shownDatabase(target.url) : target.baseUrl;
	const name = createHash('sha256')
		.update(JSON.stringify([source, listId, where]))
		.digest('hex');
	const path = join(cx.paths.imports, `${name.slice(0, 32)}.json`);
	return {
		path,
		read: async () => {
			const text = await readFile(path, 'utf8').catch(() => 'null');
			const json = readJson(Buffer.from(text));
			const found = json.kind === 'valid' && isRecord(json.value) ? json.value : {};
			const { key, sha256, rejects, hasEnded } = found;
			if (typeof key !== 'string' || typeof sha256 !== 'string' || typeof rejects !== 'string') return null;
			return { key, sha256, rejects, hasEnded: hasEnded === true };
		},
		write: async (mark) => {
			try {
				makeFolders(dirname(path));
				// A kill leaves the mark before, or this one.
				await writeFile(`${path}.part`, `${JSON.stringify(mark)}\n`, { mode: 0o600 });
				await rename(`${path}.part`, path);
			} catch {
				// A home that cannot be written has no mark.
			}
		},
	};
}

export interface ImportIdentity {
	spec: ImportSpec;
	/** The file's SHA-256, or the name given by `--job` (stdin cannot be hashed beforehand). */
	source: { sha256: string } | { job: string };
	mapping: Mapping;
	encoding: string;
	delimiter: string;
}

/** 64 hex digits. The size of batches does not matter, because rows are numbered. */
export function importKey({ spec, source, mapping, encoding, delimiter }: ImportIdentity): string {
	const columns = mapping.columns.map(({ index, target, joined = [] }) => [index, target, ...joined]);
	const from = 'sha256' in source ? ['sha256', source.sha256] : ['job', source.job];
	const words = mapping.states?.[0]?.words ?? {};
	const parts = [spec.list_id, spec.on_conflict, spec.reactivate, from, columns, encoding, delimiter];
	if (Object.keys(words).length > 0) parts.push(Object.entries(words).map((pair) => pair.join('=')));
	return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
