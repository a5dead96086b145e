/** How a question looks and is answered: by @inquirer/prompts, or line by line where a terminal moves no cursor. */

import { styleText } from 'node:util';
import { clean } from '../render/clean.js';
import { fitSentences } from '../render/sentences.js';
import { Declined } from './errors.js';
import type { Io } from './io.js';
import { type Key, openScreen, type Screen } from './screen.js';

export interface Line {
	question: string;
	/** What Enter alone answers. */
	initial?: string;
	/** `initial` stands in the line, to be changed there. */
	isEdited?: boolean;
	/** Why the answer cannot be taken; it is asked again then, what was typed stays. */
	check?: (text: string) => Promise<string | null>;
}

export interface Choice<T> {
	name: string;
	value: T;
	/** Stands for a name that finds no room. */
	short?: string;
	/** Why it cannot be chosen, behind its name: `(0 active)`. */
	disabled?: string;
}

/** The choices that match what is typed, in the order to show them. */
export type Source<T> = (typed: string) => Promise<readonly Choice<T>[]>;

/** All throw `Declined` for Ctrl-C, Ctrl-D and a terminal that closes, and the reason of the signal. */
export interface Questions {
	line(line: Line): Promise<string>;
	/** Never shown. */
	secret(line: Line): Promise<string>;
	yes(question: string, initial: boolean): Promise<boolean>;
	one<T>(question: string, choices: readonly Choice<T>[], initial: T | undefined): Promise<T>;
	search<T>(question: string, source: Source<T>): Promise<T>;
	/** Several lines, in the editor of the person. */
	text(line: Line): Promise<string>;
}

export interface Look {
	hasColor: boolean;
	/** False: its locale names another encoding than UTF-8. */
	hasUnicode: boolean;
}

/** Fewer cells hold no list of choices beside its marks. */
const fewestColumns = 20;

/** On stderr: stdout is data. A library is loaded by the first question. */
export async function createQuestions(io: Io, signal: AbortSignal, look: Look): Promise<Questions> {
	if (io.env['TERM'] !== 'dumb' && io.stderr.columns >= fewestColumns) return richQuestions(io, signal, look);
	const { plainQuestions } = await import('./plain-questions.js');
	return plainQuestions(io, signal);
}

async function richQuestions(io: Io, signal: AbortSignal, look: Look): Promise<Questions> {
	const prompts = await import('@inquirer/prompts');
	const { shorten, widthOf, wrapWords } = await import('../render/width.js');
	const asked = <T>(prompt: (streams: Streams) => Promise<T>) => answered(io, signal, { look, prompt });
	const { isTTY, columns } = io.stderr;
	// Long lines would be broken inside words.
	const fitted = (text: string) => fitSentences(clean(text), { isTTY, columns: columns - markCells });
	const shown = <T>({ name, value, short = name, disabled }: Choice<T>): Choice<T> => {
		const room = columns - 1 - markCells - (disabled === undefined ? 0 : widthOf(disabled) + 1);
		const fitting = widthOf(clean(name)) <= room ? name : short;
		return { name: shorten(clean(fitting), room), value, ...(disabled !== undefined && { disabled }) };
	};
	const checked = ({ check }: Line, { whileBusy }: Streams) => {
		if (check === undefined) return {};
		const validate = async (text: string) => {
			const reason = await check(text);
			return reason === null ? true : fitted(reason);
		};
		return { validate: (text: string) => whileBusy(validate(text), () => true) };
	};
	/** An answer that finds no room behind its question stands below it. */
	const answer = (question: string) => (text: string) => {
		const before = markCells + widthOf(question.split('\n').at(-1) ?? '') + 1;
		const isBelow = before + widthOf(text) >= columns;
		const lines = isBelow ? ['', ...wrapWords(`  ${text}`, columns - 1)] : [text];
		return lines.map((line) => styleText('cyan', line)).join('\n');
	};
	const marks = look.hasUnicode ? {} : asciiTheme;
	const asking = (message: string) => ({ ...marks, style: { answer: answer(message) } });
	const choosing = (message: string, first: readonly string[]) => ({
		...marks,
		style: { answer: answer(message), keysHelpTip: () => keysOf(first, look) },
	});
	const askLine: Questions['line'] = async ({ question, initial, isEdited = false, ...line }) => {
		const message = await fitted(question);
		const theme = asking(message);
		const prefill = isEdited ? ('editable' as const) : ('tab' as const);
		const options = { message, theme, prefill, ...(initial !== undefined && { default: initial }) };
		return asked((streams) =>
			prompts.input({ ...options, ...checked({ question, ...line }, streams) }, streams),
		);
	};
	let writing: Promise<Questions['text']> | null = null;
	return {
		line: askLine,
		secret: async (line) => {
			const message = await fitted(line.question);
			const hasRoom = markCells + widthOf(message.split('\n').at(-1) ?? '') + 1 + maskedText.length < columns;
			const theme = { ...marks, style: { maskedText: hasRoom ? maskedText : '' } };
			const options = { message, mask: false, toggleMask: false, theme };
			return asked((streams) => prompts.password({ ...options, ...checked(line, streams) }, streams));
		},
		yes: async (question, initial) => {
			const message = await fitted(question);
			return asked((streams) =>
				prompts.confirm({ message, default: initial, theme: asking(message) }, streams),
			);
		},
		one: async (question, choices, initial) => {
			const message = await fitted(question);
			const options = { message, choices: choices.map(shown), theme: choosing(message, []) };
			return asked((streams) =>
				prompts.select({ ...options, ...(initial !== undefined && { default: initial }) }, streams),
			);
		},
		search: async (question, source) => {
			/** Tab completes to what is shown. */
			const whole = new Map<string, string>();
			const found = async (typed: string) => {
				const choices = await source(whole.get(typed) ?? typed);
				return choices.map((choice) => {
					const short = shown(choice);
					whole.set(short.name, choice.name);
					return short;
				});
			};
			const message = await fitted(question);
			const options = { message, theme: choosing(message, ['type to search']) };
			return asked((streams) => {
				const source = (typed = '') => streams.whileBusy(found(typed), isOfChoices);
				return prompts.search({ ...options, source }, streams);
			});
		},
		text: async (line) => {
			writing ??= import('./editor.js').then(({ createWriting }) =>
				createWriting({ io, signal, line: askLine }),
			);
			return (await writing)(line);
		},
	};
}

/** `? ` before a question, `❯ ` before a choice. */
const markCells = 2;

/** Behind the question for a secret, where it finds room. */
const maskedText = '[input is masked]';

const asciiTheme = {
	prefix: { idle: '?', done: '?' },
	icon: { cursor: '>' },
	spinner: { interval: 80, frames: ['-', '\\', '|', '/'] },
};

function keysOf(first: readonly string[], { hasUnicode }: Look): string {
	const keys = hasUnicode ? ['↑↓ navigate', '⏎ select'] : ['Up and Down', 'Enter selects'];
	return `\x1b[2m${[...first, ...keys].join(hasUnicode ? ' • ' : ', ')}\x1b[22m`;
}

/** The list of choices drops these while it is made anew. */
function isOfChoices({ name = '' }: Key): boolean {
	return ['return', 'enter', 'tab', 'up', 'down'].includes(name);
}

interface Streams extends Pick<Screen, 'input' | 'output' | 'whileBusy'> {
	signal: AbortSignal;
}

async function answered<T>(
	io: Io,
	signal: AbortSignal,
	{ look, prompt }: { look: Look; prompt: (streams: Streams) => Promise<T> },
): Promise<T> {
	const { closed, ask, release, ...streams } = openScreen(io, look);
	try {
		return await ask(() => prompt({ ...streams, signal: AbortSignal.any([signal, closed]) }));
	} catch (error) {
		for (const { aborted, reason } of [signal, closed]) if (aborted) throw reason;
		throw isEndOfPrompt(error) ? new Declined() : error;
	} finally {
		release();
	}
}

/** @inquirer/prompts 8 exports no class of these, and its documentation identifies them by their names. */
function isEndOfPrompt(error: unknown): boolean {
	return error instanceof Error && /^(ExitPrompt|AbortPrompt|CancelPrompt)Error$/.test(error.name);
}
