/** `--results FILE`: what became of each message, as CSV, complete or not there at all; the same columns everywhere. */
import { need } from '../../../api/capabilities.js';
import type { MailingResult } from '../../../api/mailings.js';
import type { Message, Uuid } from '../../../api/records.js';
import type { CommandContext } from '../../context.js';
import { CliError } from '../../errors.js';
import { csvCell } from '../../render/cells.js';
import { createOutputFile } from '../../tabular/output-file.js';
import { walk } from '../../walk.js';

/** `line` is empty where recipients come from no file; `code` and `text`: why there is no message, or the last reply. */
export const resultColumns = [
	'line',
	'to',
	'id',
	'state',
	'code',
	'text',
	'attempts',
	'campaign_unique_id',
] as const;

/** A line of results. */
export interface ResultLine extends MailingResult {
	campaign_unique_id: Uuid | null;
}

/** Whether what is staged still can be sent; where it cannot, it is told as canceled. */
export interface ResultsHow {
	isDropped: boolean;
}

/** A write a line would cost a million system calls. */
const blockLength = 64 * 1024;

/** What became of each message. */
export async function writeResults(
	cx: CommandContext,
	path: string,
	which: { ids: readonly Uuid[] } | { campaign: Uuid },
	how: ResultsHow = { isDropped: false },
): Promise<void> {
	async function* lines(): AsyncGenerator<ResultLine> {
		for await (const message of messagesOf(cx, which)) yield lineOf(message);
	}
	await writeLines(cx, path, lines(), how);
}

/** A reader never sees half of it. An older file is replaced. */
export async function writeLines(
	cx: CommandContext,
	path: string,
	lines: AsyncIterable<ResultLine>,
	{ isDropped }: ResultsHow,
): Promise<void> {
	try {
		await write(path, lines, (line) => (isDropped ? told(line) : line));
	} catch (cause) {
		if (!(cause instanceof Error) || !('syscall' in cause)) throw cause;
		const code = 'code' in cause ? String(cause.code) : '';
		throw new CliError('disk', 74, `--results: ${path} cannot be written (${code})`, { cause });
	}
	await cx.note(`results are in ${path}`);
}

/** A command that was stopped still says what it knows; it must not take for ever over it. */
export function signalOfEnd({ signal }: Pick<CommandContext, 'signal'>): AbortSignal {
	return signal.aborted ? AbortSignal.timeout(endMs) : signal;
}

const endMs = 10_000;

/** The reply's code (RFC 5321 s.4.2); null for words without one. */
export function replyCode(text: string | null): string | null {
	return /^([2-5]\d\d)\b/.exec(text ?? '')?.[1] ?? null;
}

async function write(
	path: string,
	lines: AsyncIterable<ResultLine>,
	toldAs: (line: ResultLine) => ResultLine,
): Promise<void> {
	const file = await createOutputFile(path, 'replace');
	try {
		let text = `${resultColumns.join(',')}\r\n`;
		for await (const line of lines) {
			const cells = cellsOf(toldAs(line));
			text += `${cells.map(csvCell).join(',')}\r\n`;
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

/** In the order of the columns. */
function cellsOf({ line, to, id, state, code, text, attempts, campaign_unique_id }: ResultLine): unknown[] {
	return [line, to, id, state, code, text, attempts, campaign_unique_id];
}

/** Its message is gone, and so is its number. */
function told(line: ResultLine): ResultLine {
	return line.state === 'staged' ? { ...line, state: 'canceled', id: null } : line;
}

function lineOf({ to, id, state, last_reply, attempts, campaign_unique_id }: Message): ResultLine {
	const reply = { code: replyCode(last_reply), text: last_reply };
	return { line: null, to, id, state, ...reply, attempts, campaign_unique_id };
}

async function* messagesOf(
	cx: CommandContext,
	which: { ids: readonly Uuid[] } | { campaign: Uuid },
): AsyncGenerator<Message> {
	const messages = await need(await cx.api(), 'messages');
	const signal = signalOfEnd(cx);
	if ('campaign' in which) {
		yield* walk(messages, { campaign_unique_id: which.campaign }, { signal });
		return;
	}
	for (const id of which.ids) yield await messages.get(id, { signal });
}
