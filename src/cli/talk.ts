/** stderr: everything said to people. Cleaned, and silent under `--quiet` but for warnings. */
import { keepTarget, type NamedTarget } from './command-line.js';
import { clean, cleanLines } from './render/clean.js';
import type { Paint } from './render/color.js';
import { createProgress, type Progress } from './render/progress.js';
import { fitSentences } from './render/sentences.js';
import type { OneLine } from './render/standing.js';

export interface Talk {
	/** A sentence on what happened or happens. */
	note(text: string): Promise<void>;
	/** What to do next: a command or a sentence. `mailctl WORDS` in it is said with the target of this call. */
	hint(text: string): Promise<void>;
	/** Said under `--quiet` too. */
	warn(text: string): Promise<void>;
	/**
	 * Rewrites one line on a terminal, else a line every ten seconds. `total` null: unknown. `before`: what earlier runs
	 * had done, 0 unless given.
	 */
	progress(label: string, total: number | null, before?: number): Progress;
}

export interface TalkOptions {
	quiet: boolean;
	paint: Paint;
	/** What hints keep. */
	target: NamedTarget;
	/** Milliseconds, only ever subtracted from each other. */
	elapsedMs: () => number;
}

/** For one call. Texts may hold a stranger’s words: terminal controls are taken out here, and long lines broken. */
export function createTalk(stderr: OneLine, { quiet, paint, target, elapsedMs }: TalkOptions): Talk {
	const inLines = (text: string) => fitSentences(text, stderr);
	const say = (text: string) => stderr.write(`${text}\n`);
	return {
		note: async (text) => {
			if (!quiet) await say(await inLines(cleanLines(text)));
		},
		hint: async (text) => {
			if (!quiet) await say(paint.dim(await inLines(`hint: ${clean(keepTarget(text, target))}`)));
		},
		warn: async (text) => {
			const fitted = await inLines(`warning: ${clean(text)}`);
			await say(fitted.replace('warning:', paint.yellow('warning:')));
		},
		progress: (label, total, before = 0) =>
			createProgress(stderr, { label: clean(label), total, before, quiet, elapsedMs }),
	};
}
