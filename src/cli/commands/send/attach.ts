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
import { mediaTypeOf } from './media-types.js';

/** In the order given. Throws `UsageError` that names the file. */
export async function readAttachments(cx: CommandContext, paths: readonly string[]): Promise<FileToSend[]> {
	if (paths.length > maxAttachments)
		throw new UsageError(`--attach: ${paths.length} files are more than ${maxAttachments}`);
	const sizes: [path: string, bytes: number][] = [];
	for (const path of paths) {
		if (path === '-') throw new UsageError('--attach: standard input has no name; give a file');
		const found = await stat(path).catch(() => null);
		if (found?.isDirectory()) throw new UsageError(`--attach: ${path} is a directory`);
		assertName(path);
		sizes.push([path, found?.size ?? 0]);
	}
	// Before any is read: one of many gigabytes is not.
	assertSize(sizes);
	const files: FileToSend[] = [];
	for (const path of paths) {
		// A device or a pipe says no size beforehand.
		const bytes = await cx.sources.file(path, '--attach').bytes(maxAttachedBytes);
		const name = basename(path);
		const sha256 = createHash('sha256').update(bytes).digest('hex');
		files.push({ name, type: mediaTypeOf(name), sha256, bytes });
	}
	assertSize(files.map(({ name, bytes }) => [name, bytes.length]));
	return files;
}

function assertName(path: string): void {
	const name = basename(path);
	const fault = nameFault(name);
	if (fault === null) return;
	const sentence = fault.charAt(0).toLowerCase() + fault.slice(1).replace(/\.$/, '');
	throw new UsageError(`--attach: ${JSON.stringify(path)}: ${sentence}`);
}

function assertSize(sizes: readonly (readonly [path: string, bytes: number])[]): void {
	const bytes = sizes.reduce((sum, [, size]) => sum + size, 0);
	if (bytes <= maxAttachedBytes) return;
	const names = sizes.map(([path]) => path).join(', ');
	throw new UsageError(
		`--attach: ${names}: more than ${sizeText(maxAttachedBytes)}, the most that a mail may have`,
		{ hint: 'put what is large on a web server, and link to it' },
	);
}

/** Throws `UsageError` for a `cid:` link that two of the files are meant by. */
export async function assertClear({ html, attachments = [] }: Content): Promise<void> {
	if (attachments.length < 2) return;
	const { cidFaults } = await import('../../../content/attachments.js');
	const [first] = cidFaults(html, attachments).unclear;
	if (first !== undefined)
		throw new UsageError(`--attach: the HTML has cid:${first}, and two files are called so`, {
			hint: 'rename one of them',
		});
}

/** As a request names it. */
export function namedIn(files: readonly FileToSend[]): Attachment[] {
	return files.map(({ name, type, sha256 }) => ({ name, type, sha256 }));
}

/** What is not there yet; each once. */
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
