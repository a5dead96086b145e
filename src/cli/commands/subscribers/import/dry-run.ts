/**
 * `subscribers import --dry-run`: the import itself. On a database of this machine each transaction is rolled back. On
 * a service it reads the existing subscribers, and checks and answers the changes here.
 */
import { emailKey } from '../../../../api/address.js';
import type { Api } from '../../../../api/api.js';
import type { Imports } from '../../../../api/capabilities.js';
import { invalid } from '../../../../api/errors.js';
import { subscriberFields } from '../../../../api/subscribers.js';
import { originalsOf, type ReadBundles } from '../../../../jobs/import-bundles.js';
import type { ImportJob, ImportResult, MaxErrors } from '../../../../jobs/imports.js';
import type { WritableApi } from '../../../../jobs/single-imports.js';
import type { TableRow } from '../../../../tables/finding.js';
import { cellOf, mappedName } from '../../../../tables/joined-columns.js';
import type { Mapping } from '../../../../tables/map-columns.js';
import type { Table } from '../../../../tables/read-table.js';
import type { CommandContext } from '../../../frame/context.js';
import { counted, numberText } from '../../../render/plurals.js';
import { tallySentence } from '../../../verbs/importing.js';
import { PlannedRejects, withAddressFaults } from '../../../verbs/rejects.js';
import { createFields, emailAt } from './columns.js';
import { sayNoRows, sayOtherReasons, tooManyErrors } from './end.js';
import { foreignBatchRows, sayReasonsLeftOut } from './place.js';
import type { IdentifiedJob } from './resume.js';

export interface DryRun extends IdentifiedJob {
	maxErrors: MaxErrors | null;
	/** The rows as another thread reads them, for a database of this machine. */
	readBundles: ReadBundles | undefined;
}

/** Prints the answer of the import. Throws errors of reading, asking and putting. */
export async function dryRun(cx: CommandContext, job: DryRun): Promise<void> {
	const { file, list, table, mapping, spec } = job;
	const { local } = await cx.connection();
	const first = firstRow(job);
	const place = local === null ? await placeElsewhere(cx, job) : await placeHere(cx, job);
	const { result, rejects } = await run(cx, { ...job, ...first, ...place });
	const { other_reasons = 0, ...totals } = result.totals;
	const unchecked = place.unchecked();
	const counts = { ...totals, created: totals.created - unchecked };
	const { format, encoding, delimiter, header } = table;
	const all = `${tallySentence(counts)}${unchecked > 0 ? ` + unchecked ${numberText(unchecked)}` : ''}`;
	await cx.wouldDo(`import ${file} into list ${list.id} "${list.name}": ${all}`, {
		import: file,
		with: spec,
		list_id: list.id,
		...counts,
		unchecked,
		other_reasons,
		rejects: rejects.first,
		first_row: first.found(),
		format,
		encoding,
		delimiter,
		columns: Object.fromEntries(mapping.columns.map((column) => [mappedName(header, column), column.target])),
		left_out: mapping.ignored,
		create_fields: mapping.newFields,
		reject_kinds: rejects.kinds(),
	});
	await sayNoRows(cx, file, totals);
	await sayFirstRow(cx, first.found());
	await rejects.say(cx);
	await sayOtherReasons(cx, other_reasons);
	await place.explain(counts.created);
	if (result.outcome === 'too_many_errors')
		await cx.warn(`the import ends with 9, ${tooManyErrors(result, job.options.maxErrors).message}`);
}

async function run(
	cx: CommandContext,
	{
		mapping,
		spec,
		maxErrors,
		...job
	}: DryRun & Pick<ImportJob, 'rows'> & Pick<Place, 'imports' | 'batchRows'>,
): Promise<{ result: ImportResult; rejects: PlannedRejects }> {
	const { runImport } = await import('../../../../jobs/imports.js');
	const { imports, rows, batchRows, readBundles } = job;
	const rejects = new PlannedRejects();
	const progress = cx.progress('comparing', null);
	const result = await runImport({
		imports,
		rows,
		batchRows,
		...(readBundles !== undefined && { readBundles }),
		mapping,
		spec,
		// A key of its own: it resumes no other import.
		key: `dry run ${cx.clock.now()}`,
		...(maxErrors !== null && { maxErrors }),
		onProgress: ({ read }) => progress.update(read),
		onReject: async (refused) => {
			for (const row of withAddressFaults(refused, emailAt(mapping))) rejects.add(row);
		},
		signal: cx.signal,
	}).finally(() => progress.stop());
	// Half a plan would pass for a whole one.
	cx.signal.throwIfAborted();
	return { result, rejects };
}

interface Place {
	imports: Imports;
	batchRows: number;
	/** Rows counted as created, of which it is unknown whether they are there. */
	unchecked(): number;
	/** Messages beside the counts. */
	explain(created: number): Promise<void>;
}

async function placeHere(cx: CommandContext, { mapping, options }: DryRun): Promise<Place> {
	const { ext } = await (await cx.api()).capabilities();
	if (ext.imports === undefined) throw new Error('the engine has imports');
	await createFields(cx, mapping);
	return {
		imports: ext.imports,
		batchRows: options.batchSize,
		unchecked: () => 0,
		explain: async () => undefined,
	};
}

/** Addresses that are asked for at most. */
const maxQuestions = 20_000;

async function placeElsewhere(cx: CommandContext, { options }: DryRun): Promise<Place> {
	const { createSingleImports } = await import('../../../../jobs/single-imports.js');
	const api = await cx.api();
	const { service } = await api.capabilities();
	const { concurrency } = options;
	const read = readOnly(api, maxQuestions);
	const imports = createSingleImports(read, { concurrency, keep: null, signal: cx.signal });
	return {
		imports,
		batchRows: foreignBatchRows(options),
		unchecked: read.unasked,
		explain: async (created) => {
			const left = imports.reasonsLeftOut;
			if (service !== 'mailctl') await sayReasonsLeftOut(cx, left);
			else if (left > 0)
				await cx.warn(
					`${counted(left, 'row has', 'rows have')} a disable_reason, of which only the import knows what it changes: here the rows count as inactive ones`,
				);
			// A server tells nobody whether an address was erased: only the import of it is refused.
			if (service === 'mailctl' && created > 0)
				await cx.note('people who were erased there count as created here, and are refused by the import');
			if (read.unasked() === 0) return;
			await cx.note(
				`the list is too large to be read for a plan: ${numberText(maxQuestions)} addresses were asked for, the other ${numberText(read.unasked())} good rows are new, updated or unchanged`,
			);
		},
	};
}

/** The service without its writes. `unasked`: rows counted as created without a search. */
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

/** The rows, and the first of them that can be put, column by column: as it was decoded, so that a wrong code page shows. */
function firstRow({ table, mapping, readBundles }: DryRun) {
	let first: readonly string[] | null = null;
	async function* rows(): AsyncGenerator<TableRow> {
		for await (const row of table.rows) {
			if (row.kind === 'row') first ??= row.cells;
			yield row;
		}
	}
	async function* bundles(request: Parameters<ReadBundles>[0]): ReturnType<ReadBundles> {
		if (readBundles === undefined) return;
		for await (const bundle of readBundles(request)) {
			if (bundle.rows.put.count > 0) first ??= originalsOf(bundle.rows)(0).original;
			yield bundle;
		}
	}
	return {
		rows: rows(),
		readBundles: readBundles && bundles,
		found: () => first && shownCells(table, mapping, first),
	};
}

function shownCells({ header }: Table, mapping: Mapping, row: readonly string[]): Record<string, string> {
	return Object.fromEntries(
		mapping.columns.map((column) => [mappedName(header, column), cellOf(row, column)]),
	);
}

const maxCells = 8;
const maxCellLength = 40;

async function sayFirstRow(cx: CommandContext, row: Record<string, string> | null): Promise<void> {
	if (cx.out.format !== 'table' && cx.out.format !== 'wide') return;
	const cells = Object.entries(row ?? {}).filter(([, cell]) => cell !== '');
	if (cells.length === 0) return;
	const cut = (text: string) => (text.length > maxCellLength ? `${text.slice(0, maxCellLength)}…` : text);
	const texts = cells.slice(0, maxCells).map(([column, cell]) => `${cut(column.trim())} = ${cut(cell)}`);
	await cx.note(`first row: ${texts.join(', ')}${cells.length > maxCells ? ', …' : ''}`);
}
