/** Questions to a person, and what stands in for the answers where nobody is there. */
import { Declined, UsageError } from './errors.js';
import type { Io } from './io.js';
import { clean } from './render/clean.js';
import { fitSentences } from './render/sentences.js';
import { shellWord } from './shell-word.js';

/**
 * What is to be agreed to. `mild` asks y/N, `-y` answers it; `severe` asks to type `name`, `--confirm NAME` answers it
 * and `-y` does not. `what` completes "This will …".
 */
export type Question = { kind: 'mild'; what: string } | { kind: 'severe'; what: string; name: string };

export interface Prompts {
	/** Throws `Declined` (130) on no, `UsageError` naming the flag where nobody can be asked. */
	confirm(question: Question): Promise<void>;
	/** A line of text. Throws `UsageError` where nobody can be asked. */
	ask(question: string): Promise<string>;
	/** A line that is never shown. Throws `UsageError` where nobody can be asked. */
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
		if (!canAsk) throw new UsageError(`nobody can be asked: ${question}`);
		const { input } = await import('@inquirer/prompts');
		return answered(input({ message: clean(question) }, streams(io, signal)), signal);
	};
	const askSecret = async (question: string): Promise<string> => {
		if (!canAsk) throw new UsageError(`nobody can be asked: ${question}`);
		const { password } = await import('@inquirer/prompts');
		return answered(password({ message: clean(question), mask: false }, streams(io, signal)), signal);
	};
	/** What a prompt does not hold is said before it: the prompt itself would break a line in the middle of a word. */
	const tell = async (what: string, question: string): Promise<string> => {
		const statement = `This will ${clean(what)}.`;
		if (statement.length + question.length + promptCells < io.stderr.columns)
			return `${statement} ${question}`;
		await io.stderr.write(`${await fitSentences(statement, io.stderr)}\n`);
		return question;
	};
	const mild = async (what: string): Promise<void> => {
		if (yes) return;
		if (!canAsk) throw new UsageError(`this will ${what}`, { hint: 'add --yes to agree' });
		const prompts = await import('@inquirer/prompts');
		const message = await tell(what, 'Go on?');
		if (!(await answered(prompts.confirm({ message, default: false }, streams(io, signal)), signal)))
			throw new Declined();
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
		const typed = await ask(await tell(what, `Type ${name} to go on:`));
		if (typed.trim() !== name) throw new Declined();
	};
	return {
		canAsk,
		ask,
		askSecret,
		confirm: (question) =>
			question.kind === 'mild' ? mild(question.what) : severe(question.what, question.name),
	};
}

/** stdout is data: prompts go to stderr. */
function streams(io: Io, signal: AbortSignal) {
	return { input: io.stdin.raw, output: io.stderr.raw, signal };
}

/** Ctrl-C and Ctrl-D at a prompt are a no. */
async function answered<T>(prompt: Promise<T>, signal: AbortSignal): Promise<T> {
	try {
		return await prompt;
	} catch (error) {
		if (signal.aborted) throw signal.reason;
		if (error instanceof Error && /^(ExitPrompt|AbortPrompt|CancelPrompt)Error$/.test(error.name))
			throw new Declined();
		throw error;
	}
}
