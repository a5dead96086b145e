/**
 * Starts an import at its first row, or where an earlier run stopped, with that run's rejects file. Each run stores a
 * mark with the hash of the file, the key of the session, and the path of the rejects file. The key depends on the
 * hash, so without a mark a changed file would look like a new import.
 */
import { createHash } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { ImportSpec, Imports } from '../../../../api/capabilities.js';
import { isRecord, readJson } from '../../../../api/json.js';
import { makeFolders } from '../../../../jobs/folders.js';
import { shownDatabase } from '../../../../store/url.js';
import type { Mapping } from '../../../../tables/map-columns.js';
import type { RejectsFile } from '../../../../tables/write-rejects.js';
import type { CommandContext } from '../../../frame/context.js';
import { CliError, exits } from '../../../frame/errors.js';
import { counted } from '../../../render/units.js';
import { holdAlone, importName, layoutOfRejects } from '../../../verbs/importing.js';
import type { TableJob } from './run.js';

interface Identity {
	key: string;
	sha256: string;
	rows: number | null;
	mark: MarkFile | null;
	earlier: Mark | null;
}

/** With `--resume`, refuses another source or other options than those of the stopped run, before any write. */
export async function identify(cx: CommandContext, job: TableJob): Promise<Identity> {
	const { file, isOnce, list, table, options } = job;
	const keyOf = (source: ImportIdentity['source']) => importKey({ ...job, ...table, source });
	let sha256 = '';
	let rows: number | null = null;
	if (!isOnce) {
		const { surveySource } = await import('../../../../tables/source.js');
		const survey = await surveySource(file, cx.signal);
		sha256 = survey.sha256;
		const headers = table.format === 'csv' ? 1 : 0;
		rows = survey.lineFeeds > 1 ? survey.lineFeeds - headers : null;
	}
	const key = keyOf(isOnce ? { job: options.job ?? `stdin ${cx.clock.now()}` } : { sha256 });
	// Each run of an unnamed stream is a separate job.
	if (isOnce && options.job === undefined) return { key, sha256, rows, mark: null, earlier: null };
	const mark = await markOf(cx, options.job === undefined ? resolve(file) : ['job', options.job], list.id);
	await holdAlone(cx, [mark.path], `the import of ${importName(file)} into list ${list.id}`);
	const earlier = options.resume ? await mark.read() : null;
	if (earlier === null || earlier.key === key) return { key, sha256, rows, mark, earlier };
	const isSame = earlier.sha256 === sha256;
	const what = isSame
		? `the import of ${importName(file)} that stopped had other columns or options`
		: `${importName(file)} has changed since the import that stopped`;
	throw new CliError(isSame ? 'other_options' : 'file_changed', exits.usage, what, {
		hint: 'leave out --resume: what is there already is found unchanged',
	});
}

type BeginningJob = TableJob & Identity & { imports: Imports; rejectsPath: string };

/** Continues only the rejects file of the stopped run, because rejects of other content would hide those of this import. */
export async function begin(
	cx: CommandContext,
	{ imports, key, spec, earlier, options, table, mapping, rejectsPath }: BeginningJob,
): Promise<RejectsFile> {
	const { openRejects } = await import('../../../../tables/write-rejects.js');
	const layout = layoutOfRejects(table, mapping, options.rejects);
	if (!options.resume) return openRejects({ path: rejectsPath, ...layout });
	const { position } = await imports.open(key, spec, { signal: cx.signal });
	const path = options.rejects ?? (earlier === null ? rejectsPath : besides(rejectsPath, earlier.rejects));
	const isKnown = earlier?.rejects === resolve(path);
	// Without a mark, the usual rejects file may belong to another import.
	const resume = earlier === null ? options.rejects !== undefined : isKnown;
	const isNew = position === 0 && !isKnown;
	const rejects = await openRejects({ ...layout, ...(isNew ? { path: rejectsPath } : { path, resume }) });
	await cx.note(
		position === 0
			? 'there is nothing to resume: importing from the beginning'
			: `going on after the ${counted(position, 'row')} of the earlier run`,
	);
	return rejects;
}

/** Returns the path `found` with its folder as the user wrote it. */
function besides(path: string, found: string): string {
	return dirname(found) === resolve(dirname(path)) ? join(dirname(path), basename(found)) : found;
}

interface Mark {
	key: string;
	sha256: string;
	rejects: string;
}

interface MarkFile {
	readonly path: string;
	read(): Promise<Mark | null>;
	/** If the folder is not writable, a later run only loses this check. */
	write(mark: Mark): Promise<void>;
	/** Call it at the end, so that the same import starts over. */
	remove(): Promise<void>;
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
			const { key, sha256, rejects } = json.kind === 'valid' && isRecord(json.value) ? json.value : {};
			if (typeof key !== 'string' || typeof sha256 !== 'string' || typeof rejects !== 'string') return null;
			return { key, sha256, rejects };
		},
		write: async (mark) => {
			try {
				makeFolders(dirname(path));
				// After a kill, the file is the previous mark or this one, complete.
				await writeFile(`${path}.part`, `${JSON.stringify(mark)}\n`, { mode: 0o600 });
				await rename(`${path}.part`, path);
			} catch {
				// If the home folder is not writable, there is no mark.
			}
		},
		remove: () => rm(path, { force: true }).catch(() => undefined),
	};
}

export interface ImportIdentity {
	spec: ImportSpec;
	/** The file's SHA-256, or the name given by `--job`, because stdin cannot be hashed in advance. */
	source: { sha256: string } | { job: string };
	mapping: Mapping;
	encoding: string;
	delimiter: string;
}

/** 64 hex digits. Excludes the batch size, because rows are numbered. */
export function importKey({ spec, source, mapping, encoding, delimiter }: ImportIdentity): string {
	const columns = mapping.columns.map(({ index, target, joined = [] }) => [index, target, ...joined]);
	const from = 'sha256' in source ? ['sha256', source.sha256] : ['job', source.job];
	const words = mapping.states?.[0]?.words ?? {};
	const parts = [spec.list_id, spec.on_conflict, spec.reactivate, from, columns, encoding, delimiter];
	if (Object.keys(words).length > 0) parts.push(Object.entries(words).map((pair) => pair.join('=')));
	return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
