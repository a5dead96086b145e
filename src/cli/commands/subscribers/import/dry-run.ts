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
import type { WritableApi } from '../../../../jobs/single-imports.js';
import { cellOf, mappedName } from '../../../../tables/column-names.js';
import type { TableRow } from '../../../../tables/finding.js';
import type { CommandContext } from '../../../frame/context.js';
import { numberText } from '../../../render/units.js';
import { importName, tallySentence } from '../../../verbs/importing.js';
import { PlannedRejects, withAddressFaults } from '../../../verbs/rejects.js';
import { createFields, emailAt } from './columns.js';
import {
	foreignBatchRows,
	readElsewhere,
	sayOtherReasons,
	sayReasonsLeftOut,
	type TableJob,
	tooManyErrors,
} from './put.js';

/** Prints the answer of the import. Throws errors of reading, asking and putting. */
export async function dryRun(cx: CommandContext, job: TableJob): Promise<undefined> {
	const { list, table, mapping, spec, limits, options } = job;
	const file = importName(job.file);
	const { local } = await cx.connection();
	const place = local === null ? await placeElsewhere(cx, job) : await placeHere(cx, job);
	const { readBundles, ...read } = firstRow(job, (await readElsewhere(cx, job)).readBundles);
	const { runImport } = await import('../../../../jobs/imports.js');
	const rejects = new PlannedRejects();
	const progress = cx.progress('comparing', null);
	const result = await runImport({
		...{
			imports: place.imports,
			batchRows: place.batchRows,
			rows: read.rows,
			mapping,
			spec,
			signal: cx.signal,
		},
		...(readBundles !== undefined && { readBundles }),
		// A key of its own: it resumes no other import.
		key: `dry run ${cx.clock.now()}`,
		...(limits.maxErrors !== null && { maxErrors: limits.maxErrors }),
		onProgress: ({ read }) => progress.update(read),
		onReject: async (refused) => {
			for (const row of withAddressFaults(refused, emailAt(mapping))) rejects.add(row);
		},
	}).finally(() => progress.stop());
	// Half a plan would pass for a whole one.
	cx.signal.throwIfAborted();
	const { other_reasons = 0, ...totals } = result.totals;
	const unchecked = place.unchecked();
	const counts = { ...totals, created: totals.created - unchecked };
	const { format, encoding, delimiter, header } = table;
	const all = `${tallySentence(counts)}${unchecked > 0 ? ` + unchecked ${numberText(unchecked)}` : ''}`;
	const first = read.found();
	const cells =
		first && mapping.columns.map((column) => [mappedName(header, column), cellOf(first, column)] as const);
	await cx.wouldDo(`import ${file} into list ${list.id} "${list.name}": ${all}`, {
		...{ import: file, with: spec, list_id: list.id, ...counts, unchecked, other_reasons },
		rejects: rejects.first,
		first_row: cells && Object.fromEntries(cells),
		...{ format, encoding, delimiter },
		columns: Object.fromEntries(mapping.columns.map((column) => [mappedName(header, column), column.target])),
		left_out: mapping.ignored,
		create_fields: mapping.newFields,
		reject_kinds: rejects.kinds(),
	});
	await sayFirstRow(cx, cells ?? []);
	await rejects.say(cx);
	await sayOtherReasons(cx, other_reasons);
	await sayReasonsLeftOut(cx, place.reasonsLeftOut());
	if (result.outcome === 'too_many_errors')
		await cx.warn(`the import ends with 9, ${tooManyErrors(result, options.maxErrors).message}`);
	return undefined;
}

interface Place {
	imports: Imports;
	batchRows: number;
	/** Rows counted as created, of which it is unknown whether they are there. */
	unchecked(): number;
	/** Rows with a reason that the deployment cannot keep. */
	reasonsLeftOut(): number;
}

async function placeHere(cx: CommandContext, { mapping, options }: TableJob): Promise<Place> {
	const { ext } = await (await cx.api()).capabilities();
	if (ext.imports === undefined) throw new Error('the engine has imports');
	await createFields(cx, mapping);
	const { imports } = ext;
	return { imports, batchRows: options.batchSize, unchecked: () => 0, reasonsLeftOut: () => 0 };
}

/** Addresses that are asked for at most. */
const maxQuestions = 20_000;

async function placeElsewhere(cx: CommandContext, { options }: TableJob): Promise<Place> {
	const { createSingleImports } = await import('../../../../jobs/single-imports.js');
	const api = await cx.api();
	const { service } = await api.capabilities();
	const read = readOnly(api, maxQuestions);
	const { concurrency } = options;
	const imports = createSingleImports(read, { concurrency, keep: null, signal: cx.signal });
	return {
		imports,
		batchRows: foreignBatchRows(options),
		unchecked: read.unasked,
		reasonsLeftOut: () => (service === 'mailctl' ? 0 : imports.reasonsLeftOut),
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

/** The rows, and the first of them that can be put: as it was decoded, so that a wrong code page shows. */
function firstRow({ table }: TableJob, readBundles: ReadBundles | undefined) {
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
	return { rows: rows(), readBundles: readBundles && bundles, found: () => first };
}

const maxCells = 8;
const maxCellLength = 40;

async function sayFirstRow(
	cx: CommandContext,
	row: readonly (readonly [column: string, cell: string])[],
): Promise<void> {
	if (cx.out.format !== 'table' && cx.out.format !== 'wide') return;
	const cells = row.filter(([, cell]) => cell !== '');
	if (cells.length === 0) return;
	const cut = (text: string) => (text.length > maxCellLength ? `${text.slice(0, maxCellLength)}…` : text);
	const texts = cells.slice(0, maxCells).map(([column, cell]) => `${cut(column.trim())} = ${cut(cell)}`);
	await cx.note(`first row: ${texts.join(', ')}${cells.length > maxCells ? ', …' : ''}`);
}
