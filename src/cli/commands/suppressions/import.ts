import { need } from '../../../api/capabilities.js';
import { suppressionReasons } from '../../../api/suppressions.js';
import type { TakeSuppressions } from '../../../jobs/suppression-imports.js';
import type { Table } from '../../../tables/read-table.js';
import { command } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import type { ExitCode } from '../../frame/exit.js';
import { inputName } from '../../frame/sources.js';
import { given } from '../../frame/values.js';
import { answers } from '../../render/columns.js';
import {
	answerImport,
	columnsRefused,
	holdRejects,
	importArg,
	importName,
	layoutOfRejects,
	openImport,
	planImport,
	rejectsPathOf,
	runShown,
	shortNames,
	tableOptions,
	tallySentence,
} from '../../verbs/importing.js';
import { expiresOption, parseExpires } from './filters.js';

const defaultReason = 'MANUAL';

export const suppressionImport = command({
	name: 'import',
	summary: 'suppress the addresses of a CSV, TSV or NDJSON file',
	description:
		'Columns: email (required), reason, list_id, source, date_created, expires_at. The reason may be a word that ' +
		'another service uses, such as bounced or spam. An import never weakens a suppression, and importing the same file again changes nothing. ' +
		'Rejected rows go into FILE.rejects.csv: correct that file and import it.',
	args: [importArg],
	options: {
		reason: {
			kind: 'choice',
			choices: suppressionReasons,
			default: defaultReason,
			summary: 'set the reason of rows without one',
		},
		expires: { ...expiresOption, summary: 'set the expiry of rows without one: 30d, 12h, 2030-01-31' },
		...tableOptions,
	},
	writes: true,
	...answers(['read', 'created', 'updated', 'unchanged', 'duplicate', 'rejected']),
	exits: [9, 74],
	examples: [
		'mailctl suppressions import bounced.csv --reason HARDBOUNCED',
		'mailctl suppressions import suppressions.csv --dry-run',
	],
	run: async (cx, { args, options }): Promise<ExitCode | undefined> => {
		const file = inputName(args.file);
		const suppressions = await need(await cx.api(), 'suppressions');
		const asked = await rejectsPathOf(cx, file, options.rejects);
		const expires_at = options.expires && parseExpires(cx, options.expires);
		const missing = { reason: options.reason, ...given({ expires_at }) };
		const table = await openImport(cx, file, options);
		try {
			const mapping = await mapColumns(cx, table, options);
			const layout = layoutOfRejects(table, mapping, options.rejects);
			const { assertRejects, openRejects } = await import('../../../tables/write-rejects.js');
			const { SuppressionBatches } = await import('../../../jobs/suppression-imports.js');
			const job = (take: TakeSuppressions) => ({
				...{ imports: new SuppressionBatches(take, missing), rows: table.rows, mapping, batchRows },
				...unused,
			});
			if (cx.dryRun || asked === null) {
				if (asked !== null) await assertRejects({ path: asked, ...layout });
				const check: TakeSuppressions = (rows) => suppressions.check(rows, { signal: cx.signal });
				const { totals, plan } = await planImport(cx, job(check));
				const name = importName(file);
				const planned = { import: name, ...totals, rejects: plan.first, reject_kinds: plan.kinds() };
				await cx.wouldDo(`suppress the addresses of ${name}: ${tallySentence(totals)}`, planned);
				await plan.say(cx);
				return undefined;
			}
			await holdRejects(cx, asked);
			const rejects = await openRejects({ path: asked, ...layout });
			try {
				const goOn = 'the rows counted so far are imported; run the same command again for the rest';
				// Pass no signal, so that a stop waits for the batch in flight, and the totals include it.
				const put: TakeSuppressions = (rows) => suppressions.put(rows);
				const write = rejects.write.bind(rejects);
				const result = await runShown(cx, job(put), { write, rows: null, goOn });
				return await answerImport(cx, result, { path: rejects.path, goOn });
			} finally {
				await rejects.close();
			}
		} finally {
			await table.close();
		}
	},
});

type MapOptions = { map: readonly string[]; ignoreUnknown: boolean };

async function mapColumns(cx: CommandContext, { header }: Table, { map, ignoreUnknown }: MapOptions) {
	const { mapSuppressionHeader, suppressionParts } = await import('../../../tables/suppression-columns.js');
	const mapped = mapSuppressionHeader(header, { map, unknown: ignoreUnknown ? 'ignore' : 'refuse' });
	if (mapped.kind === 'refused')
		throw columnsRefused(
			mapped.findings,
			`--map COLUMN=email, or --ignore-unknown; columns: ${suppressionParts.join(', ')}`,
		);
	const { ignored } = mapped.mapping;
	if (ignored.length > 0) await cx.note(`left out: ${shortNames(ignored).join(', ')}`);
	return mapped.mapping;
}

const batchRows = 1_000;
/** Imports of suppressions have no session. */
const unused = { key: '', spec: { list_id: 0, on_conflict: 'update', reactivate: false } } as const;
