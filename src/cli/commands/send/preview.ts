/** Composes a message for one recipient before it is sent, and shows it or sends it to another address as a test. */

import { stat } from 'node:fs/promises';
import { type EmailKey, emailKey, parseMailbox } from '../../../api/address.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { ComposedMessage } from '../../frame/connection.js';
import { type CommandContext, type Foreseen, unchecked } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { isMachine, isTable } from '../../frame/globals.js';
import { filesOf, openInBrowser } from '../../render/browser.js';
import { cleanLines } from '../../render/clean.js';
import { answer } from '../../render/columns.js';
import { attachmentLines } from '../../render/units.js';
import { noAddress } from '../../verbs/address-faults.js';
import { accept, deliverSent, foreseeSending, sayWhoGetsNone } from './delivery.js';
import { Draft, type First, isMadeElsewhere, warnOfMissing } from './draft.js';
import type { SendOptions } from './options.js';

export const previewAnswer = answer(
	...['from', 'subject', 'text', 'html', 'attachments', 'missing', 'findings', 'eml'],
);

/** The address of `--preview-as`; null to show the first recipient's message. Throws `UsageError`. */
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

interface DryRun extends First {
	sentence: (subject: string) => string;
	plan: Foreseen;
}

export async function showDryRun(cx: CommandContext, { sentence, plan, ...first }: DryRun): Promise<void> {
	const { draft, addressee } = first;
	const { template_unique_id, subject } = draft.request;
	if (draft.isOpaque) return cx.wouldDo(sentence(`template ${template_unique_id}`), plan);
	if (await isMadeElsewhere(cx)) {
		const send = first.request ?? requestFor(first);
		await cx.wouldDo(`${sentence(`"${subject}"`)} with this request`, { ...plan, send });
		if (isTable(cx.out.format)) await cx.out.raw(`${cleanLines(JSON.stringify(send, null, 2))}\n`);
		return;
	}
	const composed = await draft.compose(addressee);
	await sayOpenParts(cx, composed);
	const message = composed.withoutFiles.toString('latin1');
	const attachments = filesOf(composed);
	const what = sentence(`"${(first.request === undefined ? draft.content : composed).subject}"`);
	await cx.wouldDo(what, { ...plan, message, ...(attachments.length > 0 && { attachments }) });
	if (!isTable(cx.out.format)) return;
	const [head = ''] = message.split('\r\n\r\n', 1);
	const lines = [head.replaceAll('\r\n', '\n'), '', composed.text.trimEnd(), ...filesBelow(composed)];
	await cx.out.raw(`${cleanLines(lines.join('\n'))}\n`);
}

function requestFor({ draft, addressee: { to, values } }: First): SendRequest {
	const { context: shared, ...rest } = draft.request;
	const all = Object.entries({ email: to, ...values, ...shared });
	const context = Object.fromEntries(all.filter(([name]) => draft.names.includes(name)));
	return { ...rest, to: [to], ...(Object.keys(context).length > 0 && { context }) };
}

function filesBelow(composed: ComposedMessage): string[] {
	const files = filesOf(composed);
	return files.length === 0 ? [] : ['', ...attachmentLines(files)];
}

async function sayOpenParts(cx: CommandContext, { missing, standsIn }: ComposedMessage): Promise<void> {
	await warnOfMissing(cx, missing);
	if (standsIn !== null) await cx.note(standsIn);
}

export async function showPreview(
	cx: CommandContext,
	{ draft, addressee }: First,
	counts: { recipients: number | null; rejected: number | null },
	{ preview, eml }: Pick<SendOptions, 'preview' | 'eml'>,
): Promise<void> {
	const composed = await draft.compose(addressee);
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
			findings: await draft.findings(),
			...counts,
			...(eml !== undefined && { eml }),
		});
	if (preview === undefined) return;
	await cx.note([`From: ${from}`, `To: ${to}`, `Subject: ${subject}`, ...(isTTY ? [''] : [])]);
	if (preview === 'browser') {
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
	const { writeOutputFile } = await import('../../../tables/output-file.js');
	await writeOutputFile(path, 'replace', [bytes]);
	await cx.note(`wrote ${path}`);
}

export async function sendTest(cx: CommandContext, first: First, to: string, options: SendOptions) {
	const { draft, addressee } = first;
	const { cc, bcc, ...shared } = draft.request;
	const values = Object.entries({ ...addressee.values, ...shared.context });
	// Omit empty values: the service refuses them, and fills in empty text for a recipient without values.
	const context = Object.fromEntries(values.filter(([, value]) => value !== ''));
	const mail = { ...shared, type: 'TRANSACTIONAL' as const, context };
	const request: SendRequest = { ...mail, to: [to] };
	const what = (subject: string) => `a test of ${subject} to ${to}, as ${addressee.to} would get it`;
	if (cx.dryRun) {
		const ended = await foreseeSending(cx, request, draft.files);
		await showDryRun(cx, {
			draft: new Draft(cx, { ...draft, request: mail }),
			addressee: { to, values: {} },
			request,
			sentence: (subject) => `send ${what(subject)}`,
			plan: { send: request },
		});
		return ended;
	}
	const said = what(await subjectOf(cx, first));
	const sent = await accept(cx, request, draft.files, { isTest: true });
	if (!isTable(cx.out.format)) await cx.note(said);
	const ids = sent.answer.messages.map(({ id }) => `message ${id}`);
	await cx.out.document(sent.answer, [said, ...ids].join(': '));
	await sayWhoGetsNone(cx, request, sent.answer);
	// `--rate` and `--results` apply only to the campaign.
	return deliverSent(cx, sent, { ...options, rate: undefined, results: undefined });
}

async function subjectOf(cx: CommandContext, { draft, addressee }: First): Promise<string> {
	if (draft.isOpaque) return `template ${draft.request.template_unique_id}`;
	const composed = await draft.compose(addressee);
	await warnOfMissing(cx, composed.missing);
	return `"${composed.subject}"`;
}
