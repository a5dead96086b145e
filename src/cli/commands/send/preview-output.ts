/** What `--preview` and `--eml` print and write: a part of the message for a person, a document for a machine. */

import type { AttachedFile } from '../../../api/attachments.js';
import { systemReason } from '../../../api/errors.js';
import type { ContentFinding } from '../../../content/lint.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { unwritableHint } from '../../frame/exit.js';
import { isMachine } from '../../frame/globals.js';
import { cleanLines } from '../../render/clean.js';
import { answer } from '../../render/columns.js';
import { unchecked } from '../../verbs/dry-run.js';
import type { Found } from './findings.js';
import { findingsIn } from './lint.js';
import type { SendOptions } from './options.js';
import { type Composed, filesBelow, filesOf, sayWhatIsOpen } from './preview.js';
import type { Prepared } from './request.js';

/** The message of one recipient, and to how many the like of it goes. */
export interface Preview {
	composed: Composed;
	prepared: Prepared;
	/** Asked for a machine alone. */
	counts: () => Promise<PreviewCounts>;
}

/** As those of a campaign; null: not all recipients were read. */
export interface PreviewCounts {
	recipients: number | null;
	rejected: number | null;
}

/** The JSON of a look at a message. */
interface PreviewDocument extends PreviewCounts {
	from: string;
	/** The recipient whose message it is. */
	to: string;
	subject: string;
	text: string;
	html: string | null;
	attachments: readonly AttachedFile[];
	/** Variables without a value, which stay as they are written. */
	missing: readonly string[];
	findings: readonly ContentFinding[];
	/** The file of `--eml`. */
	eml?: string;
}

/** Its keys that no other answer of `send` has. */
export const previewAnswer = answer(
	...['from', 'subject', 'text', 'html', 'attachments', 'missing', 'findings', 'eml'],
);

/** By what was found; null: not all recipients were read. */
export function countsOf(found: Found | null): PreviewCounts {
	if (found === null) return { recipients: null, rejected: null };
	const { findings, of } = found;
	return { recipients: of - findings.rejected, rejected: findings.rejected };
}

/** Writes what `--eml` and `--preview` ask for. */
export async function showPreview(
	cx: CommandContext,
	shown: Preview,
	{ preview, eml }: Pick<SendOptions, 'preview' | 'eml'>,
): Promise<void> {
	const { composed } = shown;
	if (preview === 'html' && composed.html === null)
		throw new UsageError('--preview html: the message has no HTML', { hint: '--preview text' });
	await sayWhatIsOpen(cx, composed);
	if ((await cx.connection()).local === null) await cx.note(unchecked);
	if (eml !== undefined) await printEml(cx, composed, eml);
	if (preview !== 'browser' && eml !== '-' && isMachine(cx.out.format))
		return cx.out.document(await documentOf(cx, shown, eml));
	if (preview === undefined) return;
	await sayWhoseItIs(cx, composed);
	if (preview === 'browser') {
		const { openInBrowser } = await import('./browser.js');
		const page = await openInBrowser(cx, composed);
		const how = page.opened ? 'opened in a browser' : 'no browser to open here; the message is in';
		return cx.out.document(page, `${how}: ${page.file}`);
	}
	const below = filesBelow(composed).join('\n');
	const withFiles = below === '' ? composed.text : `${composed.text.trimEnd()}\n${below}\n`;
	const part = preview === 'html' ? (composed.html ?? '') : withFiles;
	const text = cx.io.stdout.isTTY ? cleanLines(part) : part;
	await cx.out.raw(text.endsWith('\n') ? text : `${text}\n`);
}

async function printEml(cx: CommandContext, { raw }: Composed, eml: string): Promise<void> {
	if (eml === '-')
		return cx.out.raw(cx.io.stdout.isTTY ? cleanLines(raw.toString('utf8').replaceAll('\r\n', '\n')) : raw);
	await writeNew(eml, raw);
	await cx.note(`wrote ${eml}`);
}

async function documentOf(
	cx: CommandContext,
	{ composed, prepared, counts }: Preview,
	eml: string | undefined,
): Promise<PreviewDocument> {
	const { from, to, subject, text, html, missing } = composed;
	return {
		...{ from, to, subject, text, html },
		attachments: filesOf(composed),
		missing,
		findings: await findingsIn(cx, prepared),
		...(await counts()),
		...(eml !== undefined && { eml }),
	};
}

/** Its headers for a person, beside the part; on a terminal a blank line follows. */
async function sayWhoseItIs(cx: CommandContext, { from, to, subject }: Composed): Promise<void> {
	const lines = [`From: ${from}`, `To: ${to}`, `Subject: ${subject}`];
	await cx.note([...lines, ...(cx.io.stdout.isTTY ? [''] : [])]);
}

async function writeNew(path: string, bytes: Buffer): Promise<void> {
	const { rm, writeFile } = await import('node:fs/promises');
	await writeFile(path, bytes, { flag: 'wx', mode: 0o600 }).catch(async (cause: unknown) => {
		const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
		if (code === 'EEXIST') throw new UsageError(`--eml: ${path} is there already`, { cause });
		// Half a file would be in the way of the next try.
		await rm(path, { force: true }).catch(() => undefined);
		const { otherDisk, refusalOf } = await import('../../../tables/output-file.js');
		const isFull = refusalOf(cause, path)?.code === 'disk_full';
		const hint = isFull ? otherDisk : unwritableHint(path, 'name a file in another folder');
		throw new CliError('disk', 74, `--eml: ${path} cannot be written: ${systemReason(cause)}`, {
			...(hint !== null && { hint }),
			cause,
		});
	});
}
