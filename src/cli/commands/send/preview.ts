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
import { addressFault } from '../../verbs/address-faults.js';
import { findInAllLists } from '../subscribers/walk.js';
import { accept, foreseeSending } from './accept.js';
import { uploadAttachments } from './attach.js';
import { findingsIn, isNews, warnOfMissing } from './lint.js';
import type { SendOptions } from './options.js';
import { contentOf, isMadeElsewhere, isOpaque, type Prepared } from './request.js';

export const previewAnswer = answer(
	...['from', 'subject', 'text', 'html', 'attachments', 'missing', 'findings', 'eml'],
);

/** The address of `--preview-as`; null: the first recipient's message is shown. Throws `UsageError`. */
export function shownKey({ previewAs }: Pick<SendOptions, 'previewAs'>): EmailKey | null {
	if (previewAs === undefined) return null;
	const parsed = parseMailbox(previewAs);
	if (parsed === null)
		throw new UsageError(
			`--preview-as: "${previewAs}" is not an address: ${addressFault(previewAs, 'mailbox')}`,
		);
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
	for (const warning of composed.warnings) if (isNews(cx, warning)) await cx.warn(warning);
	return composed;
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
 * uses a person's values and the service is ours.
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
		// A token may send and not read; the message will hold values that it cannot show.
		if (!isForbidden(error)) throw error;
		await cx.warn('this token may not read subscribers: their values are missing here');
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
	request: () => SendRequest;
	sentence: (subject: string) => string;
	plan: Foreseen;
}

export async function showDryRun(
	cx: CommandContext,
	{ prepared, addressee, request, sentence, plan }: Shown,
): Promise<void> {
	const { template_unique_id, subject } = prepared.request;
	if (isOpaque(prepared)) return cx.wouldDo(sentence(`template ${template_unique_id}`), plan);
	if (await isMadeElsewhere(cx)) {
		const send = request();
		const what = `${sentence(`"${subject}"`)}; this deployment makes the message from the request`;
		await cx.wouldDo(what, { ...plan, send });
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

export async function sendTrial(
	cx: CommandContext,
	{
		prepared,
		addressee,
		to,
		options,
	}: { prepared: Prepared; addressee: Addressee; to: string; options: SendOptions },
): Promise<ExitCode> {
	const { cc, bcc, ...shared } = prepared.request;
	const values = Object.entries({ ...addressee.values, ...shared.context });
	// The service refuses a blank value, which is what an unknown person has anyway.
	const context = Object.fromEntries(values.filter(([, value]) => value !== ''));
	const mail = { ...shared, type: 'TRANSACTIONAL' as const, context };
	const request: SendRequest = { ...mail, to: [to] };
	const what = (subject: string) => `a test mail of ${subject} as for ${addressee.to}`;
	if (cx.dryRun) {
		const ended = await foreseeSending(cx, request, prepared);
		await showDryRun(cx, {
			prepared: { ...prepared, request: mail },
			addressee: { to, values: {} },
			request: () => request,
			sentence: (subject) => `send ${what(subject)} to ${to}`,
			plan: { send: request },
		});
		return ended;
	}
	const said = `${what(await trialSubject(cx, prepared, addressee))}, to ${to}`;
	await uploadAttachments(cx, prepared.files);
	const { wait, waitTimeout, connections } = options;
	return accept(cx, request, {
		...{ wait, waitTimeout, connections, isTrial: true },
		print: async (answer) => {
			if (!isTable(cx.out.format)) await cx.note(said);
			await cx.out.document(answer, [said, ...answer.messages.map(({ id }) => `message ${id}`)].join(': '));
		},
	});
}

async function trialSubject(cx: CommandContext, prepared: Prepared, addressee: Addressee): Promise<string> {
	if (isOpaque(prepared)) return `template ${prepared.request.template_unique_id}`;
	const composed = await compose(cx, prepared, addressee);
	await warnOfMissing(cx, composed.missing);
	return `"${composed.subject}"`;
}
