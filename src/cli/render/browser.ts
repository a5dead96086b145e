import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AttachedFile } from '../../api/attachments.js';
import { systemReason } from '../../api/errors.js';
import { escapeHtml } from '../../api/quote.js';
import { withImages } from '../../content/attachments.js';
import type { ComposedMessage } from '../frame/connection.js';
import type { CommandContext } from '../frame/context.js';
import { CliError } from '../frame/errors.js';
import { exits } from '../frame/exit.js';
import { attachmentLines } from './units.js';

/** The page stays, because a browser reads it later. */
export async function openInBrowser({ io }: CommandContext, composed: ComposedMessage) {
	const file = await writePage(composed, io.env['TMPDIR'] || tmpdir());
	const opener = openerOf(io.env, process.platform);
	return { file, opened: opener !== null && (await start(opener, file)) };
}

async function writePage(composed: ComposedMessage, where: string): Promise<string> {
	let folder: string | null = null;
	try {
		folder = await mkdtemp(join(where, 'mailctl-preview-'));
		const file = join(folder, 'message.html');
		await writeFile(file, pageOf(composed), { flag: 'wx', mode: 0o600 });
		return file;
	} catch (cause) {
		if (folder !== null) await rm(folder, { recursive: true, force: true });
		const message = `--preview browser: the page cannot be written: ${systemReason(cause)}`;
		throw new CliError('disk', exits.disk, message, { cause });
	}
}

/**
 * Puts the HTML in a sandboxed frame without scripts, forms or an origin, because others may have written the template.
 */
export function pageOf(message: Pick<ComposedMessage, 'subject' | 'html' | 'text' | 'files'>): string {
	const { subject, html: written, text, files = [] } = message;
	const html = written === null ? null : withImages(written, files);
	const list = attachmentLines(filesOf(message))
		.map((line) => `<li>${escapeHtml(line)}</li>`)
		.join('');
	const body =
		html === null
			? `<pre>${escapeHtml(text)}</pre>`
			: `<iframe title="${escapeHtml(subject)}" sandbox="allow-popups allow-popups-to-escape-sandbox" srcdoc="${escapeHtml(html)}"></iframe>`;
	return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(subject)}</title>
<style>
html, body { height: 100%; margin: 0 }
body { display: flex; flex-direction: column; font: 16px/1.4 system-ui, sans-serif }
h1 { margin: 0; padding: .6em 1em; font-size: 1.1em; border-bottom: 1px solid #8888; overflow-wrap: anywhere }
ul { margin: 0; padding: .6em 1em; font-size: .9em; list-style: none; border-bottom: 1px solid #8888; overflow-wrap: anywhere }
iframe { flex: 1; width: 100%; border: 0 }
pre { margin: 0; padding: 1em; white-space: pre-wrap; overflow-wrap: anywhere }
</style>
<h1>${escapeHtml(subject)}</h1>${list === '' ? '' : `\n<ul>${list}</ul>`}
${body}
</html>
`;
}

export function openerOf(
	env: Readonly<Record<string, string | undefined>>,
	platform: NodeJS.Platform,
): readonly string[] | null {
	const chosen = env['BROWSER']?.split(':')[0]?.trim().split(/\s+/) ?? [];
	if (chosen.length > 0 && chosen[0] !== '') return chosen;
	if (env['SSH_CONNECTION'] !== undefined || env['SSH_TTY'] !== undefined) return null;
	if (platform === 'darwin') return ['open'];
	const hasDisplay = (env['DISPLAY'] ?? '') !== '' || (env['WAYLAND_DISPLAY'] ?? '') !== '';
	return hasDisplay ? ['xdg-open'] : null;
}

function start([command = '', ...words]: readonly string[], file: string): Promise<boolean> {
	const isNamed = words.some((word) => word.includes('%s'));
	const args = isNamed ? words.map((word) => word.replaceAll('%s', file)) : [...words, file];
	return new Promise((resolve) => {
		const child = spawn(command, args, { detached: true, stdio: 'ignore' });
		child.once('error', () => resolve(false));
		child.once('spawn', () => {
			child.unref();
			resolve(true);
		});
	});
}

export function filesOf({ files = [] }: Pick<ComposedMessage, 'files'>): AttachedFile[] {
	return files.map(({ bytes, ...file }) => ({ ...file, size: bytes.length }));
}
