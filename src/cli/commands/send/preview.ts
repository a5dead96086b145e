/**
 * The finished message for one recipient: shown by `--preview`, `--eml` and `--dry-run`, or sent by `--test-to` to another
 * address.
 */

import { randomUUID } from 'node:crypto';
import { emailKey, parseAddress } from '../../../api/address.js';
import type { Call } from '../../../api/api.js';
import type { AttachedFile } from '../../../api/attachments.js';
import { NoSenders } from '../../../api/capabilities.js';
import { invalid, isForbidden } from '../../../api/errors.js';
import { builtInVariables } from '../../../api/fields.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { Subscriber } from '../../../api/records.js';
import { refusal } from '../../../api/refusals.js';
import { usedVariables, variableNames } from '../../../api/variables.js';
import type { ComposedMessage } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { isTable } from '../../frame/globals.js';
import { attachmentLines } from '../../render/attachments.js';
import { cleanLines } from '../../render/clean.js';
import type { Foreseen } from '../../verbs/dry-run.js';
import { walk } from '../../verbs/listing.js';
import { explained } from '../../verbs/refusals.js';
import { findInAllLists } from '../subscribers/walk.js';
import { uploadAttachments } from './attach.js';
import { afterAcceptance, concludeDelivery, deliverNow } from './deliver.js';
import { maybeSent, saidToBeUnsent, sayWhoGetsNone, sendHint } from './hints.js';
import type { SendOptions } from './options.js';
import { leftOf } from './report.js';
import { contentOf, isMadeElsewhere, isOpaque, type Prepared } from './request.js';

export function wantsPreview(options: Pick<SendOptions, 'preview' | 'eml'>): boolean {
	return options.preview !== undefined || options.eml !== undefined;
}

/** A preview of what would be refused would be a lie: the request is checked as the service checks it. */
export async function assertAcceptable(cx: CommandContext, request: SendRequest): Promise<void> {
	const foresee = await foreseeing(cx);
	await explained(foresee(request), { input: request, hint: sendHint });
}

/** Ends as the acceptance will. A dry run on a database of this machine accepts the request, which is undone with it. */
export async function foreseen(
	cx: CommandContext,
	request: SendRequest,
	{ idempotencyKey, files }: { idempotencyKey?: string | undefined; files?: Prepared['files'] },
): Promise<ExitCode> {
	const { local, api } = await cx.connection();
	if (local === null || !cx.dryRun) {
		await assertAcceptable(cx, request);
		return exits.done;
	}
	await uploadAttachments(cx, files);
	const call: Call = { signal: cx.signal, ...(idempotencyKey !== undefined && { idempotencyKey }) };
	const accepting = explained(api.send(request, call), { input: request, hint: sendHint });
	const answer = await saidToBeUnsent(accepting);
	await sayWhoGetsNone(cx, request.to, answer);
	return answer.messages_created === 0 ? exits.partly : exits.done;
}

/** Ends as the acceptance of a request would, and accepts nothing. What a deployment does not tell is left to it. */
export async function foreseeing(cx: CommandContext): Promise<(request: SendRequest) => Promise<void>> {
	const { local } = await cx.connection();
	if (local !== null) return local.foreseeSend;
	const { sendFields } = await import('../../../api/messages.js');
	const senders = await verifiedSenders(cx);
	return async (request) => {
		const parsed = sendFields.parse(request);
		if (parsed.kind === 'invalid') throw invalid(parsed.errors);
		if (senders?.has(parsed.value.from_key) === false) throw invalid({ from: [refusal('not_verified')] });
	};
}

/** A deployment may tell them, to a token that may read; null: nothing is held against an address. */
async function verifiedSenders(cx: CommandContext): Promise<ReadonlySet<string> | null> {
	const { senders } = await cx.api();
	const verified = new Set<string>();
	try {
		for await (const { from_email, is_verified } of walk(senders, {}, { signal: cx.signal }))
			if (is_verified !== false) verified.add(emailKey(from_email));
		return verified;
	} catch (error) {
		if (isForbidden(error) || error instanceof NoSenders) return null;
		throw error;
	}
}

/** A finished message, and what is still to be warned of. */
export interface Composed extends ComposedMessage {
	/** Those of `missing` that no warning has named. */
	unnamed: readonly string[];
}

/** The finished message. Throws `UsageError` where only the service knows what it says. */
export async function compose(
	cx: CommandContext,
	prepared: Prepared,
	{ to, values }: Addressee,
): Promise<Composed> {
	const { request } = prepared;
	if (isOpaque(prepared))
		throw new UsageError(
			'the message cannot be shown: this deployment does not tell what is in its templates',
		);
	const connection = await cx.connection();
	const composed = await connection.compose({
		from: typeof request.from === 'string' ? request.from : (request.from[0] ?? ''),
		to,
		...contentOf(prepared),
		bulk: request.type === 'BULK',
		reply_to: request.reply_to ?? [],
		cc: request.cc ?? [],
		headers: request.headers ?? {},
		variables: { email: to, ...values, ...request.context },
		...(prepared.files !== undefined && { files: prepared.files }),
	});
	for (const warning of composed.warnings) await cx.warn(warning);
	const { named = [] } = prepared;
	return { ...composed, unnamed: composed.missing.filter((name) => !named.includes(name)) };
}

/** A dry run: machines get the plan and the message, a person its headers and what it says; both a line of each file. */
export async function showDryRun(
	cx: CommandContext,
	composed: Composed,
	what: string,
	plan: Foreseen,
): Promise<void> {
	await sayWhatIsOpen(cx, composed);
	const message = composed.withoutFiles.toString('latin1');
	const attachments = filesOf(composed);
	await cx.wouldDo(what, { ...plan, message, ...(attachments.length > 0 && { attachments }) });
	if (!isTable(cx.out.format)) return;
	const [head = ''] = composed.withoutFiles.toString('latin1').split('\r\n\r\n', 1);
	const lines = [head.replaceAll('\r\n', '\n'), '', composed.text.trimEnd(), ...filesBelow(composed)];
	await cx.out.raw(`${cleanLines(lines.join('\n'))}\n`);
}

/** What goes with it, for a person. */
export function filesBelow(composed: ComposedMessage): string[] {
	const files = filesOf(composed);
	return files.length === 0 ? [] : ['', ...attachmentLines(files)];
}

/** What goes with it, without the bytes. */
export function filesOf({ files = [] }: ComposedMessage): AttachedFile[] {
	return files.map(({ bytes, ...file }) => ({ ...file, size: bytes.length }));
}

export function warnOfMissing(cx: CommandContext, { unnamed }: Composed): Promise<void> {
	if (unnamed.length === 0) return Promise.resolve();
	return cx.warn(`no value for ${unnamed.map((name) => `#${name}#`).join(', ')}`);
}

/** Variables without a value, and parts that only the deployment can make. */
export async function sayWhatIsOpen(cx: CommandContext, composed: Composed): Promise<void> {
	await warnOfMissing(cx, composed);
	if (composed.standsIn !== null) await cx.note(composed.standsIn);
}

/** A dry run: machines get the plan with the request, a person reads it. */
export async function showRequest(
	cx: CommandContext,
	{ request, what, plan }: { request: SendRequest; what: string; plan: object },
): Promise<void> {
	await cx.wouldDo(`${what}; this deployment makes the message from the request`, { ...plan, send: request });
	if (!isTable(cx.out.format)) return;
	await cx.out.raw(`${cleanLines(JSON.stringify(request, null, 2))}\n`);
}

/** `values`: the person's variables; the context of a call goes over them. */
export interface Addressee {
	to: string;
	values: Readonly<Record<string, string>>;
}

/** A known subscriber of a list with that reason. */
export function asSubscriber({ email, name, meta }: Subscriber, email_reason: string): Addressee {
	const fields = Object.entries(meta).filter(([, value]) => value !== null && typeof value !== 'object');
	const values = Object.fromEntries(fields.map(([key, value]) => [key, String(value)]));
	return { to: email, values: { name, email_reason, ...values } };
}

/**
 * The subscriber of the request's list; without a list, the only one with the address. Looked up where the content
 * uses what a person has and the service is ours: others make their messages by themselves.
 */
export async function addresseeOf(cx: CommandContext, prepared: Prepared, text: string): Promise<Addressee> {
	const to = parseAddress(text)?.address ?? text;
	const unknown = { to, values: { name: '', email_reason: '' } };
	if (isOpaque(prepared) || !usesPerson(prepared) || (await isMadeElsewhere(cx))) return unknown;
	try {
		return await found(cx, unknown, prepared.request.list_id);
	} catch (error) {
		// It may send, and the message will hold what it may not read.
		if (!isForbidden(error)) throw error;
		await cx.warn('this token may not read subscribers: their values are missing here');
		return unknown;
	}
}

async function found(
	cx: CommandContext,
	unknown: Addressee,
	list_id: number | undefined,
): Promise<Addressee> {
	const { to } = unknown;
	const api = await cx.api();
	const people: Subscriber[] = [];
	for await (const one of findInAllLists(api, to, cx.signal))
		if (list_id === undefined || one.list_id === list_id) people.push(one);
	const [person, another] = people;
	const list = list_id ?? person?.list_id;
	if (list === undefined || another !== undefined) return unknown;
	const { email_reason } = await api.lists.get(list, { signal: cx.signal });
	if (person === undefined) return { to, values: { ...unknown.values, email_reason } };
	return { to, values: asSubscriber(person, email_reason).values };
}

/** Variables without a value: in no context, and neither the address nor a link. */
function usesPerson(prepared: Prepared): boolean {
	const others: readonly string[] = builtInVariables.filter(
		(name) => !['name', 'email_reason'].includes(name),
	);
	const context = prepared.request.context ?? {};
	return variableNames(usedVariables(contentOf(prepared))).some(
		(name) => !Object.hasOwn(context, name) && !others.includes(name),
	);
}

/** What the addressee would get, sent to another address alone; a dry run shows it. `isShown`: the person has seen it. */
export async function sendTrial(
	cx: CommandContext,
	{
		prepared,
		addressee,
		to,
		options,
		isShown = false,
	}: { prepared: Prepared; addressee: Addressee; to: string; options: SendOptions; isShown?: boolean },
): Promise<ExitCode> {
	const { cc, bcc, ...shared } = prepared.request;
	const values = Object.entries({ ...addressee.values, ...shared.context });
	// A blank value is refused, and is what an unknown person has anyway.
	const context = Object.fromEntries(values.filter(([, value]) => value !== ''));
	const request: SendRequest = { ...shared, type: 'TRANSACTIONAL', to: [to], context };
	if (cx.dryRun) return foreseeTrial(cx, { prepared, request, addressee });
	// What was shown was warned of.
	const subject = await trialSubject(
		isShown ? { ...cx, warn: async () => undefined } : cx,
		prepared,
		addressee,
	);
	let submission: string | null = null;
	const api = await cx.api();
	const { idempotentSend } = await api.capabilities();
	const key = idempotentSend ? randomUUID() : null;
	await uploadAttachments(cx, prepared.files);
	const call: Call = {
		signal: cx.signal,
		...(key !== null && { idempotencyKey: key }),
		onAccepted: (accepted) => {
			submission = accepted.submission;
		},
	};
	// No key is told: --idempotency-key does not go with a campaign, and a second trial does no harm.
	const sending = maybeSent(cx, api.send(request, call), null);
	const answer = await explained(sending, { input: request, hint: sendHint });
	const said = `a test mail of ${subject} as for ${addressee.to}, to ${to}`;
	if (!isTable(cx.out.format)) await cx.note(said);
	await cx.out.document(answer, [said, ...answer.messages.map(({ id }) => `message ${id}`)].join(': '));
	await sayWhoGetsNone(cx, request.to, answer);
	if (answer.messages_created === 0) return exits.partly;
	if (submission === null) return exits.done;
	const scope = { submission };
	return afterAcceptance(cx, null, async () => {
		const ids = answer.messages.map(({ id }) => id);
		const how = { ...options, rate: undefined, campaign: undefined, ids };
		const summary = await deliverNow(cx, scope, 1, how);
		return concludeDelivery(cx, summary, { waiting: leftOf(1, summary?.counts ?? null), campaign: null });
	});
}

/** Ends as the trial would, and shows what it would send. */
async function foreseeTrial(
	cx: CommandContext,
	{ prepared, request, addressee }: { prepared: Prepared; request: SendRequest; addressee: Addressee },
): Promise<ExitCode> {
	const ended = await foreseen(cx, request, prepared);
	const { to: _, ...trial } = request;
	const [to = ''] = request.to;
	const what = (subject: string) => `send a test mail of ${subject} as for ${addressee.to} to ${to}`;
	const plan = { send: request };
	if (isOpaque(prepared)) await cx.wouldDo(what(`template ${request.template_unique_id}`), plan);
	else if (await isMadeElsewhere(cx))
		await showRequest(cx, { request, what: what(`"${request.subject}"`), plan });
	else {
		const composed = await compose(cx, { ...prepared, request: trial }, { to, values: {} });
		await showDryRun(cx, composed, what(`"${composed.subject}"`), plan);
	}
	return ended;
}

/** What a trial is of, in words; warns of variables that nothing gives a value to. */
async function trialSubject(cx: CommandContext, prepared: Prepared, addressee: Addressee): Promise<string> {
	if (isOpaque(prepared)) return `template ${prepared.request.template_unique_id}`;
	const composed = await compose(cx, prepared, addressee);
	await warnOfMissing(cx, composed);
	return `"${composed.subject}"`;
}
