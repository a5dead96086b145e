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
		const found = await stat(path).catch(() => null);
		if (found?.isDirectory()) throw new UsageError(`--attach: ${path} is a directory`);
		assertName(path);
		sizes.push([path, found?.size ?? 0]);
	}
	// A file of many gigabytes is refused before it is read.
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

export async function assertClear({ html, attachments = [] }: Content): Promise<void> {
	if (attachments.length < 2) return;
	const { cidFaults } = await import('../../../content/attachments.js');
	const [first] = cidFaults(html, attachments).unclear;
	if (first !== undefined)
		throw new UsageError(`--attach: the HTML has cid:${first}, and two files are called so`, {
			hint: 'rename one of them',
		});
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

const types: Readonly<Record<string, string>> = {
	'application/gzip': 'gz tgz',
	'application/json': 'json map',
	'application/msword': 'doc dot',
	'application/pdf': 'pdf',
	'application/rtf': 'rtf',
	'application/vnd.apple.keynote': 'keynote',
	'application/vnd.apple.numbers': 'numbers',
	'application/vnd.apple.pages': 'pages',
	'application/vnd.ms-excel': 'xls xlt',
	'application/vnd.ms-powerpoint': 'ppt pps pot',
	'application/vnd.oasis.opendocument.presentation': 'odp',
	'application/vnd.oasis.opendocument.spreadsheet': 'ods',
	'application/vnd.oasis.opendocument.text': 'odt',
	'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
	'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
	'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
	'application/x-7z-compressed': '7z',
	'application/x-bzip2': 'bz2',
	'application/x-tar': 'tar',
	'application/xml': 'xml xsd',
	'application/yaml': 'yaml yml',
	'application/zip': 'zip',
	'audio/mp4': 'm4a',
	'audio/mpeg': 'mp3',
	'audio/wav': 'wav',
	'image/gif': 'gif',
	'image/heic': 'heic',
	'image/jpeg': 'jpg jpeg jpe',
	'image/png': 'png apng',
	'image/svg+xml': 'svg',
	'image/tiff': 'tif tiff',
	'image/webp': 'webp',
	'text/calendar': 'ics ifb',
	'text/csv': 'csv',
	'text/html': 'html htm',
	'text/markdown': 'md markdown',
	'text/plain': 'txt text log conf ini diff patch',
	'text/tab-separated-values': 'tsv',
	'text/vcard': 'vcf vcard',
	'video/mp4': 'mp4 m4v',
	'video/quicktime': 'mov',
	'video/webm': 'webm',
};

const byEnd: ReadonlyMap<string, string> = new Map(
	Object.entries(types).flatMap(([type, ends]) => ends.split(' ').map((end) => [end, type] as const)),
);

/** Mails count as unknown: a message/rfc822 may not be in base64 (RFC 2046 s.5.2.1). */
export function mediaTypeOf(name: string): string {
	const end = /\.([^.]{1,16})$/.exec(name)?.[1]?.toLowerCase() ?? '';
	return byEnd.get(end) ?? 'application/octet-stream';
}
