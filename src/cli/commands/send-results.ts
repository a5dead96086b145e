/** `--results FILE`: what became of each message, as CSV, complete or not there at all. */
import { open, rename, rm, stat } from 'node:fs/promises';
import { need } from '../../api/capabilities.js';
import type { Message, Uuid } from '../../api/records.js';
import type { CommandContext } from '../context.js';
import { CliError, UsageError } from '../errors.js';
import { csvCell } from '../render/cells.js';
import { walk } from '../walk.js';

/** A write a line would cost a million system calls. */
const blockLength = 64 * 1024;

const header = ['to', 'id', 'state', 'attempts', 'last_reply', 'campaign_unique_id'] as const;

/** Refuses before anything is sent: afterwards nobody could be told what became of it. */
export async function assertWritable(path: string): Promise<void> {
	const partial = `${path}.partial`;
	try {
		await (await open(partial, 'w', 0o600)).close();
		await rm(partial);
		if (await isFolder(path)) throw new UsageError(`--results: ${path} is a directory`);
	} catch (cause) {
		if (cause instanceof UsageError) throw cause;
		const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
		throw new UsageError(`--results: ${path} cannot be written (${code}); nothing was sent`, { cause });
	}
}

async function isFolder(path: string): Promise<boolean> {
	const found = await stat(path).catch(() => null);
	return found?.isDirectory() === true;
}

/** What became of each message. */
export async function writeResults(
	cx: CommandContext,
	path: string,
	which: { ids: readonly Uuid[] } | { campaign: Uuid },
): Promise<void> {
	async function* lines(): AsyncGenerator<string> {
		for await (const message of messagesOf(cx, which))
			yield header.map((key) => csvCell(message[key])).join(',');
	}
	await writeCsv(cx, path, header.join(','), lines());
}

/** Written beside the file, synced and renamed: a reader never sees half of it. An older file is replaced. */
export async function writeCsv(
	cx: CommandContext,
	path: string,
	head: string,
	lines: AsyncIterable<string>,
): Promise<void> {
	const partial = `${path}.partial`;
	try {
		const file = await open(partial, 'w', 0o600);
		try {
			let text = `${head}\r\n`;
			for await (const line of lines) {
				text += `${line}\r\n`;
				if (text.length < blockLength) continue;
				await file.write(text);
				text = '';
			}
			await file.write(text);
			await file.sync();
		} finally {
			await file.close();
		}
		await rename(partial, path);
	} catch (cause) {
		await rm(partial, { force: true });
		if (!(cause instanceof Error) || !('code' in cause) || 'fields' in cause) throw cause;
		throw new CliError('disk', 74, `--results: ${path} cannot be written (${String(cause.code)})`, { cause });
	}
	await cx.note(`results are in ${path}`);
}

async function* messagesOf(
	cx: CommandContext,
	which: { ids: readonly Uuid[] } | { campaign: Uuid },
): AsyncGenerator<Message> {
	const messages = await need(await cx.api(), 'messages');
	if ('campaign' in which) {
		yield* walk(messages, { campaign_unique_id: which.campaign }, { signal: cx.signal });
		return;
	}
	for (const id of which.ids) yield await messages.get(id);
}
