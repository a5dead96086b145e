/**
 * `subscribers import --dry-run`: the import itself. On a database of this machine each transaction is rolled back. On
 * a service it reads the existing subscribers, and checks and answers the changes here.
 */
import { emailKey } from '../../../../api/address.js';
import type { Api } from '../../../../api/api.js';
import { invalid } from '../../../../api/errors.js';
import { subscriberFields } from '../../../../api/subscribers.js';
import type { WritableApi } from '../../../../jobs/single-imports.js';
import { cellOf, mappedName } from '../../../../tables/column-names.js';
import type { CommandContext } from '../../../frame/context.js';
import { isTable } from '../../../frame/globals.js';
import { numberText } from '../../../render/units.js';
import { shorten } from '../../../render/width.js';
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

/** Addresses that a service is asked for at most. */
const maxQuestions = 20_000;

export async function dryRun(cx: CommandContext, job: TableJob): Promise<undefined> {
	const { list, table, mapping, spec, limits, options } = job;
	const file = importName(job.file);
	const { api, local } = await cx.connection();
	const { ext, service } = await api.capabilities();
	const read = readOnly(api, maxQuestions);
	const { createSingleImports } = await import('../../../../jobs/single-imports.js');
	const { concurrency, batchSize } = options;
	const foreign =
		local === null ? createSingleImports(read, { concurrency, keep: null, signal: cx.signal }) : null;
	const imports = foreign ?? ext.imports;
	if (imports === undefined) throw new Error('the engine has imports');
	if (foreign === null) await createFields(cx, mapping);
	const first = (await table.peek()).rows.find(({ kind }) => kind === 'row');
	const { runImport } = await import('../../../../jobs/imports.js');
	const rejects = new PlannedRejects();
	const progress = cx.progress('comparing', null);
	const result = await runImport({
		...{ imports, mapping, spec, rows: table.rows, signal: cx.signal },
		batchRows: foreign === null ? batchSize : foreignBatchRows(options),
		...(await readElsewhere(cx, job)),
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
	const unchecked = read.unasked();
	const counts = { ...totals, created: totals.created - unchecked };
	const { format, encoding, delimiter, header } = table;
	const all = `${tallySentence(counts)}${unchecked > 0 ? ` + unchecked ${numberText(unchecked)}` : ''}`;
	const cells =
		first &&
		mapping.columns.map((column) => [mappedName(header, column), cellOf(first.cells, column)] as const);
	await cx.wouldDo(`import ${file} into list ${list.id} "${list.name}": ${all}`, {
		...{ import: file, with: spec, list_id: list.id, ...counts, unchecked, other_reasons },
		rejects: rejects.first,
		first_row: cells ? Object.fromEntries(cells) : null,
		...{ format, encoding, delimiter },
		columns: Object.fromEntries(mapping.columns.map((column) => [mappedName(header, column), column.target])),
		left_out: mapping.ignored,
		create_fields: mapping.newFields,
		reject_kinds: rejects.kinds(),
	});
	// A wrong code page is seen there.
	const filled = (cells ?? []).filter(([, cell]) => cell !== '').slice(0, maxCells);
	const texts = filled.map((pair) => pair.map((text) => shorten(text.trim(), maxCellWidth)).join(' = '));
	if (isTable(cx.out.format) && texts.length > 0) await cx.note(`first row: ${texts.join(', ')}`);
	await rejects.say(cx);
	await sayOtherReasons(cx, other_reasons);
	if (foreign !== null && service !== 'mailctl') await sayReasonsLeftOut(cx, foreign.reasonsLeftOut);
	if (result.outcome === 'too_many_errors')
		await cx.warn(`the import ends with 9, ${tooManyErrors(result, options.maxErrors).message}`);
	return undefined;
}

const maxCells = 8;
const maxCellWidth = 40;

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
