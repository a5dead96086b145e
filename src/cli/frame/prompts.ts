/** Questions to a person, and the flags that answer them where prompts are not possible. */

import { clean } from '../render/clean.js';
import { fitSentences } from '../render/sentences.js';
import { shellWord } from './command-line.js';
import { Declined, UsageError } from './errors.js';
import type { Io } from './io.js';

/**
 * A change to confirm. `mild` asks y/N, `-y` answers it; `severe` asks to type `name`, `--confirm NAME` answers it and
 * `-y` does not. `what` completes "This will …".
 */
export type Question = { kind: 'mild'; what: string } | { kind: 'severe'; what: string; name: string };

export interface Prompts {
	/** Throws `Declined` (130) on no, `UsageError` naming the flag where prompts are not possible. */
	confirm(question: Question): Promise<void>;
	/**
	 * A question that no flag answers in general. Throws `Declined` (130) on no. Only where `canAsk`. `statement`: a
	 * sentence before the question.
	 */
	agree(statement: string, question: string): Promise<void>;
	/** One of the values. Only where `canAsk`. */
	choose<T>(question: string, choices: readonly { name: string; value: T }[]): Promise<T>;
	/** A line of text. Throws `UsageError` where prompts are not possible. */
	ask(question: string): Promise<string>;
	/** A line that is never shown. Throws `UsageError` where prompts are not possible. */
	askSecret(question: string): Promise<string>;
	/** False: questions are answered by flags only. */
	readonly canAsk: boolean;
}

export interface PromptOptions {
	canAsk: boolean;
	yes: boolean;
	confirm: string | null;
	signal: AbortSignal;
}

/** `? ` before a question, ` (y/N) ` and some room for the answer behind it. */
const promptCells = 16;

/**
 * For one call; a prompt is loaded when first asked, on stderr. `yes` answers mild questions alone, `confirm` severe
 * ones alone. A prompt that is cut by the signal throws its reason.
 */
export function createPrompts(io: Io, { canAsk, yes, confirm, signal }: PromptOptions): Prompts {
	const ask = async (question: string): Promise<string> => {
		if (!canAsk) throw new UsageError(`no prompt is possible here: ${question}`);
		const { input } = await import('@inquirer/prompts');
		return answered(io, signal, (streams) => input({ message: clean(question) }, streams));
	};
	const askSecret = async (question: string): Promise<string> => {
		if (!canAsk) throw new UsageError(`no prompt is possible here: ${question}`);
		const { password } = await import('@inquirer/prompts');
		return answered(io, signal, (streams) => password({ message: clean(question), mask: false }, streams));
	};
	/** A statement too long for the prompt is printed before it: the prompt would break a line inside a word. */
	const tell = async (what: string, question: string): Promise<string> => {
		const statement = clean(what);
		if (statement.length + question.length + promptCells < io.stderr.columns)
			return `${statement} ${question}`;
		await io.stderr.write(`${await fitSentences(statement, io.stderr)}\n`);
		return question;
	};
	const agree = async (statement: string, question: string): Promise<void> => {
		const prompts = await import('@inquirer/prompts');
		const message = await tell(statement, question);
		const confirm = (streams: Streams) => prompts.confirm({ message, default: false }, streams);
		if (!(await answered(io, signal, confirm))) throw new Declined();
	};
	const mild = async (what: string): Promise<void> => {
		if (yes) return;
		if (!canAsk) throw new UsageError(`this will ${what}`, { hint: 'add --yes to agree' });
		await agree(`This will ${what}.`, 'Go on?');
	};
	const severe = async (what: string, name: string): Promise<void> => {
		if (confirm === name) return;
		const flag = `--confirm ${shellWord(name)}`;
		if (confirm !== null)
			throw new UsageError(
				`--confirm ${shellWord(confirm)} is not the name that is wanted; this will ${what}`,
				{
					hint: flag,
				},
			);
		if (!canAsk) throw new UsageError(`this will ${what}`, { hint: `add ${flag} to agree` });
		const typed = await ask(await tell(`This will ${what}.`, `Type ${name} to go on:`));
		if (typed.trim() !== name) throw new Declined();
	};
	return {
		canAsk,
		agree,
		choose: async (question, choices) => {
			const prompts = await import('@inquirer/prompts');
			const shown = choices.map(({ name, value }) => ({ name: clean(name), value }));
			return answered(io, signal, (streams) =>
				prompts.select({ message: clean(question), choices: shown }, streams),
			);
		},
		ask,
		askSecret,
		confirm: (question) =>
			question.kind === 'mild' ? mild(question.what) : severe(question.what, question.name),
	};
}

/** stdout is data: prompts go to stderr. */
interface Streams {
	input: NodeJS.ReadableStream;
	output: NodeJS.WritableStream;
	signal: AbortSignal;
}

/** Ctrl-C and Ctrl-D at a prompt are a no. */
async function answered<T>(
	io: Io,
	signal: AbortSignal,
	prompt: (streams: Streams) => Promise<T>,
): Promise<T> {
	const input = io.stdin.raw;
	const closed = new AbortController();
	// readline takes Ctrl-D for the end of the input and pauses it, and the prompt waits for an answer that cannot come.
	// After an answer the input is paused too: by the next turn of the loop that prompt has ended.
	const close = () => setImmediate(() => closed.abort());
	input.once('pause', close);
	try {
		return await prompt({ input, output: io.stderr.raw, signal: AbortSignal.any([signal, closed.signal]) });
	} catch (error) {
		if (signal.aborted) throw signal.reason;
		throw isEndOfPrompt(error) ? new Declined() : error;
	} finally {
		input.off('pause', close);
	}
}

/** @inquirer/prompts 8 exports no class of these, and its documentation identifies them by their names. */
function isEndOfPrompt(error: unknown): boolean {
	return error instanceof Error && /^(ExitPrompt|AbortPrompt|CancelPrompt)Error$/.test(error.name);
}
