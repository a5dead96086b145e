/**
 * The finished message for one recipient: shown by `--preview`, `--eml` and `--dry-run`, or sent by `--test-to` to another
 * address.
 */

import { stat } from 'node:fs/promises';
import { type EmailKey, emailKey, parseAddress, parseMailbox } from '../../../api/address.js';
import type { AttachedFile } from '../../../api/attachments.js';
import { invalid, isForbidden, NoSenders } from '../../../api/errors.js';
import type { SendRequest } from '../../../api/inputs.js';
import { builtInVariables } from '../../../api/inputs.js';
import type { Subscriber } from '../../../api/records.js';
import { refusal } from '../../../api/refusals.js';
import { usedVariables, variableNames } from '../../../api/variables.js';
import type { ComposedMessage } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { isMachine, isTable } from '../../frame/globals.js';
import { type Foreseen, unchecked } from '../../frame/plan.js';
import { cleanLines } from '../../render/clean.js';
import { answer } from '../../render/columns.js';
import { attachmentLines } from '../../render/units.js';
import { addressFault } from '../../verbs/address-faults.js';
import { walk } from '../../verbs/listing.js';
import { explained } from '../../verbs/refusals.js';
import { findInAllLists } from '../subscribers/walk.js';
import { accept, foreseeAcceptance } from './accept.js';
import { uploadAttachments } from './attach.js';
import { findingsIn } from './lint.js';
import type { SendOptions } from './options.js';
import { contentOf, isMadeElsewhere, isOpaque, type Prepared, sendHint } from './request.js';

/** The keys of `--preview -o json` that no other answer of `send` has. */
export const previewAnswer = answer(
	...['from', 'subject', 'text', 'html', 'attachments', 'missing', 'findings', 'eml'],
);

/** The address of `--preview-as`; null: the first recipient's message is shown. Throws `UsageError`. */
export function shownKey({ previewAs }: Pick<SendOptions, 'previewAs'>): EmailKey | null {
	if (previewAs === undefined) return null;
	const parsed = parseMailbox(previewAs);
	if (parsed === null)
		throw new UsageError(`--preview-as: "${previewAs}" is no address: ${addressFault(previewAs, 'mailbox')}`);
	return parsed.key;
}

export function isShown(key: EmailKey | null, to: string): boolean {
	return key === null || emailKey(parseMailbox(to)?.address ?? to) === key;
}

/** Exit 3. `where`: the recipients, in a sentence. */
export function notAmong({ previewAs = '' }: Pick<SendOptions, 'previewAs'>, where: string): CliError {
	return new CliError('not_found', exits.notFound, `--preview-as: ${previewAs} is not among ${where}`);
}

/** A preview of a message that would be refused would mislead: the request is checked as the service checks it. */
export async function assertAcceptable(cx: CommandContext, request: SendRequest): Promise<void> {
	const check = await foreseeing(cx);
	await explained(check(request), { input: request, hint: sendHint });
}

/** Ends as the acceptance of a request would, and accepts nothing. A rule that a deployment does not tell is left to it. */
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

/** A finished message, with the variables that nothing has warned of yet. */
interface Composed extends ComposedMessage {
	/** Those of `missing` that no warning has named. */
	unnamed: readonly string[];
}

/** The finished message. Throws `UsageError` where only the service knows its content. */
export async function compose(
	cx: CommandContext,
	prepared: Prepared,
	{ to, values }: Addressee,
): Promise<Composed> {
	const { request, named = [] } = prepared;
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
	return { ...composed, unnamed: composed.missing.filter((name) => !named.includes(name)) };
}

/** `values`: the person's variables; the context of a call goes over them. */
export interface Addressee {
	to: string;
	values: Readonly<Record<string, string>>;
}

export function asSubscriber({ email, name, meta }: Subscriber, email_reason: string): Addressee {
	const fields = Object.entries(meta).filter(([, value]) => value !== null && typeof value !== 'object');
	const values = Object.fromEntries(fields.map(([key, value]) => [key, String(value)]));
	return { to: email, values: { name, email_reason, ...values } };
}

/**
 * The subscriber of the request's list; without a list, the only one with the address. Looked up where the content
 * uses a person's values and the service is ours: others make their messages by themselves.
 */
export async function addresseeOf(cx: CommandContext, prepared: Prepared, text: string): Promise<Addressee> {
	const to = parseAddress(text)?.address ?? text;
	const unknown = { to, values: { name: '', email_reason: '' } };
	if (isOpaque(prepared) || !usesPerson(prepared) || (await isMadeElsewhere(cx))) return unknown;
	const { list_id } = prepared.request;
	try {
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
	} catch (error) {
		// It may send, and the message will hold values that it may not read.
		if (!isForbidden(error)) throw error;
		await cx.warn('this token may not read subscribers: their values are missing here');
		return unknown;
	}
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

/** A dry run: machines get the plan and the message, a person its headers and its text; both a line of each file. */
export async function showDryRun(
	cx: CommandContext,
	composed: Composed,
	sentence: string,
	plan: Foreseen,
): Promise<void> {
	await sayOpenParts(cx, composed);
	const message = composed.withoutFiles.toString('latin1');
	const attachments = filesOf(composed);
	await cx.wouldDo(sentence, { ...plan, message, ...(attachments.length > 0 && { attachments }) });
	if (!isTable(cx.out.format)) return;
	const [head = ''] = message.split('\r\n\r\n', 1);
	const lines = [head.replaceAll('\r\n', '\n'), '', composed.text.trimEnd(), ...filesBelow(composed)];
	await cx.out.raw(`${cleanLines(lines.join('\n'))}\n`);
}

export async function showRequest(
	cx: CommandContext,
	{ request, sentence, plan }: { request: SendRequest; sentence: string; plan: object },
): Promise<void> {
	await cx.wouldDo(`${sentence}; this deployment makes the message from the request`, {
		...plan,
		send: request,
	});
	if (!isTable(cx.out.format)) return;
	await cx.out.raw(`${cleanLines(JSON.stringify(request, null, 2))}\n`);
}

function filesBelow(composed: ComposedMessage): string[] {
	const files = filesOf(composed);
	return files.length === 0 ? [] : ['', ...attachmentLines(files)];
}

function filesOf({ files = [] }: ComposedMessage): AttachedFile[] {
	return files.map(({ bytes, ...file }) => ({ ...file, size: bytes.length }));
}

export async function warnOfMissing(cx: CommandContext, { unnamed }: Composed): Promise<void> {
	if (unnamed.length > 0) await cx.warn(`no value for ${unnamed.map((name) => `#${name}#`).join(', ')}`);
}

/** Variables without a value, and parts that only the deployment can make. */
async function sayOpenParts(cx: CommandContext, composed: Composed): Promise<void> {
	await warnOfMissing(cx, composed);
	if (composed.standsIn !== null) await cx.note(composed.standsIn);
}

/** The message of one recipient, and how many get one like it; null: not all recipients were read. */
interface Preview {
	composed: Composed;
	prepared: Prepared;
	counts: { recipients: number | null; rejected: number | null };
}

/** Writes what `--eml` and `--preview` ask for. */
export async function showPreview(
	cx: CommandContext,
	{ composed, prepared, counts }: Preview,
	{ preview, eml }: Pick<SendOptions, 'preview' | 'eml'>,
): Promise<void> {
	const { from, to, subject, text, html, missing } = composed;
	if (preview === 'html' && html === null)
		throw new UsageError('--preview html: the message has no HTML', { hint: '--preview text' });
	await sayOpenParts(cx, composed);
	if ((await cx.connection()).local === null) await cx.note(unchecked);
	const { isTTY } = cx.io.stdout;
	if (eml === '-')
		return cx.out.raw(
			isTTY ? cleanLines(composed.raw.toString('utf8').replaceAll('\r\n', '\n')) : composed.raw,
		);
	if (eml !== undefined) await writeNew(cx, eml, composed.raw);
	if (preview !== 'browser' && isMachine(cx.out.format))
		return cx.out.document({
			...{ from, to, subject, text, html },
			attachments: filesOf(composed),
			missing,
			findings: await findingsIn(cx, prepared),
			...counts,
			...(eml !== undefined && { eml }),
		});
	if (preview === undefined) return;
	// On a terminal a blank line stands between the headers and the part.
	await cx.note([`From: ${from}`, `To: ${to}`, `Subject: ${subject}`, ...(isTTY ? [''] : [])]);
	if (preview === 'browser') {
		const { openInBrowser } = await import('./browser.js');
		const page = await openInBrowser(cx, composed);
		const how = page.opened ? 'opened in a browser' : 'no browser to open here; the message is in';
		return cx.out.document(page, `${how}: ${page.file}`);
	}
	const below = filesBelow(composed).join('\n');
	const withFiles = below === '' ? text : `${text.trimEnd()}\n${below}\n`;
	const part = preview === 'html' ? (html ?? '') : withFiles;
	const shown = isTTY ? cleanLines(part) : part;
	await cx.out.raw(shown.endsWith('\n') ? shown : `${shown}\n`);
}

async function writeNew(cx: CommandContext, path: string, bytes: Buffer): Promise<void> {
	if ((await stat(path).catch(() => null))?.isFile()) throw new UsageError(`--eml: ${path} is there already`);
	const { createOutputFile } = await import('../../../tables/output-file.js');
	const file = await createOutputFile(path, 'replace');
	try {
		await file.write(bytes);
		await file.finish();
	} finally {
		await file.discard();
	}
	await cx.note(`wrote ${path}`);
}

/** The message of the addressee, sent to another address alone; a dry run shows it. `isShown`: the person has seen it. */
export async function sendTrial(
	cx: CommandContext,
	trial: { prepared: Prepared; addressee: Addressee; to: string; options: SendOptions; isShown?: boolean },
): Promise<ExitCode> {
	const { prepared, addressee, to, options, isShown = false } = trial;
	const { cc, bcc, ...shared } = prepared.request;
	const values = Object.entries({ ...addressee.values, ...shared.context });
	// A blank value is refused, and is what an unknown person has anyway.
	const context = Object.fromEntries(values.filter(([, value]) => value !== ''));
	const mail = { ...shared, type: 'TRANSACTIONAL' as const, context };
	const request: SendRequest = { ...mail, to: [to] };
	if (cx.dryRun) return foreseeTrial(cx, { ...trial, prepared: { ...prepared, request: mail } }, request);
	const quiet = isShown ? { ...cx, warn: async () => undefined } : cx;
	const subject = await trialSubject(quiet, prepared, addressee);
	await uploadAttachments(cx, prepared.files);
	const said = `a test mail of ${subject} as for ${addressee.to}, to ${to}`;
	const { wait, waitTimeout, connections } = options;
	return accept(cx, request, {
		...{ wait, waitTimeout, connections, isTrial: true },
		print: async (answer) => {
			if (!isTable(cx.out.format)) await cx.note(said);
			await cx.out.document(answer, [said, ...answer.messages.map(({ id }) => `message ${id}`)].join(': '));
		},
	});
}

/** Ends as the trial would, and shows what it would send. */
async function foreseeTrial(
	cx: CommandContext,
	{ prepared, addressee, to }: { prepared: Prepared; addressee: Addressee; to: string },
	request: SendRequest,
): Promise<ExitCode> {
	const ended = await foreseeSending(cx, request, prepared);
	const sentence = (subject: string) => `send a test mail of ${subject} as for ${addressee.to} to ${to}`;
	const plan = { send: request };
	if (isOpaque(prepared)) await cx.wouldDo(sentence(`template ${request.template_unique_id}`), plan);
	else if (await isMadeElsewhere(cx))
		await showRequest(cx, { request, sentence: sentence(`"${request.subject}"`), plan });
	else {
		const composed = await compose(cx, prepared, { to, values: {} });
		await showDryRun(cx, composed, sentence(`"${composed.subject}"`), plan);
	}
	return ended;
}

/** A dry run on a database of this machine accepts the request and undoes it; elsewhere, and in a look, it is checked. */
export async function foreseeSending(
	cx: CommandContext,
	request: SendRequest,
	prepared: { idempotencyKey?: string | undefined; files?: Prepared['files'] },
): Promise<ExitCode> {
	if ((await cx.connection()).local !== null && cx.dryRun) return foreseeAcceptance(cx, request, prepared);
	await assertAcceptable(cx, request);
	return exits.done;
}

/** The subject of a trial, in words; warns of variables that nothing gives a value to. */
async function trialSubject(cx: CommandContext, prepared: Prepared, addressee: Addressee): Promise<string> {
	if (isOpaque(prepared)) return `template ${prepared.request.template_unique_id}`;
	const composed = await compose(cx, prepared, addressee);
	await warnOfMissing(cx, composed);
	return `"${composed.subject}"`;
}
