/**
 * stderr: all messages beside the data. Cleaned lines for people, an object a line in a machine's format. `--quiet`
 * leaves only warnings. Passwords of URLs are hidden.
 */

import { withoutSecrets } from '../../api/quote.js';
import { clean, jsonLine } from '../render/clean.js';
import { createProgress, type Progress, type StatusLine } from '../render/progress.js';
import { fitSentences } from '../render/sentences.js';
import type { Paint } from '../render/terminal.js';
import { type Hint, hintCommands, hintText, joinHints, type NamedTarget } from './command-line.js';
import { type Format, isMachine } from './globals.js';

export interface Diagnostics {
	/** A sentence on a past or current event, or its lines: a line break within one is a stranger's, and is spelled. */
	note(text: string | readonly string[]): Promise<void>;
	hint(hint: Hint): Promise<void>;
	warn(text: string, ...hints: readonly Hint[]): Promise<void>;
	/**
	 * Rewrites one line on a terminal, else a line every ten seconds. `total` null: unknown. `before`: amount done by
	 * earlier runs, 0 unless given.
	 */
	progress(label: string, total: number | null, before?: number): Progress;
	/** A line at the bottom of a terminal, in place of the one before; null takes it away. Nothing elsewhere. */
	stand(line: string | null): void;
	readonly trace: ((line: string) => void) | null;
}

export interface CallDiagnostics extends Diagnostics {
	takeHints(): Hint[];
	end(): Promise<void>;
}

export interface DiagnosticsOptions {
	format: Format;
	quiet: boolean;
	debug: boolean;
	paint: Paint;
	target: NamedTarget;
	elapsedMs: () => number;
}

/** For one call. Texts may hold a stranger’s words: terminal controls are taken out here, and long lines broken. */
export function createDiagnostics(stderr: StatusLine, options: DiagnosticsOptions): CallDiagnostics {
	return isMachine(options.format) ? toMachines(stderr, options) : toPeople(stderr, options);
}

function toPeople(stderr: StatusLine, options: DiagnosticsOptions): CallDiagnostics {
	const { quiet, debug, paint, target } = options;
	const inLines = (text: string, commands?: readonly string[]) => fitSentences(text, stderr, commands);
	const say = (text: string) => stderr.write(`${withoutSecrets(text)}\n`);
	const hint = async (what: Hint) => {
		if (quiet) return;
		const text = `hint: ${clean(hintText(what, target))}`;
		await say(paint.dim(await inLines(text, hintCommands(what, target).map(clean))));
	};
	return {
		note: async (text) => {
			if (!quiet) await say(await inLines([text].flat().map(clean).join('\n')));
		},
		hint,
		warn: async (text, ...hints) => {
			const fitted = await inLines(`warning: ${clean(text)}`);
			await say(fitted.replace('warning:', paint.yellow('warning:')));
			for (const one of hints) await hint(one);
		},
		trace: debug ? (line) => void say(clean(line)) : null,
		progress: progressOn(stderr, options, say),
		stand: statusOn(stderr, options),
		takeHints: () => [],
		end: async () => undefined,
	};
}

function toMachines(stderr: StatusLine, options: DiagnosticsOptions): CallDiagnostics {
	const { quiet, debug, target } = options;
	let waiting: Hint[] = [];
	const takeHints = () => {
		const taken = waiting;
		waiting = [];
		return taken;
	};
	const write = (what: Readonly<Record<string, string>>) => stderr.write(withoutSecrets(jsonLine(what)));
	const end = async () => {
		for (const hint of takeHints()) await write({ hint: hintText(hint, target) });
	};
	const say = async (what: Readonly<Record<string, string>>) => {
		await end();
		await write(what);
	};
	return {
		note: async (text) => {
			if (!quiet) await say({ note: [text].flat().join('\n') });
		},
		hint: async (hint) => {
			if (!quiet) waiting.push(hint);
		},
		warn: (warning, ...hints) => {
			const hint = hintText(joinHints(hints), target);
			return say({ warning, ...(hint !== '' && !quiet && { hint }) });
		},
		trace: debug ? (trace) => void write({ trace }) : null,
		progress: progressOn(stderr, options, (progress) => say({ progress })),
		stand: statusOn(stderr, options),
		takeHints,
		end,
	};
}

function progressOn(
	stderr: StatusLine,
	{ quiet, elapsedMs }: DiagnosticsOptions,
	say: (line: string) => Promise<void>,
): Diagnostics['progress'] {
	return (label, total, before = 0) =>
		createProgress(stderr, { label: clean(label), total, before, quiet, elapsedMs, say });
}

function statusOn(stderr: StatusLine, { quiet }: DiagnosticsOptions): Diagnostics['stand'] {
	return (line) => {
		if (stderr.canRewrite && !quiet) stderr.stand(line === null ? null : clean(line));
	};
}
