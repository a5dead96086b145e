/** `mailctl send`: one message to some addresses, or a job over a list, a table or send requests. */
import { randomUUID } from 'node:crypto';
import type { Accepted, Call } from '../../api/api.js';
import type { SendRequest } from '../../api/inputs.js';
import type { SendResult } from '../../api/records.js';
import { type CommandGroup, command } from '../command.js';
import type { DeliveryScope } from '../connection.js';
import type { CommandContext } from '../context.js';
import { UsageError } from '../errors.js';
import type { ExitCode } from '../exit.js';
import { explained, type Refused } from '../refusals.js';
import { type Columns, column } from '../render/columns.js';
import { assertAllowed } from './send/allowed.js';
import { concludeDelivery } from './send/conclude.js';
import { leftOf } from './send/counts.js';
import { assertCanDeliver, deliverNow, parseRate, warnOfLinks } from './send/deliver.js';
import { saidToBeUnsent, sendHint } from './send/hints.js';
import { assertHonoured } from './send/honoured.js';
import { maybeSent } from './send/once.js';
import { type SendOptions, sendOptions } from './send/options.js';
import { assertAcceptable, compose, showDryRun, showPreview, wantsPreview } from './send/preview.js';
import { contentOf, isOpaque, type Prepared, prepare } from './send/request.js';
import { assertResults, inputsOf } from './send/results-place.js';
import { sendResume } from './send/resume.js';
import { sendCancel, sendStatus } from './send/status.js';
import { sayWhoGetsNone } from './send/unmade.js';

type Accept = SendResult['messages'][number];
const columns: Columns<Accept> = [
	column('to', 'TO'),
	column('id', 'MESSAGE', { isName: true, isWhole: true }),
];

const self = command({
	name: 'send',
	summary: 'send a message, or a mailing to a list',
	description:
		'Variables are written #name#: from --context, the subscriber’s meta, or built in (email, name, unsubscribe_url, ' +
		'view_url, email_reason). A name is made of letters A to Z, digits and _, with no digit first: the column First Name ' +
		'of a table is #first_name#, one such as Имя needs --map Имя=NAME. With --list, --csv or --batch, recipients are staged and checked first and released in ' +
		'one stroke; in a script that needs --yes --expect-count N. Whatever breaks it off, mailctl send resume JOB goes on ' +
		'and nobody gets it twice.',
	options: sendOptions,
	columns,
	writes: true,
	output:
		'the service’s answer: {"messages": [{"to", "id"}], "result", "messages_created"}; of a job its name and counts',
	exits: [3, 5, 6, 9, 12, 13],
	examples: [
		'mailctl send --from news@example.com --to ann@example.com --subject Hello --text "Hi #name#" --context name=Ann',
		'mailctl send --from news@example.com --list 12 --subject News --html-file news.html --bulk --yes --expect-count 250',
		'mailctl send --from news@example.com --csv people.csv --subject "News for #city#" --text "Hi #name#" --yes --expect-count 1',
		'mailctl send --from news@example.com --to ann@example.com --template Welcome --preview html > welcome.html',
	],
	run: async (cx, { options }): Promise<ExitCode | undefined> => {
		assertOutputs(options);
		assertOneAudience(options);
		if (options.rate !== undefined) parseRate(options.rate);
		await assertHonoured(cx, { ...options, isJob: isJob(options) });
		if (options.list !== undefined) {
			const { sendToList } = await import('./send/list.js');
			return sendToList(cx, options, options.list);
		}
		if (options.csv !== undefined) {
			const { sendToTable } = await import('./send/csv.js');
			return sendToTable(cx, options, options.csv);
		}
		if (options.batch !== undefined) {
			const { sendBatch } = await import('./send/batch.js');
			return sendBatch(cx, options, options.batch);
		}
		assertRecipients(options);
		assertAllowed(cx, [...options.to, ...options.cc, ...options.bcc]);
		const prepared = await prepare(cx, options);
		const request: SendRequest = { ...prepared.request, to: options.to };
		if (wantsPreview(options) || cx.dryRun) return preview(cx, prepared, request, options);
		await assertVariables(cx, prepared, options);
		await assertCanDeliver(cx, options);
		await assertResults(options.results, { inputs: inputsOf(options), mailing: async () => null });
		return accept(cx, request, options);
	},
});

export const group: CommandGroup = {
	name: 'send',
	summary: self.summary,
	commands: [sendStatus, sendResume, sendCancel],
	self,
};

function assertOutputs({ eml, preview }: SendOptions): void {
	if (eml === '-' && preview !== undefined)
		throw new UsageError('--eml - and --preview both print on standard output; give one');
}

function assertOneAudience({ list, csv, batch }: SendOptions): void {
	const given = Object.entries({ list, csv, batch }).filter(([, value]) => value !== undefined);
	const [one, other] = given.map(([name]) => `--${name}`);
	if (other !== undefined) throw new UsageError(`${one} and ${other} both name recipients; give one`);
}

function isJob({ list, csv, batch }: SendOptions): boolean {
	return list !== undefined || csv !== undefined || batch !== undefined;
}

function assertRecipients(options: SendOptions): void {
	if (options.to.length === 0) throw new UsageError('nobody to send to: give --to, --list, --csv or --batch');
	for (const flag of ['job', 'expectCount', 'testTo', 'skipInvalid', 'retryUnknown'] as const) {
		if (options[flag] !== undefined && options[flag] !== false)
			throw new UsageError(`--${kebab(flag)} goes with --list, --csv or --batch only`);
	}
	if (options.map.length > 0) throw new UsageError('--map goes with --csv only');
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
): Promise<undefined> {
	await assertAcceptable(cx, request);
	if (isOpaque(prepared) && !wantsPreview(options)) {
		const what = `send template ${request.template_unique_id} to ${request.to.join(', ')}`;
		return cx.wouldDo(what, { send: request }).then(() => undefined);
	}
	const composed = await compose(cx, prepared, {
		to: request.to[0] ?? '',
		subscriber: null,
		email_reason: null,
	});
	if (wantsPreview(options)) await showPreview(cx, composed, options);
	else
		await showDryRun(cx, composed, `send "${composed.subject}" to ${request.to.join(', ')}`, {
			send: request,
		});
}

/** Variables that nothing gives a value to. A field may: which person it is, the service knows. */
async function assertVariables(cx: CommandContext, prepared: Prepared, options: SendOptions): Promise<void> {
	if (!(options.strictVars ?? options.bulk)) return;
	if (isOpaque(prepared)) return refuseStrict(options);
	const { missingVariables } = await import('./send/variables.js');
	const missing = await missingVariables(cx, contentOf(prepared), prepared.request.context ?? {});
	if (missing.length === 0) return;
	throw new UsageError(`no value for ${missing.map((name) => `#${name}#`).join(', ')}; nothing was sent`, {
		hint: 'give --context NAME=VALUE, or --no-strict-vars to leave them as they are',
	});
}

/** Bulk alone asks for what can be checked; who says --strict-vars wants it checked. */
function refuseStrict({ strictVars }: SendOptions): void {
	if (strictVars === true)
		throw new UsageError(
			'--strict-vars cannot be kept: this deployment does not tell what is in its templates',
		);
}

async function accept(cx: CommandContext, request: SendRequest, options: SendOptions): Promise<ExitCode> {
	const api = await cx.api();
	const { idempotentSend, ext } = await api.capabilities();
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
	const hasSenders = ext.senders !== undefined;
	const hint = (refused: Refused) => sendHint(refused, { hasSenders });
	const answer = await saidToBeUnsent(explained(sending, { input: request, hint }));
	await print(cx, answer, request);
	const { campaign, submission } = accepted ?? { campaign: null, submission: null };
	if (campaign !== null) await cx.note(`campaign ${campaign}`);
	const scope: DeliveryScope = submission === null ? null : { submission };
	if (scope === null || answer.messages_created === 0) return 0;
	await warnOfLinks(cx, options);
	const summary = await deliverNow(cx, scope, answer.messages_created, {
		...options,
		ids: answer.messages.map(({ id }) => id),
	});
	if (options.results !== undefined) {
		const { writeResults } = await import('./send/results.js');
		await writeResults(cx, options.results, { ids: answer.messages.map(({ id }) => id) });
	}
	const waiting = leftOf(answer.messages_created, summary?.counts ?? null);
	return concludeDelivery(cx, summary, { waiting, job: null });
}

async function print(cx: CommandContext, answer: SendResult, request: SendRequest): Promise<void> {
	const isMachine = cx.out.format === 'json' || cx.out.format === 'ndjson';
	if (isMachine) await cx.out.document(answer);
	else await cx.out.rows(answer.messages, columns, { all: true });
	await sayWhoGetsNone(cx, request.to, answer);
}

function kebab(name: string): string {
	return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
