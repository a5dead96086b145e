import { withoutSecrets } from '../../api/quote.js';
import { clean, cleanLines, jsonLine } from '../render/clean.js';
import { hasColor, paint } from '../render/terminal.js';
import { fitSentences } from '../render/wrapping.js';
import { eachHint, hintCommands, hintText, type NamedTarget } from './command-line.js';
import { Declined, Interrupted, OutputClosed } from './errors.js';
import { type Complaint, classify, type ExitCode, exits } from './exit.js';
import { type Format, isMachine } from './globals.js';
import type { Io } from './io.js';

const maxMessage = 500;

export async function printError(
	error: unknown,
	io: Io,
	options: { format: Format | null; debug: boolean; target: NamedTarget },
): Promise<ExitCode> {
	if (error instanceof OutputClosed) return exits.done;
	const complaint = classify(error);
	const { target } = options;
	const text = isMachine(options.format)
		? errorLine(complaint, target)
		: await lines(complaint, error, { io, target });
	await io.stderr.write(withoutSecrets(text));
	if (options.debug && error instanceof Error && !isMachine(options.format))
		await io.stderr.write(`${withoutSecrets(cleanLines(stackOf(error)))}\n`);
	return complaint.exit;
}

function errorLine(complaint: Complaint, target: NamedTarget): string {
	const { code, exit, message, http, details, retryable } = complaint;
	const hint = complaint.hint === null ? null : hintText(complaint.hint, target);
	return jsonLine({ error: { code, exit_code: exit, message, http, details, hint, retryable } });
}

async function lines(
	complaint: Complaint,
	error: unknown,
	{ io, target }: { io: Io; target: NamedTarget },
): Promise<string> {
	const marks = await paint(hasColor(io.stderr, 'auto', io.env));
	const mark = error instanceof Interrupted || error instanceof Declined ? '' : 'error: ';
	const said = [...detailLines(complaint)];
	if (said.length === 0) said.push(complaint.message);
	const errors = said.map((text, at) => {
		const isBelow = isCaret(text) || isCaret(said[at + 1]);
		return `${isBelow ? '       ' : mark}${clean(text.length > maxMessage ? `${text.slice(0, maxMessage)}…` : text)}`;
	});
	const { hint } = complaint;
	const hints = hint === null ? [] : eachHint(hint).map((one) => `hint: ${clean(hintText(one, target))}`);
	const commands = hint === null ? [] : hintCommands(hint, target).map(clean);
	const fitted = await fitSentences([...errors, ...hints].join('\n'), io.stderr, commands);
	return `${fitted.replaceAll(/^error:/gm, marks.red('error:'))}\n`;
}

function detailLines({ details, message }: Complaint): string[] {
	const texts = (details ?? []).map((detail) => {
		if (typeof detail === 'object' && detail !== null && 'path' in detail && 'message' in detail)
			return { field: true, text: `${spokenPath(String(detail.path))}: ${String(detail.message)}` };
		return { field: false, text: typeof detail === 'string' ? detail : JSON.stringify(detail) };
	});
	const [first] = texts;
	if (first === undefined) return [];
	const all = texts.map(({ text }) => text);
	return first.field ? all : [message, ...all];
}

/** Turns the API's `to.0` into `recipient 1`. */
function spokenPath(path: string): string {
	const counted = path.replaceAll(/\.(\d+)(?=\.|$)/g, (_, at: string) => ` ${Number(at) + 1}`);
	return counted.replace(/^to(?= \d)/, 'recipient');
}

function isCaret(text: string | undefined): boolean {
	return text?.trimStart() === '^';
}

function stackOf(error: Error): string {
	const cause = error.cause instanceof Error ? `\ncaused by ${stackOf(error.cause)}` : '';
	return `${error.stack ?? error.message}${cause}`;
}
