import { stat } from 'node:fs/promises';
import { type EmailKey, emailKey, parseAddress, parseMailbox } from '../../../api/address.js';
import type { AttachedFile } from '../../../api/attachments.js';
import { isForbidden } from '../../../api/errors.js';
import type { SendRequest } from '../../../api/inputs.js';
import { builtInVariables } from '../../../api/inputs.js';
import type { Subscriber } from '../../../api/records.js';
import { usedVariables, variableNames } from '../../../api/variables.js';
import type { ComposedMessage } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { type Foreseen, unchecked } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { isMachine, isTable } from '../../frame/globals.js';
import { cleanLines } from '../../render/clean.js';
import { answer } from '../../render/columns.js';
import { attachmentLines } from '../../render/units.js';
import { noAddress } from '../../verbs/address-faults.js';
import { findInAllLists } from '../subscribers/walk.js';
import { accept, foreseeSending } from './accept.js';
import { uploadAttachments } from './attach.js';
import {
	contentOf,
	findingsIn,
	isMadeElsewhere,
	isNews,
	isOpaque,
	type Prepared,
	warnOfMissing,
} from './content.js';
import type { SendOptions } from './options.js';

export const previewAnswer = answer(
	...['from', 'subject', 'text', 'html', 'attachments', 'missing', 'findings', 'eml'],
);

/** The address of `--preview-as`. Null: the message of the first recipient is shown. Throws `UsageError`. */
export function shownKey({ previewAs }: Pick<SendOptions, 'previewAs'>): EmailKey | null {
	if (previewAs === undefined) return null;
	const parsed = parseMailbox(previewAs);
	if (parsed === null) throw new UsageError(`--preview-as: ${noAddress(previewAs, 'mailbox')}`);
	return parsed.key;
}

export function isShown(key: EmailKey | null, to: string): boolean {
	return key === null || emailKey(parseMailbox(to)?.address ?? to) === key;
}

export function notAmong({ previewAs = '' }: Pick<SendOptions, 'previewAs'>, where: string): CliError {
	return new CliError('not_found', exits.notFound, `--preview-as: ${previewAs} is not among ${where}`);
}

export async function compose(
	cx: CommandContext,
	prepared: Prepared,
	{ to, values }: Addressee,
): Promise<ComposedMessage> {
	const { request } = prepared;
	if (isOpaque(prepared))
		throw new UsageError('the message cannot be shown: this service does not show its templates');
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
	for (const warning of composed.warnings) if (isNews(cx, warning)) await cx.warn(warning);
	return composed;
}

/** `values`: the variables of the person; the context of the request wins over them. */
export interface Addressee {
	to: string;
	values: Readonly<Record<string, string>>;
}

export function asSubscriber({ email, name, meta }: Subscriber, email_reason: string): Addressee {
	const fields = Object.entries(meta).filter(([, value]) => value !== null && typeof value !== 'object');
	const values = Object.fromEntries(fields.map(([key, value]) => [key, String(value)]));
	return { to: email, values: { name, email_reason, ...values } };
}

/** The subscriber of the request's list; without a list, the only one with the address. Other services are not asked. */
export async function addresseeOf(cx: CommandContext, prepared: Prepared, text: string): Promise<Addressee> {
	const to = parseAddress(text)?.address ?? text;
	if (await isMadeElsewhere(cx)) return { to, values: {} };
	const unknown = { to, values: { name: '', email_reason: '' } };
	if (isOpaque(prepared) || !usesPerson(prepared)) return unknown;
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
		if (!isForbidden(error)) throw error;
		await cx.warn('this token may not read subscribers, so their values are missing here');
		return unknown;
	}
}

function usesPerson(prepared: Prepared): boolean {
	const known = builtInVariables.filter((name) => name !== 'name' && name !== 'email_reason');
	const given = new Set<string>([...known, ...Object.keys(prepared.request.context ?? {})]);
	return variableNames(usedVariables(contentOf(prepared))).some((name) => !given.has(name));
}

interface Shown {
	prepared: Prepared;
	addressee: Addressee;
	request?: SendRequest;
	sentence: (subject: string) => string;
	plan: Foreseen;
}

/** Another service makes the message itself, so the request is shown instead. */
export async function showDryRun(
	cx: CommandContext,
	{ prepared, addressee, request, sentence, plan }: Shown,
): Promise<void> {
	const { template_unique_id, subject } = prepared.request;
	if (isOpaque(prepared)) return cx.wouldDo(sentence(`template ${template_unique_id}`), plan);
	if (await isMadeElsewhere(cx)) {
		const send = request ?? requestFor(prepared, addressee);
		await cx.wouldDo(`${sentence(`"${subject}"`)} with this request`, { ...plan, send });
		if (isTable(cx.out.format)) await cx.out.raw(`${cleanLines(JSON.stringify(send, null, 2))}\n`);
		return;
	}
	const composed = await compose(cx, prepared, addressee);
	await sayOpenParts(cx, composed);
	const message = composed.withoutFiles.toString('latin1');
	const attachments = filesOf(composed);
	const what = sentence(`"${composed.subject}"`);
	await cx.wouldDo(what, { ...plan, message, ...(attachments.length > 0 && { attachments }) });
	if (!isTable(cx.out.format)) return;
	const [head = ''] = message.split('\r\n\r\n', 1);
	const lines = [head.replaceAll('\r\n', '\n'), '', composed.text.trimEnd(), ...filesBelow(composed)];
	await cx.out.raw(`${cleanLines(lines.join('\n'))}\n`);
}

/** The request of one recipient of a campaign, with the variables that its content uses. */
function requestFor({ request, template }: Prepared, { to, values }: Addressee): SendRequest {
	const { context: shared, ...rest } = request;
	const used = variableNames(usedVariables(contentOf({ request, template })));
	const all = { email: to, ...values, ...shared };
	const context = Object.fromEntries(Object.entries(all).filter(([name]) => used.includes(name)));
	return { ...rest, to: [to], ...(Object.keys(context).length > 0 && { context }) };
}

function filesBelow(composed: ComposedMessage): string[] {
	const files = filesOf(composed);
	return files.length === 0 ? [] : ['', ...attachmentLines(files)];
}

function filesOf({ files = [] }: ComposedMessage): AttachedFile[] {
	return files.map(({ bytes, ...file }) => ({ ...file, size: bytes.length }));
}

async function sayOpenParts(cx: CommandContext, { missing, standsIn }: ComposedMessage): Promise<void> {
	await warnOfMissing(cx, missing);
	if (standsIn !== null) await cx.note(standsIn);
}

interface Preview {
	composed: ComposedMessage;
	prepared: Prepared;
	counts: { recipients: number | null; rejected: number | null };
}

export async function showPreview(
	cx: CommandContext,
	{ composed, prepared, counts }: Preview,
	{ preview, eml }: Pick<SendOptions, 'preview' | 'eml'>,
): Promise<void> {
	const { from, to, subject, text, html, missing } = composed;
	if (preview === 'html' && html === null)
		throw new UsageError('--preview html: the message has no HTML; use --preview text');
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
	await cx.note([`From: ${from}`, `To: ${to}`, `Subject: ${subject}`, ...(isTTY ? [''] : [])]);
	if (preview === 'browser') {
		const { openInBrowser } = await import('./browser.js');
		const page = await openInBrowser(cx, composed);
		const how = page.opened ? 'opened in a browser' : 'no browser found; open this file';
		return cx.out.document(page, `${how}: ${page.file}`);
	}
	const below = filesBelow(composed).join('\n');
	const withFiles = below === '' ? text : `${text.trimEnd()}\n${below}\n`;
	const part = preview === 'html' ? (html ?? '') : withFiles;
	const shown = isTTY ? cleanLines(part) : part;
	await cx.out.raw(shown.endsWith('\n') ? shown : `${shown}\n`);
}

async function writeNew(cx: CommandContext, path: string, bytes: Buffer): Promise<void> {
	if ((await stat(path).catch(() => null))?.isFile()) throw new UsageError(`--eml: ${path} exists already`);
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

interface TestMessage {
	prepared: Prepared;
	addressee: Addressee;
	to: string;
	options: SendOptions;
}

/** Sends the message of `addressee` to another address, as transactional mail. */
export async function sendTest(
	cx: CommandContext,
	{ prepared, addressee, to, options }: TestMessage,
): Promise<ExitCode> {
	const { cc, bcc, ...shared } = prepared.request;
	const values = Object.entries({ ...addressee.values, ...shared.context });
	// The service refuses a blank value, which is what an unknown person has anyway.
	const context = Object.fromEntries(values.filter(([, value]) => value !== ''));
	const mail = { ...shared, type: 'TRANSACTIONAL' as const, context };
	const request: SendRequest = { ...mail, to: [to] };
	const what = (subject: string) => `a test message of ${subject} for ${addressee.to} to ${to}`;
	if (cx.dryRun) {
		const ended = await foreseeSending(cx, request, prepared);
		const shown = { prepared: { ...prepared, request: mail }, addressee: { to, values: {} }, request };
		const sentence = (subject: string) => `send ${what(subject)}`;
		await showDryRun(cx, { ...shown, sentence, plan: { send: request } });
		return ended;
	}
	const said = what(await subjectOf(cx, prepared, addressee));
	await uploadAttachments(cx, prepared.files);
	const { wait, waitTimeout, connections } = options;
	return accept(cx, request, {
		...{ wait, waitTimeout, connections, isTest: true },
		print: async (answer) => {
			if (!isTable(cx.out.format)) await cx.note(said);
			await cx.out.document(answer, [said, ...answer.messages.map(({ id }) => `message ${id}`)].join(': '));
		},
	});
}

async function subjectOf(cx: CommandContext, prepared: Prepared, addressee: Addressee): Promise<string> {
	if (isOpaque(prepared)) return `template ${prepared.request.template_unique_id}`;
	const composed = await compose(cx, prepared, addressee);
	await warnOfMissing(cx, composed.missing);
	return `"${composed.subject}"`;
}
