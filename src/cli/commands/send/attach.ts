import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { type Attachment, maxAttachedBytes, maxAttachments, nameFault } from '../../../api/attachments.js';
import { need } from '../../../api/capabilities.js';
import type { Content } from '../../../api/messages.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { sizeText } from '../../render/units.js';

export async function readAttachments(cx: CommandContext, paths: readonly string[]): Promise<FileToSend[]> {
	if (paths.length > maxAttachments)
		throw new UsageError(`--attach: ${paths.length} files are more than ${maxAttachments}`);
	const sizes: [path: string, bytes: number][] = [];
	for (const path of paths) {
		if (path === '-') throw new UsageError('--attach: standard input has no name; give a file');
		sizes.push([path, (await stat(path).catch(() => null))?.size ?? 0]);
	}
	// Refuses a file of many gigabytes before it is read.
	assertSize(sizes);
	const files: FileToSend[] = [];
	for (const path of paths) {
		// The size of a device or a pipe is not known beforehand.
		const bytes = await cx.sources.file(path, '--attach').bytes(maxAttachedBytes);
		const name = basename(path);
		const fault = nameFault(name);
		if (fault !== null) throw new UsageError(`--attach: ${JSON.stringify(path)}: ${fault}`);
		const sha256 = createHash('sha256').update(bytes).digest('hex');
		files.push({ name, type: await mediaTypeOf(name), sha256, bytes });
	}
	assertSize(files.map(({ name, bytes }) => [name, bytes.length]));
	return files;
}

function assertSize(sizes: readonly (readonly [path: string, bytes: number])[]): void {
	const bytes = sizes.reduce((sum, [, size]) => sum + size, 0);
	if (bytes <= maxAttachedBytes) return;
	const names = sizes.map(([path]) => path).join(', ');
	throw new UsageError(`--attach: ${names}: larger than ${sizeText(maxAttachedBytes)} together`, {
		hint: 'put large files on a web server, and link to them',
	});
}

export async function assertClear({ html, attachments = [] }: Content): Promise<void> {
	if (attachments.length < 2) return;
	const { cidFaults } = await import('../../../content/attachments.js');
	const [first] = cidFaults(html, attachments).unclear;
	if (first !== undefined)
		throw new UsageError(`--attach: two files have the name ${first}, which the HTML shows; rename one`);
}

export function namedIn(files: readonly FileToSend[]): Attachment[] {
	return files.map(({ name, type, sha256 }) => ({ name, type, sha256 }));
}

/** Uploads each file once, unless the service has it. */
export async function uploadAttachments(
	cx: CommandContext,
	files: readonly FileToSend[] = [],
): Promise<void> {
	if (files.length === 0) return;
	const attachments = await need(await cx.api(), 'attachments', '--attach');
	const { orNull } = await import('../../verbs/resolve.js');
	const call = { signal: cx.signal };
	const each = new Map(files.map((file) => [file.sha256, file]));
	for (const { sha256, bytes } of each.values())
		if ((await orNull(attachments.find(sha256, call))) === null) await attachments.put(sha256, bytes, call);
}

/** A message/rfc822 part may not be in base64 (RFC 2046 s.5.2.1), so attached mails count as unknown. */
export async function mediaTypeOf(name: string): Promise<string> {
	const { detectMimeType } = await import('nodemailer/lib/mime-funcs');
	const type = detectMimeType(name);
	return /^(message|multipart)\//.test(type) ? 'application/octet-stream' : type;
}
