/** The dry run of `send --list`: refused as the job would be, and the first message. */
import type { Subscriber } from '../../../api/records.js';
import type { CommandContext } from '../../context.js';
import { type ExitCode, exits } from '../../exit.js';
import { isMachine } from '../../globals.js';
import { assertListAllowed } from './allowed.js';
import { countOf } from './counts.js';
import { assertExpected } from './expected.js';
import { cannotBeSent, listed, shownFindings } from './findings.js';
import { assertAcceptable, showDryRun, showPreview, wantsPreview } from './preview.js';
import { isOpaque } from './request.js';
import { surveyList, variablesOfPeople } from './survey-list.js';
import { composeFor, firstOf, type Trial } from './trial.js';

/** Ends as the job would: `UsageError` for findings, or 9 with `--skip-invalid`. */
export async function dryRunList(cx: CommandContext, trial: Trial): Promise<ExitCode> {
	const { prepared, list, options } = trial;
	// An empty list is fine where nobody is expected.
	const isEmpty = list.active_subscribers_count === 0 && options.expectCount === 0;
	const anybody = isEmpty ? null : await firstOf(cx, list);
	if (anybody !== null) await assertAcceptable(cx, { ...prepared.request, to: [anybody.email] });
	await assertListAllowed(cx, list);
	const { recipients, rejected, first } = await check(cx, trial, anybody);
	assertExpected({ found: recipients, counted: 'the list', options });
	await show(cx, trial, { recipients, rejected, first });
	return rejected > 0 ? exits.partly : exits.done;
}

interface Checked {
	recipients: number;
	/** Left out. */
	rejected: number;
	/** The first of the recipients; null: there is none. */
	first: Subscriber | null;
}

/** The list is read to its end only where somebody could be refused. */
async function check(
	cx: CommandContext,
	{ prepared, list, options }: Trial,
	anybody: Subscriber | null,
): Promise<Checked> {
	const used = variablesOfPeople(prepared);
	if (!(options.strictVars ?? options.bulk) || used.length === 0)
		return { recipients: list.active_subscribers_count, rejected: 0, first: anybody };
	const most = isMachine(cx.out.format) ? Number.POSITIVE_INFINITY : shownFindings;
	const found = await surveyList(cx, list, { used, most });
	if (found.rejected > 0 && !options.skipInvalid) throw cannotBeSent(found, 'mend them');
	for (const line of listed(found)) await cx.warn(`left out: ${line}`);
	return found;
}

/** What would be done, with the first message where there is one and it can be known. */
async function show(
	cx: CommandContext,
	trial: Trial,
	{ recipients, rejected, first }: Checked,
): Promise<void> {
	const { prepared, list, options } = trial;
	const of = `the ${countOf(recipients, 'active subscriber')} of list ${list.id} "${list.name}"`;
	const what = (subject: string) => `send ${subject} to ${of}${caveat(trial, rejected)}`;
	const plan = { list_id: list.id, recipients, rejected, send: prepared.request };
	if (isOpaque(prepared) && !wantsPreview(options))
		return cx.wouldDo(what(`template ${prepared.request.template_unique_id}`), plan);
	if (first === null) return cx.wouldDo(what('nothing'), plan);
	const composed = await composeFor(cx, trial, first);
	if (wantsPreview(options)) return showPreview(cx, composed, options);
	return showDryRun(cx, composed, what(`"${composed.subject}"`), plan);
}

/** What the number leaves open. */
function caveat({ prepared, options }: Trial, rejected: number): string {
	if (rejected > 0) return `, ${rejected.toLocaleString('en-US')} left out`;
	const isChecked = options.strictVars ?? options.bulk;
	if (isChecked || variablesOfPeople(prepared).length === 0) return '';
	return '; without --strict-vars their variables are not checked one by one';
}
