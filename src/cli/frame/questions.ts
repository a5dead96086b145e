/** How a question looks and is answered: by @inquirer/prompts, or line by line where a terminal moves no cursor. */

import { clean } from '../render/clean.js';
import { Declined } from './errors.js';
import type { Io } from './io.js';

export interface Line {
	question: string;
	/** What Enter alone answers. */
	initial?: string;
	/** Why the answer cannot be taken; it is asked again then, what was typed stays. */
	check?: (text: string) => Promise<string | null>;
}

export interface Choice<T> {
	name: string;
	value: T;
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

/** On stderr: stdout is data. A library is loaded by the first question. */
export async function createQuestions(io: Io, signal: AbortSignal): Promise<Questions> {
	if (io.env['TERM'] !== 'dumb') return richQuestions(io, signal);
	const { plainQuestions } = await import('./plain-questions.js');
	return plainQuestions(io, signal);
}

async function richQuestions(io: Io, signal: AbortSignal): Promise<Questions> {
	const prompts = await import('@inquirer/prompts');
	const asked = <T>(prompt: (streams: Streams) => Promise<T>) => answered(io, signal, prompt);
	const message = (question: string) => ({ message: clean(question) });
	const checked = ({ check }: Line) =>
		check === undefined ? {} : { validate: async (text: string) => (await check(text)) ?? true };
	return {
		line: ({ question, initial, ...line }) =>
			asked((streams) =>
				prompts.input(
					{
						...message(question),
						...(initial !== undefined && { default: initial }),
						...checked({ question, ...line }),
					},
					streams,
				),
			),
		secret: (line) =>
			asked((streams) =>
				prompts.password({ ...message(line.question), mask: false, ...checked(line) }, streams),
			),
		yes: (question, initial) =>
			asked((streams) => prompts.confirm({ ...message(question), default: initial }, streams)),
		one: (question, choices, initial) =>
			asked((streams) =>
				prompts.select(
					{
						...message(question),
						choices: choices.map(shown),
						...(initial !== undefined && { default: initial }),
					},
					streams,
				),
			),
		search: (question, source) =>
			asked((streams) =>
				prompts.search(
					{ ...message(question), source: async (typed = '') => (await source(typed)).map(shown) },
					streams,
				),
			),
		text: ({ question, initial = '', ...line }) =>
			asked((streams) =>
				prompts.editor(
					{ ...message(question), default: initial, ...checked({ question, ...line }) },
					streams,
				),
			),
	};
}

function shown<T>({ name, value }: Choice<T>): Choice<T> {
	return { name: clean(name), value };
}

interface Streams {
	input: NodeJS.ReadableStream;
	output: NodeJS.WritableStream;
	signal: AbortSignal;
}

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
