import { resolve } from 'node:path';
import { emailKey } from '../../../../api/address.js';
import type { Api } from '../../../../api/api.js';
import { sleep } from '../../../../api/backoff.js';
import type { ImportSpec, Imports } from '../../../../api/capabilities.js';
import { invalid } from '../../../../api/errors.js';
import type { List } from '../../../../api/records.js';
import { subscriberFields } from '../../../../api/subscribers.js';
import type { ImportJob, ImportResult, MaxErrors } from '../../../../jobs/imports.js';
import type { SingleImports, WritableApi } from '../../../../jobs/single-imports.js';
import { cellOf, mappedName } from '../../../../tables/column-names.js';
import type { Mapping } from '../../../../tables/map-columns.js';
import type { Table } from '../../../../tables/read-table.js';
import type { CommandContext } from '../../../frame/context.js';
import { CliError } from '../../../frame/errors.js';
import { type ExitCode, exits } from '../../../frame/exit.js';
import { isTable } from '../../../frame/globals.js';
import { counted, numberText } from '../../../render/units.js';
import { shorten } from '../../../render/width.js';
import {
	answerImport,
	holdRejects,
	importName,
	planImport,
	runShown,
	tallySentence,
} from '../../../verbs/importing.js';
import type { ImportOptions } from '../import.js';
import { createFields } from './columns.js';
import { begin, identify } from './resume.js';

export interface TableJob {
	file: string;
	isOnce: boolean;
	list: List;
	table: Table;
	mapping: Mapping;
	spec: ImportSpec;
	options: ImportOptions;
	limits: { maxErrors: MaxErrors | null; rate: number | null };
}

export async function putTable(
	cx: CommandContext,
	job: TableJob & { rejectsPath: string },
): Promise<ExitCode> {
	const { options } = job;
	const identity = await identify(cx, job);
	const { key, sha256, mark } = identity;
	const { imports, foreign, batchRows } = await placeOf(cx, job);
	try {
		await holdRejects(cx, job.rejectsPath);
		const rejects = await begin(cx, { ...job, ...identity, imports });
		try {
			await mark?.write({ key, sha256, rejects: resolve(rejects.path) });
			await createFields(cx, job.mapping);
			if (foreign === null && !options.resume) await forget(imports, key, job.spec);
			const goOn =
				job.isOnce && options.job === undefined
					? 'what was acknowledged stays; import all of it from a file or with --job NAME, which --resume can go on with'
					: 'what was acknowledged stays; run the same command with --resume to go on';
			const how = { ...(await rowsOf(cx, job, foreign)), imports, batchRows, key };
			const result = await runShown(cx, how, {
				...{ write: rejects.write.bind(rejects), rows: identity.rows, goOn },
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

/** Ends the session of an earlier run, because an import without `--resume` starts over. */
async function forget(imports: Imports, key: string, spec: ImportSpec): Promise<void> {
	const session = await imports.open(key, spec);
	if (session.position > 0) await imports.finish(session.id);
}

/** A batch has this many rows per concurrent request. */
const roundsPerBatch = 8;

async function placeOf(
	cx: CommandContext,
	{ options, limits: { rate }, isOnce }: TableJob,
): Promise<{ imports: Imports; foreign: SingleImports | null; batchRows: number }> {
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

/** Progress counts whole batches, and Ctrl-C waits for one, so a batch is small if each row is a request. */
function foreignBatchRows({ batchSize, concurrency }: ImportOptions): number {
	return Math.min(batchSize, concurrency * roundsPerBatch);
}

/** Limits a batch to the rows of one second, because its rows are put at full speed. */
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
			// No burst follows a slow answer.
			due = Math.max(due ?? now, elapsedMs()) + (rows * 1_000) / rowsPerSecond;
			return imports.put(id, batch, call);
		},
	};
}

interface Pace {
	elapsedMs: () => number;
	sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Returns rows and rules of the import. A thread reads and checks a large file, unless each row is a request. */
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

/** Other services cannot store a disable_reason. */
async function sayReasons(
	cx: CommandContext,
	{ totals: { other_reasons = 0 } }: ImportResult,
	foreign: SingleImports | null,
): Promise<void> {
	const leftOut = foreign?.reasonsLeftOut ?? 0;
	if (leftOut > 0)
		await cx.warn(
			`${counted(leftOut, 'row has', 'rows have')} a disable_reason, which this service has no way to set: the reason was left out, the rows are inactive unless is_active says otherwise`,
		);
	if (other_reasons > 0)
		await cx.warn(
			`${counted(other_reasons, 'row has', 'rows have')} a disable_reason other than UNSUBSCRIBED, HARDBOUNCED or COMPLAINED: it was kept, and the subscribers are inactive in this list; the addresses are not suppressed`,
		);
}

/** The limit covers all runs of an import, so a resumed run with the same limit would stop at once. */
function tooManyErrors({ totals, isComplete }: ImportResult, maxErrors = ''): CliError {
	const were = totals.rejected === 1 ? 'was' : 'were';
	const share = `${numberText(totals.rejected)} of ${counted(totals.read, 'row')} ${were} rejected`;
	const hint = 'go on with --resume and a higher --max-errors, which counts earlier runs too';
	const message = `${share}, more than --max-errors ${maxErrors} allows`;
	return new CliError('too_many_errors', exits.partly, message, isComplete ? {} : { hint });
}

/** Limits the addresses that a dry run looks up in a service. */
const maxQuestions = 20_000;

const maxCells = 8;
const maxCellWidth = 40;

/**
 * Runs the import itself. A local database rolls back each transaction. With a service, existing subscribers are read,
 * and changes are simulated here.
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
	if (imports === undefined) throw new Error('the engine has imports');
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
		await cx.warn(`the import ends with 9, ${tooManyErrors(result, options.maxErrors).message}`);
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
