/** The dry run of `send --csv`: the table read to its end, refused as the job would be, and the first message. */
import type { Recipient } from '../../../api/capabilities.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { type ExitCode, exits } from '../../exit.js';
import { isMachine } from '../../globals.js';
import { countOf } from './counts.js';
import { assertExpected } from './expected.js';
import { cannotBeSent, listed, shownFindings } from './findings.js';
import type { SendOptions } from './options.js';
import { assertAcceptable, compose, showDryRun, showPreview, wantsPreview } from './preview.js';
import { isOpaque, type Prepared, withContext } from './request.js';
import { type OpenTable, sourceName } from './source.js';
import { surveyTable, type TableCounts, type TableSurvey } from './survey-table.js';

/** A table, and what its rows are to be sent. */
export interface TableSending {
	prepared: Prepared;
	table: OpenTable;
	file: string;
	options: SendOptions;
}

/** Ends as the job would: `UsageError` for findings, or 9 with `--skip-invalid`. */
export async function dryRunTable(cx: CommandContext, sending: TableSending): Promise<ExitCode> {
	const { prepared, table, options } = sending;
	const found = await surveyTable(cx, table, {
		prepared,
		strict: options.strictVars ?? true,
		most: isMachine(cx.out.format) ? Number.POSITIVE_INFINITY : shownFindings,
	});
	const { first, counts } = found;
	if (first !== null) await assertAcceptable(cx, requestTo(prepared, first));
	await assertSendable(cx, found, sending);
	await show(cx, sending, { first, counts });
	return counts.rejected > 0 ? exits.partly : exits.done;
}

async function assertSendable(
	cx: CommandContext,
	{ counts, lines, lacksValues }: TableSurvey,
	{ file, options }: TableSending,
): Promise<void> {
	const { rows, recipients, rejected } = counts;
	if (rows === 0 && options.expectCount !== 0)
		throw new UsageError(`${sourceName(file)} has no rows; nothing was sent`);
	const findings = { rejected, lines, lacksValues };
	if (rejected > 0 && !options.skipInvalid) throw cannotBeSent(findings, 'mend them');
	for (const line of listed(findings)) await cx.warn(`left out: ${line}`);
	assertExpected({ found: recipients, counted: sourceName(file), options });
}

/** What would be done, with the first message where there is one and it can be known. */
async function show(
	cx: CommandContext,
	{ prepared, file, options }: TableSending,
	{ first, counts }: { first: Recipient | null; counts: TableCounts },
): Promise<void> {
	const leftOut = counts.rejected === 0 ? '' : `, ${counts.rejected.toLocaleString('en-US')} left out`;
	const what = (subject: string) =>
		`send ${subject} to the ${countOf(counts.recipients, 'recipient')} of ${sourceName(file)}${leftOut}`;
	const plan = { ...counts, send: prepared.request };
	if (isOpaque(prepared) && !wantsPreview(options))
		return cx.wouldDo(what(`template ${prepared.request.template_unique_id}`), plan);
	if (first === null) return cx.wouldDo(what('nothing'), plan);
	const addressee = { to: first.to, subscriber: null, email_reason: null };
	const composed = await compose(cx, withContext(prepared, first), addressee);
	if (wantsPreview(options)) return showPreview(cx, composed, options);
	return showDryRun(cx, composed, what(`"${composed.subject}"`), plan);
}

function requestTo(prepared: Prepared, first: Recipient) {
	return { ...withContext(prepared, first).request, to: [first.to] };
}
