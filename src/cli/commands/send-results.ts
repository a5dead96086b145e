/** `--results FILE`: what became of each message, as CSV, complete or not there at all. */
import { stat } from 'node:fs/promises';
import { need } from '../../api/capabilities.js';
import type { Message, Uuid } from '../../api/records.js';
import type { CommandContext } from '../context.js';
import { CliError, UsageError } from '../errors.js';
import { csvCell } from '../render/cells.js';
import { TableError } from '../tabular/finding.js';
import { createOutputFile } from '../tabular/output-file.js';
import { walk } from '../walk.js';

/** A write a line would cost a million system calls. */
const blockLength = 64 * 1024;

const header = ['to', 'id', 'state', 'attempts', 'last_reply', 'campaign_unique_id'] as const;

/** Refuses before anything is sent: afterwards nobody could be told what became of it. */
export async function assertWritable(path: string): Promise<void> {
	if (path === '-') throw new UsageError('--results takes a file: standard output has the answer');
	const there = await stat(path).catch(() => null);
	// A pipe is opened once, by who has something to say: its reader takes an end for the end.
	if (there !== null && !there.isFile() && !there.isDirectory()) return;
	try {
		await (await createOutputFile(path, 'replace')).discard();
	} catch (cause) {
		const what = cause instanceof TableError ? cause.message : `${path} cannot be written (${codeOf(cause)})`;
		throw new UsageError(`--results: ${what}; nothing was sent`, { cause });
	}
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

/** A reader never sees half of it. An older file is replaced. */
export async function writeCsv(
	cx: CommandContext,
	path: string,
	head: string,
	lines: AsyncIterable<string>,
): Promise<void> {
	try {
		await writeLines(path, head, lines);
	} catch (cause) {
		if (!(cause instanceof Error) || !('syscall' in cause)) throw cause;
		throw new CliError('disk', 74, `--results: ${path} cannot be written (${codeOf(cause)})`, { cause });
	}
	await cx.note(`results are in ${path}`);
}

async function writeLines(path: string, head: string, lines: AsyncIterable<string>): Promise<void> {
	const file = await createOutputFile(path, 'replace');
	try {
		let text = `${head}\r\n`;
		for await (const line of lines) {
			text += `${line}\r\n`;
			if (text.length < blockLength) continue;
			await file.write(text);
			text = '';
		}
		await file.write(text);
		await file.finish();
	} finally {
		await file.discard();
	}
}

function codeOf(error: unknown): string {
	return error instanceof Error && 'code' in error ? String(error.code) : '';
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
