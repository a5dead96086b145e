import { Writable } from 'node:stream';
import { clean } from '../render/clean.js';
import { fitSentences } from '../render/wrapping.js';
import { Declined, UsageError } from './errors.js';
import type { Io } from './io.js';
import { shellWord } from './words.js';

interface Line {
	initial?: string;
	/** Returns the reason for refusing the text, or null. */
	check?: (text: string) => Promise<string | null>;
}

export interface Choice<T> {
	name: string;
	value: T;
	disabled?: string;
}

export type Source<T> = (typed: string) => Promise<readonly Choice<T>[]>;

/**
 * A change to confirm. `mild` asks y/N; `-y` answers it. `severe` asks the user to type `name`; only `--confirm NAME`
 * answers it. `what` completes "This will …".
 */
export type Question = { kind: 'mild'; what: string } | { kind: 'severe'; what: string; name: string };

interface PromptOptions {
	canAsk: boolean;
	yes: boolean;
	confirm: string | null;
	signal: AbortSignal;
	hasColor: boolean;
}

export type Asking = Pick<Prompts, keyof Prompts>;

type Inquirer = typeof import('@inquirer/prompts');

const markCells = 2;
const promptCells = 16;

/**
 * All methods except `confirm` require `canAsk`. They throw `Declined` when the user answers no, presses Ctrl-C or
 * Ctrl-D, or closes the terminal. When the signal is aborted, they throw the reason of the signal.
 */
export class Prompts {
	readonly canAsk: boolean;
	readonly #io: Io;
	readonly #options: PromptOptions;

	constructor(io: Io, options: PromptOptions) {
		this.#io = io;
		this.#options = options;
		this.canAsk = options.canAsk;
	}

	readonly confirm = async (question: Question): Promise<void> => {
		const { what } = question;
		const { yes, confirm } = this.#options;
		if (question.kind === 'mild') {
			if (yes) return;
			if (!this.canAsk) throw new UsageError(`this will ${what}`, { hint: 'add --yes to agree' });
			return this.agree(`This will ${what}.`, 'Continue?');
		}
		const { name } = question;
		if (confirm === name) return;
		const hint = `--confirm ${shellWord(name)}`;
		if (confirm !== null)
			throw new UsageError(`--confirm ${shellWord(confirm)} is the wrong value: this will ${what}`, { hint });
		if (!this.canAsk) throw new UsageError(`this will ${what}`, { hint: `add ${hint} to agree` });
		const typed = (await this.ask(await this.#tell(`This will ${what}.`, `Type ${name} to confirm:`))).trim();
		if (typed !== name) throw new Declined(typed === '' ? {} : { hint: `"${typed}" is not "${name}"` });
	};

	/** Asks even with `--yes`. */
	readonly agree = async (statement: string, question: string): Promise<void> => {
		const asked = await this.#tell(statement, question);
		const isAgreed = await this.#answer(asked, ({ confirm }, message, streams) =>
			confirm({ message, default: false }, streams),
		);
		if (!isAgreed) throw new Declined();
	};

	readonly ask = (question: string, { initial, check }: Line = {}): Promise<string> => {
		const options = { prefill: 'tab' as const, validate: this.#validate(check) };
		const preset = initial === undefined ? options : { ...options, default: initial };
		return this.#answer(question, ({ input }, message, streams) => input({ ...preset, message }, streams));
	};

	readonly askSecret = (question: string, { check }: Omit<Line, 'initial'> = {}): Promise<string> => {
		const options = { mask: false, toggleMask: false, validate: this.#validate(check) };
		return this.#answer(question, ({ password }, message, streams) =>
			password({ ...options, message }, streams),
		);
	};

	readonly askText = async (question: string, line: Line = {}): Promise<string> => {
		const { writeInEditor } = await import('./editor.js');
		return writeInEditor(this.#io, { question, ...line }, this.ask);
	};

	readonly choose = async <T>(question: string, choices: readonly Choice<T>[]): Promise<T> => {
		const shown = await this.#shown(choices);
		return this.#answer(question, ({ select }, message, streams) =>
			select({ message, choices: shown }, streams),
		);
	};

	readonly search = <T>(question: string, source: Source<T>): Promise<T> =>
		this.#answer(question, ({ search }, message, streams, fail) => {
			const found = async (typed = '') => this.#shown(await source(typed).catch(fail));
			return search({ message, source: found }, streams);
		});

	async #tell(what: string, question: string): Promise<string> {
		const statement = clean(what);
		const { stderr } = this.#io;
		if (statement.length + question.length + promptCells < stderr.columns) return `${statement} ${question}`;
		await stderr.write(`${await fitSentences(statement, stderr)}\n`);
		return question;
	}

	#fitted(text: string): Promise<string> {
		const { isTTY, columns } = this.#io.stderr;
		return fitSentences(clean(text), { isTTY, columns: columns - markCells });
	}

	async #shown<T>(choices: readonly Choice<T>[]): Promise<Choice<T>[]> {
		const { shorten, widthOf } = await import('../render/width.js');
		return choices.map((choice) => {
			const { name, disabled } = choice;
			const taken = markCells + 1 + (disabled === undefined ? 0 : widthOf(disabled) + 1);
			return { ...choice, name: shorten(clean(name), this.#io.stderr.columns - taken) };
		});
	}

	#validate(check: Line['check']): (text: string) => Promise<string | true> {
		return async (text) => {
			const reason = (await check?.(text)) ?? null;
			return reason === null ? true : this.#fitted(reason);
		};
	}

	async #answer<T>(
		question: string,
		prompt: (
			inquirer: Inquirer,
			message: string,
			streams: Streams,
			fail: (reason: unknown) => Promise<never>,
		) => Promise<T>,
	): Promise<T> {
		if (!this.canAsk) throw new UsageError(`cannot prompt here: ${question}`);
		const [inquirer, message] = await Promise.all([import('@inquirer/prompts'), this.#fitted(question)]);
		const input = this.#io.stdin.raw;
		const closed = new AbortController();
		const fail = (reason: unknown) => {
			closed.abort(reason);
			return new Promise<never>(() => {});
		};
		// readline pauses the input on Ctrl-D and after an answer. `setImmediate` lets an answered prompt end first.
		const close = () => setImmediate(() => closed.abort(new Declined()));
		input.once('pause', close).once('error', close);
		const signals = [this.#options.signal, closed.signal];
		const streams = { input, output: this.#output(), signal: AbortSignal.any(signals) };
		try {
			return await withoutSignals(() => prompt(inquirer, message, streams, fail));
		} catch (error) {
			for (const { aborted, reason } of signals) if (aborted) throw reason;
			// Compare names, because @inquirer/prompts 8 does not export these error classes.
			const isEnd = error instanceof Error && /^(Exit|Abort|Cancel)PromptError$/.test(error.name);
			throw isEnd ? new Declined() : error;
		} finally {
			input.off('pause', close);
			// A closed terminal emits an error after the prompt's end. Keep the handler until then.
			setImmediate(() => input.off('error', close));
		}
	}

	#output(): Writable {
		const { stderr } = this.#io;
		const { hasColor } = this.#options;
		const output = new Writable({
			decodeStrings: false,
			write(chunk: string | Buffer, _encoding, done) {
				const text = String(chunk);
				// Do not await the write. Otherwise later chunks queue here, and other output overtakes them.
				void stderr.write(hasColor ? text : text.replace(/\x1b\[[\d;]*m/g, ''));
				done();
			},
		});
		return Object.assign(output, { isTTY: true, columns: stderr.columns });
	}
}

interface Streams {
	input: NodeJS.ReadableStream;
	output: Writable;
	signal: AbortSignal;
}

/**
 * Removes the prompt's signal listeners. Its SIGHUP listener makes Node abort on a closed terminal. Its listeners for
 * SIGINT and SIGTERM would end the process before the prompt restores the terminal.
 */
function withoutSignals<T>(prompt: () => Promise<T>): Promise<T> {
	const names = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const;
	const before = new Set(names.flatMap((name) => process.listeners(name)));
	const answer = prompt();
	for (const name of names)
		for (const listener of process.listeners(name)) if (!before.has(listener)) process.off(name, listener);
	return answer;
}
