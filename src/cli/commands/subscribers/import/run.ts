import { createHash } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { emailKey } from '../../../../api/address.js';
import type { Api } from '../../../../api/api.js';
import { sleep } from '../../../../api/backoff.js';
import type { ImportSpec, Imports } from '../../../../api/capabilities.js';
import { invalid } from '../../../../api/errors.js';
import { isRecord, readJson } from '../../../../api/json.js';
import type { List } from '../../../../api/records.js';
import { subscriberFields } from '../../../../api/subscribers.js';
import { makeFolders } from '../../../../jobs/folders.js';
import type { ImportJob, ImportResult, MaxErrors } from '../../../../jobs/imports.js';
import type { SingleImports, WritableApi } from '../../../../jobs/single-imports.js';
import { shownDatabase } from '../../../../store/url.js';
import { cellOf, mappedName } from '../../../../tables/column-names.js';
import type { Mapping } from '../../../../tables/map-columns.js';
import type { Table } from '../../../../tables/read-table.js';
import type { RejectsFile } from '../../../../tables/write-rejects.js';
import type { CommandContext } from '../../../frame/context.js';
import { CliError } from '../../../frame/errors.js';
import { type ExitCode, exits } from '../../../frame/exit.js';
import { isTable } from '../../../frame/globals.js';
import { counted, numberText } from '../../../render/units.js';
import { shorten } from '../../../render/width.js';
import {
	answerImport,
	holdAlone,
	holdRejects,
	importName,
	layoutOfRejects,
	planImport,
	runShown,
	tallySentence,
} from '../../../verbs/importing.js';
import type { ImportOptions } from '../import.js';
import { createFields } from './columns.js';

interface TableJob {
	file: string;
	isOnce: boolean;
	list: List;
	table: Table;
	mapping: Mapping;
	spec: ImportSpec;
	options: ImportOptions;
	limits: { maxErrors: MaxErrors | null; rate: number | null };
}

type PutJob = TableJob & { rejectsPath: string };

export async function putTable(cx: CommandContext, job: PutJob): Promise<ExitCode> {
	const { options, spec } = job;
	const { key, sha256, rows, mark, earlier } = await identify(cx, job);
	const { imports, foreign, batchRows } = await placeOf(cx, job);
	try {
		await holdRejects(cx, job.rejectsPath);
		const rejects = await openRejectsOf(cx, job, { imports, key, earlier });
		try {
			await mark?.write({ key, sha256, rejects: resolve(rejects.path) });
			await createFields(cx, job.mapping);
			if (foreign === null && !options.resume) {
				// An import without `--resume` starts over, so close the session of a stopped run.
				const session = await imports.open(key, spec);
				if (session.position > 0) await imports.finish(session.id);
			}
			const goOn =
				job.isOnce && options.job === undefined
					? 'imported rows stay; import everything again (--resume needs a file or --job NAME)'
					: 'imported rows stay; run the same command with --resume to go on';
			const how = { ...(await rowsOf(cx, job, foreign)), imports, batchRows, key };
			const result = await runShown(cx, how, {
				...{ write: rejects.write.bind(rejects), rows, goOn },
				...(foreign !== null && { onPause: (listener) => foreign.onPause(listener) }),
			});
			if (result.isComplete) await mark?.remove();
			await sayReasons(cx, result, foreign);
			const exit = await answerImport(cx, result, { path: rejects.path, goOn });
			if (result.outcome === 'too_many_errors') throw tooManyErrors(result, options.maxErrors);
			return exit;
		} finally {
			await rejects.close();
		}
	} finally {
		await foreign?.close();
	}
}

type Identity = Awaited<ReturnType<typeof identify>>;

/** With `--resume`, throws before any write if the source or the options differ from those of the stopped run. */
async function identify(cx: CommandContext, job: TableJob) {
	const { file, isOnce, list, table, options } = job;
	let sha256 = '';
	let rows: number | null = null;
	if (!isOnce) {
		const { surveySource } = await import('../../../../tables/source.js');
		const survey = await surveySource(file, cx.signal);
		sha256 = survey.sha256;
		const headers = table.format === 'csv' ? 1 : 0;
		rows = survey.lineFeeds > 1 ? survey.lineFeeds - headers : null;
	}
	const source = isOnce ? { job: options.job ?? `stdin ${cx.clock.now()}` } : { sha256 };
	const key = importKey({ ...job, ...table, source });
	// Without `--job`, nothing identifies a stream, so each run is a new import.
	if (isOnce && options.job === undefined) return { key, sha256, rows, mark: null, earlier: null };
	const { target } = await cx.connection();
	const where = target.kind === 'local' ? shownDatabase(target.url) : target.baseUrl;
	const named = options.job === undefined ? resolve(file) : ['job', options.job];
	const mark = new MarkFile(join(cx.paths.imports, `${hashOf([named, list.id, where]).slice(0, 32)}.json`));
	await holdAlone(cx, [mark.path], `the import of ${importName(file)} into list ${list.id}`);
	const earlier = options.resume ? await mark.read() : null;
	if (earlier === null || earlier.key === key) return { key, sha256, rows, mark, earlier };
	const isSame = earlier.sha256 === sha256;
	const what = isSame
		? `the stopped import of ${importName(file)} had other columns or options`
		: `${importName(file)} has changed since the import stopped`;
	const hint = 'leave out --resume: rows that are already imported count as unchanged';
	throw new CliError(isSame ? 'other_options' : 'file_changed', exits.usage, what, { hint });
}

type Begun = Pick<Identity, 'key' | 'earlier'> & { imports: Imports };

/** Appends only to the rejects file of the stopped run, because a file must not mix the rejects of two imports. */
async function openRejectsOf(
	cx: CommandContext,
	job: PutJob,
	{ imports, key, earlier }: Begun,
): Promise<RejectsFile> {
	const { spec, options, table, mapping, rejectsPath } = job;
	const { openRejects } = await import('../../../../tables/write-rejects.js');
	const layout = layoutOfRejects(table, mapping, options.rejects);
	if (!options.resume) return openRejects({ path: rejectsPath, ...layout });
	const { position } = await imports.open(key, spec, { signal: cx.signal });
	const path = options.rejects ?? (earlier === null ? rejectsPath : besides(rejectsPath, earlier.rejects));
	const isKnown = earlier?.rejects === resolve(path);
	// If no earlier run is known, the default rejects file may belong to another import.
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

/** Returns `found`. If both paths have the same folder, spells the folder as the user did in `path`. */
function besides(path: string, found: string): string {
	return dirname(found) === resolve(dirname(path)) ? join(dirname(path), basename(found)) : found;
}

interface Mark {
	key: string;
	sha256: string;
	rejects: string;
}

/**
 * Each run stores a mark: the hash of the file, the key of the session and the path of the rejects file. Without a
 * mark, a changed file would look like a new import, because the key depends on the hash.
 */
class MarkFile {
	readonly path: string;

	constructor(path: string) {
		this.path = path;
	}

	async read(): Promise<Mark | null> {
		const json = readJson(await readFile(this.path).catch(() => Buffer.from('null')));
		const { key, sha256, rejects } = json.kind === 'valid' && isRecord(json.value) ? json.value : {};
		if (typeof key !== 'string' || typeof sha256 !== 'string' || typeof rejects !== 'string') return null;
		return { key, sha256, rejects };
	}

	async write(mark: Mark): Promise<void> {
		try {
			makeFolders(dirname(this.path));
			// Write and rename, so that a kill leaves the old mark or the new one, never a part.
			await writeFile(`${this.path}.part`, `${JSON.stringify(mark)}\n`, { mode: 0o600 });
			await rename(`${this.path}.part`, this.path);
		} catch {
			// If the home folder is not writable, there is no mark, and a later run cannot check the file.
		}
	}

	/** Call it when the import is complete, so that the next run of the same import starts over. */
	remove(): Promise<void> {
		return rm(this.path, { force: true }).catch(() => undefined);
	}
}

export interface ImportIdentity {
	spec: ImportSpec;
	/** The file's SHA-256, or the name given by `--job`, because stdin cannot be hashed in advance. */
	source: { sha256: string } | { job: string };
	mapping: Mapping;
	encoding: string;
	delimiter: string;
}

/** Returns 64 hex digits. The key does not depend on the batch size, so that a resumed run may change the size. */
export function importKey({ spec, source, mapping, encoding, delimiter }: ImportIdentity): string {
	const columns = mapping.columns.map(({ index, target, joined = [] }) => [index, target, ...joined]);
	const from = 'sha256' in source ? ['sha256', source.sha256] : ['job', source.job];
	const words = mapping.states?.[0]?.words ?? {};
	const parts = [spec.list_id, spec.on_conflict, spec.reactivate, from, columns, encoding, delimiter];
	if (Object.keys(words).length > 0) parts.push(Object.entries(words).map((pair) => pair.join('=')));
	return hashOf(parts);
}

function hashOf(parts: readonly unknown[]): string {
	return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

const roundsPerBatch = 8;

async function placeOf(cx: CommandContext, { options, limits: { rate }, isOnce }: TableJob) {
	const api = await cx.api();
	const { imports } = (await api.capabilities()).ext;
	const { batchSize, concurrency } = options;
	if (imports !== undefined) {
		if (rate === null) return { imports, foreign: null, batchRows: batchSize };
		const paced = pacedImports(imports, rate, cx.signal);
		return { imports: paced, foreign: null, batchRows: batchRowsAt(rate, batchSize) };
	}
	const { SingleImports } = await import('../../../../jobs/single-imports.js');
	const { keepImports } = await import('../../../connect/imports.js');
	const { target } = await cx.connection();
	const deployment = target.kind === 'remote' ? target.baseUrl : target.url;
	const kept = { folder: cx.paths.jobs, deployment, clock: cx.clock };
	const isRepeatable = !isOnce || options.job !== undefined;
	const foreign = new SingleImports(api, {
		concurrency,
		...(rate !== null && { rowsPerSecond: rate }),
		keep: isRepeatable ? keepImports({ ...kept, earlier: options.resume ? 'resume' : 'forget' }) : null,
		signal: cx.signal,
	});
	return { imports: foreign, foreign, batchRows: foreignBatchRows(options) };
}

/** Other services need a request per row. Batches are small, because Ctrl-C and progress wait for a whole batch. */
function foreignBatchRows({ batchSize, concurrency }: ImportOptions): number {
	return Math.min(batchSize, concurrency * roundsPerBatch);
}

/** Limits a batch to the rows of one second, because nothing delays the rows within a batch. */
export function batchRowsAt(rowsPerSecond: number, batchRows: number): number {
	return Math.max(1, Math.min(batchRows, Math.floor(rowsPerSecond)));
}

/** Delays each batch to keep the rate. Rows that are put again after an interruption count again. */
export function pacedImports(
	imports: Imports,
	rowsPerSecond: number,
	signal: AbortSignal,
	{ elapsedMs, sleep: wait }: Pace = { elapsedMs: () => performance.now(), sleep },
): Imports {
	let due: number | null = null;
	return {
		open: (key, spec, call) => imports.open(key, spec, call),
		finish: (id, call) => imports.finish(id, call),
		put: async (id, batch, call) => {
			const now = elapsedMs();
			if (due !== null && due > now) await wait(due - now, signal);
			const rows = batch.cells.length / batch.columns.length;
			// After a slow answer, count from now, so that no burst follows.
			due = Math.max(due ?? now, elapsedMs()) + (rows * 1_000) / rowsPerSecond;
			return imports.put(id, batch, call);
		},
	};
}

interface Pace {
	elapsedMs: () => number;
	sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Lets a thread read and check a large file, unless it is a stream or the service needs a request per row. */
async function rowsOf(
	cx: CommandContext,
	{ file, isOnce, table, mapping, spec, options: { delimiter }, limits: { maxErrors } }: TableJob,
	foreign: SingleImports | null,
): Promise<Pick<ImportJob, 'rows' | 'readBundles' | 'mapping' | 'spec' | 'maxErrors'>> {
	const job = { rows: table.rows, mapping, spec, ...(maxErrors !== null && { maxErrors }) };
	if (isOnce || foreign !== null) return job;
	const { bundlesOf } = await import('../../../connect/imports.js');
	const readBundles = await bundlesOf(file, { delimiter, encoding: table.encoding }, cx.signal);
	return readBundles === null ? job : { ...job, readBundles };
}

async function sayReasons(cx: CommandContext, { totals }: ImportResult, foreign: SingleImports | null) {
	const warn = async (rows: number, what: string) => {
		if (rows > 0) await cx.warn(`${counted(rows, 'row has', 'rows have')} a disable_reason${what}`);
	};
	await warn(
		foreign?.reasonsLeftOut ?? 0,
		', which this service cannot store: the reason was left out, and the rows are inactive unless is_active says otherwise',
	);
	await warn(
		totals.other_reasons ?? 0,
		' other than UNSUBSCRIBED, HARDBOUNCED or COMPLAINED: the subscribers keep the reason and are inactive in this list; their addresses are not suppressed',
	);
}

/** The limit covers all runs of an import, so a resumed run with the same limit would stop at once. */
function tooManyErrors({ totals, isComplete }: ImportResult, maxErrors = ''): CliError {
	const were = totals.rejected === 1 ? 'was' : 'were';
	const share = `${numberText(totals.rejected)} of ${counted(totals.read, 'row')} ${were} rejected`;
	const hint = 'go on with --resume and a higher --max-errors, which counts the rejected rows of all runs';
	const message = `${share}, more than --max-errors ${maxErrors} allows`;
	return new CliError('too_many_errors', exits.partly, message, isComplete ? {} : { hint });
}

/** The most addresses that a dry run looks up in a service. */
const maxQuestions = 20_000;

const maxCells = 8;
const maxCellWidth = 40;

/**
 * A local database rolls back each transaction. For a service, reads only the existing subscribers, and simulates the
 * changes here.
 */
export async function dryRun(cx: CommandContext, job: TableJob): Promise<undefined> {
	const { list, table, mapping, spec, options } = job;
	const file = importName(job.file);
	const { api, local } = await cx.connection();
	const { ext, service } = await api.capabilities();
	const read = readOnly(api, maxQuestions);
	const { SingleImports } = await import('../../../../jobs/single-imports.js');
	const { concurrency, batchSize } = options;
	const foreign =
		local === null ? new SingleImports(read, { concurrency, keep: null, signal: cx.signal }) : null;
	const imports = foreign ?? ext.imports;
	if (imports === undefined) throw new Error('the engine does not support imports');
	if (foreign === null) await createFields(cx, mapping);
	const first = (await table.peek()).rows.find(({ kind }) => kind === 'row');
	const { plan, ...result } = await planImport(cx, {
		...(await rowsOf(cx, job, foreign)),
		imports,
		batchRows: foreign === null ? batchSize : foreignBatchRows(options),
		key: `dry run ${cx.clock.now()}`,
	});
	const { other_reasons = 0, ...totals } = result.totals;
	const unchecked = read.unasked();
	const counts = { ...totals, created: totals.created - unchecked };
	const { format, encoding, delimiter, header } = table;
	const all = `${tallySentence(counts)}${unchecked > 0 ? ` + unchecked ${numberText(unchecked)}` : ''}`;
	const cells =
		first &&
		mapping.columns.map((column) => [mappedName(header, column), cellOf(first.cells, column)] as const);
	await cx.wouldDo(`import ${file} into list ${list.id} "${list.name}": ${all}`, {
		...{ import: file, with: spec, list_id: list.id, ...counts, unchecked, other_reasons },
		rejects: plan.first,
		first_row: cells ? Object.fromEntries(cells) : null,
		...{ format, encoding, delimiter },
		columns: Object.fromEntries(mapping.columns.map((column) => [mappedName(header, column), column.target])),
		left_out: mapping.ignored,
		create_fields: mapping.newFields,
		reject_kinds: plan.kinds(),
	});
	// Show the first row, in which users notice a wrong code page.
	const filled = (cells ?? []).filter(([, cell]) => cell !== '').slice(0, maxCells);
	const texts = filled.map((pair) => pair.map((text) => shorten(text.trim(), maxCellWidth)).join(' = '));
	if (isTable(cx.out.format) && texts.length > 0) await cx.note(`first row: ${texts.join(', ')}`);
	await plan.say(cx);
	await sayReasons(cx, result, service === 'mailctl' ? null : foreign);
	if (result.outcome === 'too_many_errors')
		await cx.warn(`the import will exit with 9: ${tooManyErrors(result, options.maxErrors).message}`);
	return undefined;
}

/** Reads the service but simulates writes. `unasked`: rows counted as created without a look-up. */
export function readOnly(api: Api, limit: number): WritableApi & { unasked(): number } {
	let asked = 0;
	let unasked = 0;
	const strangers = new Set<string>();
	return {
		unasked: () => unasked,
		subscribers: (listId) => {
			const { page, get } = api.subscribers(listId);
			return {
				get,
				page: async (request, call) => {
					const address = request.email__exact ?? request.email__icontains;
					if (address === undefined) return page(request, call);
					asked += 1;
					if (asked <= limit) return page(request, call);
					strangers.add(emailKey(address));
					return { count: 0, next: null, previous: null, results: [] };
				},
				create: async (input) => {
					const isUnasked = strangers.delete(emailKey(input.email));
					assertValid(input, 'create');
					if (isUnasked) unasked += 1;
				},
				patch: async (_, input) => assertValid(input, 'patch'),
			};
		},
	};
}

function assertValid(body: object, mode: 'create' | 'patch'): void {
	const parsed = subscriberFields.parse(body, mode);
	if (parsed.kind === 'invalid') throw invalid(parsed.errors);
}
