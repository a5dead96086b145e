import type { SendRequest } from '../../api/inputs.js';
import type { SendResult } from '../../api/records.js';
import { command, flagOf } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { isMachine, isTable } from '../frame/globals.js';
import { assertFile, inputName } from '../frame/sources.js';
import { answer, type Columns, column } from '../render/columns.js';
import { assertAllowed } from '../verbs/allowed.js';
import {
	accept,
	assertCanDeliver,
	deliverSent,
	endOfSend,
	foreseeSending,
	sayWhoGetsNone,
} from './send/delivery.js';
import { type Draft, warnOfLinks } from './send/draft.js';
import {
	assertOptions,
	campaignAnswer,
	isCampaign,
	type SendOptions,
	sendOptionGroups,
	sendOptions,
	settled,
	wantsPreview,
} from './send/options.js';
import { isShown, notAmong, previewAnswer, showDryRun, shownKey, showPreview } from './send/preview.js';
import { assertResults } from './send/report.js';
import { assertHonoured, prepare, readTiming } from './send/request.js';

type Accept = SendResult['messages'][number];
const columns: Columns<Accept> = [
	column('to', 'TO'),
	column('id', 'MESSAGE', { isName: true, isWhole: true }),
];

const self = command({
	name: 'send',
	summary: 'send a message, or a campaign to a list',
	description:
		'Write variables as #name#, or as #name|friend# with a default. A campaign (--list, --csv, --batch) is checked as a whole before ' +
		'it starts; a script must confirm it with --yes --expect-count N. To continue after a crash, run mailctl campaigns resume. ' +
		'Read more with mailctl help sending.',
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
		'{"messages": [{"to", "id"}], "result", "messages_created"}; for a campaign {"name", "id", "state"} and its counts; ' +
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
		if (!(await isTooLittle(options))) return complete(options);
		await assertGiven(cx, options);
		return guideSend(cx, options, complete);
	},
});

export { self as command };

async function send(cx: CommandContext, given: SendOptions): Promise<ExitCode | undefined> {
	const options = settled(given, cx);
	await assertMeant(cx, options);
	await assertHonoured(cx, options, isCampaign(options));
	// `--preview` and `--test-to` start no campaign, so validate `--at`, `--in` and `--window` here.
	if (wantsPreview(options) || options.testTo !== undefined) await readTiming(cx, options);
	if (isCampaign(options)) return (await import('./send/stage.js')).sendCampaign(cx, options);
	return sendToAddresses(cx, options);
}

/** Refuses options before the first question if no answer could make them valid. */
async function assertGiven(cx: CommandContext, given: SendOptions): Promise<void> {
	const options = settled(given, cx);
	await assertMeant(cx, options);
	if (options.list.length > 0) await (await import('./send/recipients.js')).select(cx, options);
	await readTiming(cx, options);
	for (const key of ['textFile', 'htmlFile', 'markdownFile', 'contextFile'] as const) {
		const path = options[key]?.path ?? '-';
		if (path !== '-') assertFile(path, flagOf(key));
	}
	for (const path of options.attach) if (path !== '-') assertFile(path, '--attach');
}

async function assertMeant(cx: CommandContext, options: SendOptions): Promise<void> {
	const { csv, batch, idempotencyKey } = options;
	assertOptions(cx, options);
	if (idempotencyKey !== undefined) {
		const { idempotencyKeyRule } = await import('../../api/messages.js');
		if (!idempotencyKeyRule.isKept(idempotencyKey))
			throw new UsageError(`--idempotency-key: ${idempotencyKeyRule.message}`);
	}
	for (const path of [csv, batch])
		if (path !== undefined) await (await import('../../tables/source.js')).assertThere(inputName(path));
}

async function sendToAddresses(cx: CommandContext, options: SendOptions): Promise<ExitCode> {
	const { to, maxRecipients, bulk } = options;
	if (to.length === 0) throw new UsageError('no recipients: give --to, --list, --csv or --batch');
	if (maxRecipients !== undefined && to.length > maxRecipients)
		throw new UsageError(`${to.length} recipients are more than --max-recipients ${maxRecipients}`);
	assertAllowed(cx, [...to, ...options.cc, ...options.bcc]);
	const draft = await prepare(cx, options);
	await draft.warnOfVariables(options.strictVars ?? bulk);
	const request: SendRequest = { ...draft.request, to };
	const isLook = wantsPreview(options);
	if (!isLook || cx.dryRun) await draft.assertVariables(options);
	if (!isLook) {
		await assertCanDeliver(cx, options);
		await assertResults(options.results, null);
	}
	if (isLook || cx.dryRun) return foresee(cx, draft, request, options);
	await draft.warnOfContent();
	const sent = await accept(cx, request, draft.files, options);
	const { answer, campaign, submission, replayed } = sent;
	if (isMachine(cx.out.format)) await cx.out.document(answer);
	else if (answer.messages.length > 0 || !isTable(cx.out.format))
		await cx.out.rows(answer.messages, columns, { all: true });
	await sayWhoGetsNone(cx, request, answer);
	if (replayed && options.idempotencyKey !== undefined)
		await cx.note('already accepted with this --idempotency-key: nothing is sent again');
	const isMade = answer.messages_created > 0;
	if (campaign !== null && (isMade || options.campaign !== undefined)) await cx.note(`campaign ${campaign}`);
	if (isMade && submission !== null) await warnOfLinks(cx, bulk);
	return deliverSent(cx, sent, options);
}

async function foresee(cx: CommandContext, draft: Draft, request: SendRequest, options: SendOptions) {
	const { idempotencyKey, bulk } = options;
	const isLook = wantsPreview(options);
	const ended = await foreseeSending(cx, request, draft.files, idempotencyKey);
	await draft.warnOfContent();
	if (!isLook && ended === exits.done) await warnOfLinks(cx, bulk);
	const key = shownKey(options);
	const to = request.to.find((one) => isShown(key, one));
	if (to === undefined) throw notAmong(options, 'the --to');
	const first = { draft, addressee: await draft.addressee(to) };
	if (isLook) await showPreview(cx, first, { recipients: request.to.length, rejected: 0 }, options);
	else {
		const sentence = (subject: string) => `send ${subject} to ${request.to.join(', ')}`;
		await showDryRun(cx, { ...first, request, sentence, plan: { send: request } });
	}
	return ended;
}
