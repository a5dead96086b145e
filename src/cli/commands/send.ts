/** `mailctl send`: one message to some addresses, or a campaign over a list, a table or send requests. */

import { randomUUID } from 'node:crypto';
import type { Accepted, Call } from '../../api/api.js';
import type { SendRequest } from '../../api/inputs.js';
import type { SendResult } from '../../api/records.js';
import { command, flagOf } from '../frame/command.js';
import type { DeliveryScope } from '../frame/connection.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { isTable } from '../frame/globals.js';
import { assertFile, inputName } from '../frame/sources.js';
import { paced } from '../frame/values.js';
import { answer, type Columns, column } from '../render/columns.js';
import { explained, type Refused } from '../verbs/refusals.js';
import { uploadAttachments } from './send/attach.js';
import { assertAllowed } from './send/audience.js';
import {
	afterAcceptance,
	assertCanDeliver,
	concludeDelivery,
	deliverNow,
	endOfSend,
} from './send/deliver.js';
import { maybeSent, saidToBeUnsent, sayWhoGetsNone, sendHint } from './send/hints.js';
import { linted, warnOfContent, warnOfLinks } from './send/lint.js';
import {
	assertListOptions,
	assertOneAudience,
	assertOutputs,
	assertWaits,
	campaignAnswer,
	type SendOptions,
	sendOptionGroups,
	sendOptions,
	settled,
} from './send/options.js';
import { addresseeOf, compose, foreseen, showDryRun, showRequest, wantsPreview } from './send/preview.js';
import { isShown, notAmong, shownKey } from './send/preview-as.js';
import { previewAnswer, showPreview } from './send/preview-output.js';
import { leftOf } from './send/report.js';
import {
	assertHonoured,
	assertOneContent,
	contentOf,
	isMadeElsewhere,
	isOpaque,
	lacksValues,
	missingForPeople,
	type Prepared,
	prepare,
} from './send/request.js';
import { assertResults, inputsOf, writeResults } from './send/results.js';
import { readTiming } from './send/timing.js';

type Accept = SendResult['messages'][number];
const columns: Columns<Accept> = [
	column('to', 'TO'),
	column('id', 'MESSAGE', { isName: true, isWhole: true }),
];

const unknownAcceptance: Accepted = { campaign: null, submission: null, replayed: false };

const self = command({
	name: 'send',
	summary: 'send a message, or a campaign to a list',
	description:
		'Variables are written #name#: from --context, the subscriber’s meta, or built in (email, name, unsubscribe_url, ' +
		'view_url, email_reason); #name|friend# has a default, for a value that is missing or blank. A name is made of letters A to Z, digits and _, with no digit first: the column First Name ' +
		'of a table is #first_name#, one such as Имя needs --map Имя=NAME. With --list, --csv or --batch, recipients are staged and checked first and released in ' +
		'one stroke; a --list gets bulk mail unless --transactional is given; in a script that needs --yes --expect-count N. Whatever breaks it off, mailctl campaigns resume goes on ' +
		'behind what is recorded; a crash repeats at most what was being sent. On a terminal what is missing is asked for: recipients, ' +
		'sender, subject and text; the message is shown before it leaves, and the command that does the same is printed.',
	options: sendOptions,
	optionGroups: sendOptionGroups,
	columns: [
		...columns,
		...answer('messages', 'result', 'messages_created'),
		...campaignAnswer,
		...previewAnswer,
	],
	writes: true,
	output:
		'the service’s answer: {"messages": [{"to", "id"}], "result", "messages_created"}; of a campaign {"name", "id", "state"} and its counts; ' +
		'with --preview {"from", "to", "subject", "text", "html", "attachments", "missing", "findings", "recipients", "rejected"}',
	exits: [3, 5, 6, 9, 12, 13, 14, 130],
	examples: [
		'mailctl send --from news@example.com --to ann@example.com --subject Hello --text "Hi #name#" --context name=Ann',
		'mailctl send --from news@example.com --list 12 --subject News --html-file news.html --yes --expect-count 250',
		'mailctl send --from news@example.com --list 12 --markdown-file news.md --yes --expect-count 250',
		'mailctl send --from news@example.com --csv people.csv --subject "News for #city#" --text "Hi #name#" --yes --expect-count 1',
		'mailctl send --from news@example.com --to ann@example.com --subject Invoice --text "Here it is." --attach invoice.pdf',
		'mailctl send --from news@example.com --to ann@example.com --template Welcome --preview html > welcome.html',
	],
	whenStopped: endOfSend,
	run: async (cx, { options }) => {
		const complete = (given: SendOptions) => send(cx, given);
		if (!cx.canAsk || cx.globals.yes === true) return complete(options);
		const { guideSend, isTooLittle } = await import('./send/guide.js');
		if (!isTooLittle(options)) return complete(options);
		await assertGiven(cx, options);
		return guideSend(cx, options, complete);
	},
});

async function send(cx: CommandContext, given: SendOptions): Promise<ExitCode | undefined> {
	const options = settled(given, { isDryRun: cx.dryRun });
	await assertMeant(cx, options);
	await assertTables(options);
	await assertHonoured(cx, { ...options, isJob: isJob(options) });
	// A look and a trial begin no campaign, whose beginning reads them.
	if (wantsPreview(options) || options.testTo !== undefined) await readTiming(cx, options);
	if (options.list.length > 0) {
		const { sendToList } = await import('./send/list.js');
		return sendToList(cx, options);
	}
	if (options.csv !== undefined) {
		const { sendToTable } = await import('./send/csv.js');
		return sendToTable(cx, options, inputName(options.csv));
	}
	if (options.batch !== undefined) {
		const { sendBatch } = await import('./send/batch.js');
		return sendBatch(cx, options, inputName(options.batch));
	}
	assertRecipients(options);
	assertAllowed(cx, [...options.to, ...options.cc, ...options.bcc]);
	const strict = options.strictVars ?? options.bulk;
	const prepared = await linted(cx, await prepare(cx, options), { strict });
	const request: SendRequest = { ...prepared.request, to: options.to };
	if (wantsPreview(options) && !cx.dryRun) return preview(cx, prepared, request, options);
	await assertVariables(cx, prepared, options);
	if (!wantsPreview(options)) {
		await assertCanDeliver(cx, options);
		await assertResults(options.results, { inputs: inputsOf(options), marks: async () => [] });
	}
	if (cx.dryRun) return preview(cx, prepared, request, options);
	await warnOfContent(cx, prepared, options.to);
	await uploadAttachments(cx, prepared.files);
	return accept(cx, request, options);
}

export { self as command };

/** Before any question: what no answer could mend. */
async function assertGiven(cx: CommandContext, given: SendOptions): Promise<void> {
	const options = settled(given, { isDryRun: cx.dryRun });
	await assertMeant(cx, options);
	assertOneContent(options);
	if (options.to.length > 0 && !isJob(options)) assertRecipients(options);
	if (options.list.length > 0) {
		assertListOptions(options);
		const { select } = await import('./send/selection.js');
		await select(cx, options);
	}
	await readTiming(cx, options);
	await assertTables(options);
	const bodies = ['textFile', 'htmlFile', 'markdownFile', 'contextFile'] as const;
	const paths = bodies.map((key) => [options[key]?.path ?? '-', flagOf(key)] as const);
	for (const [path, flag] of [...paths, ...options.attach.map((path) => [path, '--attach'] as const)])
		if (path !== '-') assertFile(path, flag);
}

/** Options that contradict each other, or have no effect. */
async function assertMeant(cx: CommandContext, options: SendOptions): Promise<void> {
	assertOutputs(cx, options);
	await assertKey(options);
	assertOneAudience(options);
	assertEffective(options);
	// Throws for one that cannot be meant, before anything is done.
	paced(options.rate);
}

async function assertTables({ csv, batch }: SendOptions): Promise<void> {
	const given = [csv, batch].filter((path) => path !== undefined);
	if (given.length === 0) return;
	const { assertThere } = await import('../../tables/source.js');
	for (const path of given) await assertThere(inputName(path));
}

async function assertKey({ idempotencyKey }: SendOptions): Promise<void> {
	if (idempotencyKey === undefined) return;
	const { idempotencyKeyRule } = await import('../../api/messages.js');
	if (!idempotencyKeyRule.isKept(idempotencyKey))
		throw new UsageError(`--idempotency-key: ${idempotencyKeyRule.message}`);
}

/** What would be taken and change nothing is refused. */
function assertEffective(options: SendOptions): void {
	assertWaits(options);
	if (options.ccEach && options.cc.length + options.bcc.length === 0)
		throw new UsageError('--cc-each goes with --cc or --bcc only');
	if (options.testTo !== undefined && wantsPreview(options))
		throw new UsageError(
			`--test-to sends and --${options.eml === undefined ? 'preview' : 'eml'} sends nothing; give one`,
		);
}

function isJob({ list, csv, batch }: SendOptions): boolean {
	return list.length > 0 || csv !== undefined || batch !== undefined;
}

function assertRecipients(options: SendOptions): void {
	if (options.to.length === 0) throw new UsageError('no recipients: give --to, --list, --csv or --batch');
	for (const flag of ['again', 'expectCount', 'testTo', 'skipInvalid', 'retryUnknown', 'sample'] as const) {
		if (options[flag] !== undefined && options[flag] !== false)
			throw new UsageError(`${flagOf(flag)} goes with --list, --csv or --batch only`);
	}
	if (options.map.length > 0) throw new UsageError('--map goes with --csv only');
	if (options.encoding !== undefined) throw new UsageError('--encoding goes with --csv only');
	const copies = options.cc.length + options.bcc.length;
	if (copies > 0 && options.to.length > 1 && !options.ccEach) {
		throw new UsageError('--cc and --bcc would ride on the message to every --to', {
			hint: 'add --cc-each if that is meant',
		});
	}
	if (options.maxRecipients !== undefined && options.to.length > options.maxRecipients) {
		throw new UsageError(
			`${options.to.length} recipients are more than --max-recipients ${options.maxRecipients}`,
		);
	}
}

async function preview(
	cx: CommandContext,
	prepared: Prepared,
	request: SendRequest,
	options: SendOptions,
): Promise<ExitCode> {
	const ended = await foreseen(cx, request, { ...prepared, idempotencyKey: options.idempotencyKey });
	await warnOfContent(cx, prepared, options.to);
	if (!wantsPreview(options) && ended === exits.done) await warnOfLinks(cx, { bulk: options.bulk });
	await look(cx, { prepared, request, options });
	return ended;
}

async function look(
	cx: CommandContext,
	{ prepared, request, options }: { prepared: Prepared; request: SendRequest; options: SendOptions },
): Promise<void> {
	if (isOpaque(prepared) && !wantsPreview(options)) {
		const what = `send template ${request.template_unique_id} to ${request.to.join(', ')}`;
		return cx.wouldDo(what, { send: request });
	}
	if (await isMadeElsewhere(cx)) {
		const what = `send "${request.subject}" to ${request.to.join(', ')}`;
		return showRequest(cx, { request, what, plan: {} });
	}
	const key = shownKey(options);
	const to = request.to.find((one) => isShown(key, one));
	if (to === undefined) throw notAmong(options, 'the --to');
	const composed = await compose(cx, prepared, await addresseeOf(cx, prepared, to));
	const counts = async () => ({ recipients: request.to.length, rejected: 0 });
	if (wantsPreview(options)) await showPreview(cx, { composed, prepared, counts }, options);
	else
		await showDryRun(cx, composed, `send "${composed.subject}" to ${request.to.join(', ')}`, {
			send: request,
		});
}

/** Variables that nothing gives a value to. */
async function assertVariables(cx: CommandContext, prepared: Prepared, options: SendOptions): Promise<void> {
	if (!(options.strictVars ?? options.bulk)) return;
	if (isOpaque(prepared)) return refuseStrict(options);
	const whose = { context: prepared.request.context ?? {}, to: options.to };
	const missing = await missingForPeople(cx, contentOf(prepared), whose);
	if (missing.length > 0) throw lacksValues(missing);
}

/** By default variables are checked only where that is possible; here an explicit `--strict-vars` is refused. */
function refuseStrict({ strictVars }: SendOptions): void {
	if (strictVars === true)
		throw new UsageError(
			'--strict-vars cannot be kept: this deployment does not tell what is in its templates',
		);
}

async function accept(cx: CommandContext, request: SendRequest, options: SendOptions): Promise<ExitCode> {
	const api = await cx.api();
	const { idempotentSend, service } = await api.capabilities();
	// Ours keep the key, so that an unanswered call may be repeated; others would only see a strange header.
	const key = idempotentSend ? (options.idempotencyKey ?? randomUUID()) : null;
	let accepted: Accepted | null = null;
	const call: Call = {
		signal: cx.signal,
		onAccepted: (one) => {
			accepted = one;
		},
		...(key !== null && { idempotencyKey: key }),
	};
	const sending = maybeSent(cx, api.send(request, call), key);
	const hasSenders = service === 'mailctl';
	const hint = (refused: Refused) => sendHint(refused, { hasSenders });
	const answer = await saidToBeUnsent(explained(sending, { input: request, hint }));
	await print(cx, answer, request);
	const { campaign, submission, replayed } = accepted ?? unknownAcceptance;
	if (replayed && options.idempotencyKey !== undefined)
		await cx.note('accepted before under this --idempotency-key: its first answer, nothing is sent again');
	const isTold = answer.messages_created > 0 || options.campaign !== undefined;
	if (campaign !== null && isTold) await cx.note(`campaign ${campaign}`);
	if (answer.messages_created === 0) return exits.partly;
	if (submission === null) return exits.done;
	const scope = { submission };
	return afterAcceptance(cx, null, () => deliverAccepted(cx, { scope, answer, options }));
}

async function deliverAccepted(
	cx: CommandContext,
	{ scope, answer, options }: { scope: DeliveryScope; answer: SendResult; options: SendOptions },
): Promise<ExitCode> {
	await warnOfLinks(cx, { bulk: options.bulk });
	const ids = answer.messages.map(({ id }) => id);
	const how = { ...options, rate: paced(options.rate).rate, ids };
	const summary = await deliverNow(cx, scope, answer.messages_created, how);
	if (options.results !== undefined) {
		await writeResults(cx, options.results, { ids });
	}
	const waiting = leftOf(answer.messages_created, summary?.counts ?? null);
	return concludeDelivery(cx, summary, { waiting, campaign: null });
}

async function print(cx: CommandContext, answer: SendResult, request: SendRequest): Promise<void> {
	const isMachine = cx.out.format === 'json' || cx.out.format === 'ndjson';
	if (isMachine) await cx.out.document(answer);
	else if (answer.messages.length > 0 || !isTable(cx.out.format))
		await cx.out.rows(answer.messages, columns, { all: true });
	await sayWhoGetsNone(cx, request.to, answer);
}
