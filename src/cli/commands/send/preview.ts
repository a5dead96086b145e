/** `--preview`, `--eml` and `--dry-run`: the finished message for one recipient, and nothing is accepted. */

import { emailKey } from '../../../api/address.js';
import { type FieldErrors, invalid } from '../../../api/errors.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { Subscriber } from '../../../api/records.js';
import type { ComposedMessage } from '../../connection.js';
import type { CommandContext } from '../../context.js';
import { CliError, UsageError } from '../../errors.js';
import { explained } from '../../refusals.js';
import { cleanLines } from '../../render/clean.js';
import { walk } from '../../walk.js';
import { sendHint } from './hints.js';
import type { SendOptions } from './options.js';
import { contentOf, isOpaque, type Prepared } from './request.js';

/** Whom the message is composed for: an address, or a subscriber with what is known of him. */
export type Addressee = { to: string; subscriber: Subscriber | null; email_reason: string | null };

export function wantsPreview(options: Pick<SendOptions, 'preview' | 'eml'>): boolean {
	return options.preview !== undefined || options.eml !== undefined;
}

/** A preview of what would be refused would be a lie: the request is checked as the service checks it. */
export async function assertAcceptable(cx: CommandContext, request: SendRequest): Promise<void> {
	const { sendFields } = await import('../../../api/messages.js');
	const parsed = sendFields.parse(request);
	const refused = parsed.kind === 'valid' ? await unverified(cx, parsed.value.from_key) : parsed.errors;
	if (refused !== null) await explained(Promise.reject(invalid(refused)), { input: request, hint: sendHint });
}

/** Which addresses a deployment verified is told by its extension alone; without it nothing is held against one. */
async function unverified(cx: CommandContext, key: string): Promise<FieldErrors | null> {
	const { ext } = await (await cx.api()).capabilities();
	const { senders } = ext;
	if (senders === undefined) return null;
	for await (const { email } of walk(senders, {}, { signal: cx.signal })) {
		if (emailKey(email) === key) return null;
	}
	return { from: [{ code: 'invalid', message: 'Sender address is not verified.' }] };
}

/** The finished message. Throws `UsageError` where only the service knows what it says. */
export async function compose(
	cx: CommandContext,
	prepared: Prepared,
	addressee: Addressee,
): Promise<ComposedMessage> {
	const { request } = prepared;
	if (isOpaque(prepared))
		throw new UsageError(
			'the message cannot be shown: this deployment does not tell what is in its templates',
		);
	const connection = await cx.connection();
	const composed = await connection.compose({
		from: typeof request.from === 'string' ? request.from : (request.from[0] ?? ''),
		to: addressee.to,
		...contentOf(prepared),
		bulk: request.type === 'BULK',
		reply_to: request.reply_to ?? [],
		cc: request.cc ?? [],
		headers: request.headers ?? {},
		variables: { ...variablesOf(addressee), ...request.context },
	});
	for (const warning of composed.warnings) await cx.warn(warning);
	return composed;
}

/** A dry run: machines get the plan and the whole message, a person its headers and what it says. */
export async function showDryRun(
	cx: CommandContext,
	composed: ComposedMessage,
	what: string,
	plan: object,
): Promise<void> {
	await warnOfMissing(cx, composed);
	await cx.wouldDo(what, { ...plan, message: composed.raw.toString('latin1') });
	if (cx.out.format !== 'table' && cx.out.format !== 'wide') return;
	const [head = ''] = composed.raw.toString('latin1').split('\r\n\r\n', 1);
	await cx.out.raw(`${cleanLines(`${head.replaceAll('\r\n', '\n')}\n\n${composed.text.trimEnd()}`)}\n`);
}

/** Of what stays as `#name#` in the message. */
export function warnOfMissing(cx: CommandContext, { missing }: ComposedMessage): Promise<void> {
	if (missing.length === 0) return Promise.resolve();
	return cx.warn(`no value for ${missing.map((name) => `#${name}#`).join(', ')}`);
}

/** Writes what `--eml` and `--preview` ask for. */
export async function showPreview(
	cx: CommandContext,
	composed: ComposedMessage,
	{ preview, eml }: Pick<SendOptions, 'preview' | 'eml'>,
): Promise<void> {
	if (preview === 'html' && composed.html === null)
		throw new UsageError('--preview html: the message has no HTML', { hint: '--preview text' });
	await warnOfMissing(cx, composed);
	if (eml !== undefined && eml !== '-') await writeNew(eml, composed.raw);
	if (eml === '-')
		await cx.out.raw(
			cx.io.stdout.isTTY ? cleanLines(composed.raw.toString('utf8').replaceAll('\r\n', '\n')) : composed.raw,
		);
	if (eml !== undefined && eml !== '-') await cx.note(`wrote ${eml}`);
	if (preview === undefined) return;
	const part = preview === 'html' ? (composed.html ?? '') : composed.text;
	const text = cx.io.stdout.isTTY ? cleanLines(part) : part;
	await cx.out.raw(text.endsWith('\n') ? text : `${text}\n`);
}

async function writeNew(path: string, bytes: Buffer): Promise<void> {
	const { writeFile } = await import('node:fs/promises');
	await writeFile(path, bytes, { flag: 'wx' }).catch((cause: unknown) => {
		const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
		if (code === 'EEXIST') throw new UsageError(`--eml: ${path} is there already`, { cause });
		throw new CliError('disk', 74, `--eml: ${path} cannot be written (${code})`, { cause });
	});
}

function variablesOf({ to, subscriber, email_reason }: Addressee): Record<string, string> {
	const meta = Object.entries(subscriber?.meta ?? {}).filter(([, value]) => value !== null);
	return {
		email: to,
		name: subscriber?.name ?? '',
		email_reason: email_reason ?? '',
		...Object.fromEntries(meta.map(([key, value]) => [key, String(value)])),
	};
}
