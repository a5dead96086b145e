import { clean } from '../render/clean.js';
import { fitSentences } from '../render/wrapping.js';
import { Declined, UsageError } from './errors.js';
import type { Io } from './io.js';
import type { Questions } from './questions.js';
import { shellWord } from './words.js';

export interface Line {
	question: string;
	initial?: string;
	check?: (text: string) => Promise<string | null>;
}

export interface Choice<T> {
	name: string;
	value: T;
	disabled?: string;
}

export type Source<T> = (typed: string) => Promise<readonly Choice<T>[]>;

/**
 * A change to confirm. `mild` asks y/N, and `-y` answers it. `severe` asks to type `name`; `--confirm NAME` answers it,
 * but `-y` does not. `what` completes "This will …".
 */
export type Question = { kind: 'mild'; what: string } | { kind: 'severe'; what: string; name: string };

export interface Prompts {
	confirm(question: Question): Promise<void>;
	/**
	 * Asks a question that no general flag answers. Throws `Declined` (130) on no. Requires `canAsk`. `statement`: a
	 * sentence before the question.
	 */
	agree(statement: string, question: string): Promise<void>;
	choose<T>(question: string, choices: readonly Choice<T>[], initial?: T): Promise<T>;
	search<T>(question: string, source: Source<T>): Promise<T>;
	askWhether(question: string, initial: boolean): Promise<boolean>;
	ask(question: string, line?: Omit<Line, 'question'>): Promise<string>;
	askSecret(question: string, line?: Omit<Line, 'question'>): Promise<string>;
	askText(question: string, line?: Omit<Line, 'question'>): Promise<string>;
	readonly canAsk: boolean;
}

interface PromptOptions {
	canAsk: boolean;
	yes: boolean;
	confirm: string | null;
	signal: AbortSignal;
	hasColor: boolean;
}

const promptCells = 16;

export function createPrompts(io: Io, { canAsk, yes, confirm, signal, hasColor }: PromptOptions): Prompts {
	let opened: Promise<Questions> | null = null;
	const questions = (question: string): Promise<Questions> => {
		if (!canAsk) throw new UsageError(`cannot prompt here: ${question}`);
		opened ??= import('./questions.js').then(({ Questions }) => new Questions(io, signal, hasColor));
		return opened;
	};
	const tell = async (what: string, question: string): Promise<string> => {
		const statement = clean(what);
		if (statement.length + question.length + promptCells < io.stderr.columns)
			return `${statement} ${question}`;
		await io.stderr.write(`${await fitSentences(statement, io.stderr)}\n`);
		return question;
	};
	const agree = async (statement: string, question: string): Promise<void> => {
		const asked = await questions(question);
		if (!(await asked.yes(await tell(statement, question), false))) throw new Declined();
	};
	const mild = async (what: string): Promise<void> => {
		if (yes) return;
		if (!canAsk) throw new UsageError(`this will ${what}`, { hint: 'add --yes to agree' });
		await agree(`This will ${what}.`, 'Continue?');
	};
	const severe = async (what: string, name: string): Promise<void> => {
		if (confirm === name) return;
		const flag = `--confirm ${shellWord(name)}`;
		if (confirm !== null)
			throw new UsageError(`--confirm ${shellWord(confirm)} does not match; this will ${what}`, {
				hint: flag,
			});
		if (!canAsk) throw new UsageError(`this will ${what}`, { hint: `add ${flag} to agree` });
		const question = await tell(`This will ${what}.`, `Type ${name} to confirm:`);
		const typed = (await (await questions(question)).line({ question })).trim();
		if (typed !== name) throw new Declined(typed === '' ? {} : { hint: `"${typed}" is not "${name}"` });
	};
	return {
		canAsk,
		agree,
		choose: async (question, choices, initial) => (await questions(question)).one(question, choices, initial),
		search: async (question, source) => (await questions(question)).search(question, source),
		askWhether: async (question, initial) => (await questions(question)).yes(question, initial),
		ask: async (question, line = {}) => (await questions(question)).line({ question, ...line }),
		askSecret: async (question, line = {}) => (await questions(question)).secret({ question, ...line }),
		askText: async (question, line = {}) => (await questions(question)).text({ question, ...line }),
		confirm: (question) =>
			question.kind === 'mild' ? mild(question.what) : severe(question.what, question.name),
	};
}
