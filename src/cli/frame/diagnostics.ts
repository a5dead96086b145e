/**
 * Writes messages to stderr: text for people, or one JSON object per line for machines. `--quiet` hides notes, hints
 * and progress.
 */

import { withoutSecrets } from '../../api/quote.js';
import { clean, jsonLine } from '../render/clean.js';
import { createProgress, type Progress, type StatusLine } from '../render/progress.js';
import type { Paint } from '../render/terminal.js';
import { fitSentences } from '../render/wrapping.js';
import { type Hint, hintCommands, hintText, joinHints, type NamedTarget } from './command-line.js';
import { type Format, isMachine } from './globals.js';

export interface Diagnostics {
	/**
	 * Prints a sentence, or a list of lines. Escapes line breaks within a line, because texts may come from a server or
	 * a file.
	 */
	note(text: string | readonly string[]): Promise<void>;
	hint(hint: Hint): Promise<void>;
	warn(text: string, ...hints: readonly Hint[]): Promise<void>;
	/**
	 * Rewrites one line on a terminal. Otherwise writes a line every ten seconds. `total` is null if unknown. `before`
	 * is the amount that earlier runs have done.
	 */
	progress(label: string, total: number | null, before?: number): Progress;
	/** Keeps a line at the bottom of a terminal; null removes it. Does nothing without a terminal. */
	stand(line: string | null): void;
	readonly trace: ((line: string) => void) | null;
}

interface DiagnosticsOptions {
	format: Format;
	quiet: boolean;
	debug: boolean;
	paint: Paint;
	target: NamedTarget;
	elapsedMs: () => number;
}

export function createDiagnostics(
	stderr: StatusLine,
	{ format, quiet, debug, paint, target, elapsedMs }: DiagnosticsOptions,
): Diagnostics & { takeHints(): Hint[]; end(): Promise<void> } {
	const isJson = isMachine(format);
	const waiting: Hint[] = [];
	const takeHints = () => waiting.splice(0);
	const print = (text: string) => stderr.write(withoutSecrets(text));
	const end = async () => {
		for (const hint of takeHints()) await print(jsonLine({ hint: hintText(hint, target) }));
	};
	const printObject = async (what: Readonly<Record<string, string>>) => {
		await end();
		await print(jsonLine(what));
	};
	const hint = async (what: Hint) => {
		if (quiet) return;
		if (isJson) return void waiting.push(what);
		const text = `hint: ${clean(hintText(what, target))}`;
		const fitted = await fitSentences(text, stderr, hintCommands(what, target).map(clean));
		await print(`${paint.dim(fitted)}\n`);
	};
	const sayProgress = (line: string) => (isJson ? printObject({ progress: line }) : print(`${line}\n`));
	const traced = (line: string) => void print(isJson ? jsonLine({ trace: line }) : `${clean(line)}\n`);
	return {
		note: async (text) => {
			const lines = [text].flat();
			if (quiet) return;
			if (isJson) return printObject({ note: lines.join('\n') });
			await print(`${await fitSentences(lines.map(clean).join('\n'), stderr)}\n`);
		},
		hint,
		warn: async (warning, ...hints) => {
			if (isJson) {
				const joined = hintText(joinHints(hints), target);
				return printObject({ warning, ...(joined !== '' && !quiet && { hint: joined }) });
			}
			const fitted = await fitSentences(`warning: ${clean(warning)}`, stderr);
			await print(`${fitted.replace('warning:', paint.yellow('warning:'))}\n`);
			for (const one of hints) await hint(one);
		},
		trace: debug ? traced : null,
		progress: (label, total, before = 0) =>
			createProgress(stderr, { label: clean(label), total, before, quiet, elapsedMs, say: sayProgress }),
		stand: (line) => {
			if (stderr.canRewrite && !quiet) stderr.stand(line === null ? null : clean(line));
		},
		takeHints,
		end,
	};
}
