import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import * as prompts from '@inquirer/prompts';
import { clean } from '../render/clean.js';
import { shorten, widthOf } from '../render/width.js';
import { fitSentences } from '../render/wrapping.js';
import { Declined } from './errors.js';
import type { Io } from './io.js';
import type { Choice, Line, Source } from './prompts.js';

const markCells = 2;

/** Each method throws `Declined` for Ctrl-C, Ctrl-D and a closed terminal, and the signal's reason. */
export class Questions {
	readonly #io: Io;
	readonly #signal: AbortSignal;
	readonly #hasColor: boolean;

	constructor(io: Io, signal: AbortSignal, hasColor: boolean) {
		this.#io = io;
		this.#signal = signal;
		this.#hasColor = hasColor;
	}

	async line({ question, initial, check }: Line): Promise<string> {
		const message = await this.#fitted(question);
		const validate = this.#validate(check);
		const prefill = 'tab' as const;
		const preset = initial === undefined ? {} : { default: initial };
		return this.#answer((streams) => prompts.input({ message, prefill, validate, ...preset }, streams));
	}

	async secret({ question, check }: Line): Promise<string> {
		const message = await this.#fitted(question);
		const options = { message, mask: false, toggleMask: false, validate: this.#validate(check) };
		return this.#answer((streams) => prompts.password(options, streams));
	}

	async yes(question: string, initial: boolean): Promise<boolean> {
		const message = await this.#fitted(question);
		return this.#answer((streams) => prompts.confirm({ message, default: initial }, streams));
	}

	async one<T>(question: string, choices: readonly Choice<T>[], initial: T | undefined): Promise<T> {
		const message = await this.#fitted(question);
		const options = { message, choices: choices.map((choice) => this.#shown(choice)) };
		const preset = initial === undefined ? {} : { default: initial };
		return this.#answer((streams) => prompts.select({ ...options, ...preset }, streams));
	}

	async search<T>(question: string, source: Source<T>): Promise<T> {
		const message = await this.#fitted(question);
		return this.#answer((streams, fail) => {
			const found = async (typed = '') =>
				(await source(typed).catch(fail)).map((choice) => this.#shown(choice));
			return prompts.search({ message, source: found }, streams);
		});
	}

	text(line: Line): Promise<string> {
		return writeInEditor(this.#io, line, (question) => this.line(question));
	}

	#fitted(text: string): Promise<string> {
		const { isTTY, columns } = this.#io.stderr;
		return fitSentences(clean(text), { isTTY, columns: columns - markCells });
	}

	#shown<T>({ name, value, disabled }: Choice<T>): Choice<T> {
		const taken = markCells + 1 + (disabled === undefined ? 0 : widthOf(disabled) + 1);
		const shown = { name: shorten(clean(name), this.#io.stderr.columns - taken), value };
		return disabled === undefined ? shown : { ...shown, disabled };
	}

	#validate(check: Line['check']): (text: string) => Promise<string | true> {
		return async (text) => {
			const reason = (await check?.(text)) ?? null;
			return reason === null ? true : this.#fitted(reason);
		};
	}

	async #answer<T>(
		prompt: (streams: Streams, fail: (reason: unknown) => Promise<never>) => Promise<T>,
	): Promise<T> {
		const input = this.#io.stdin.raw;
		const closed = new AbortController();
		const fail = (reason: unknown) => {
			closed.abort(reason);
			return new Promise<never>(() => {});
		};
		// readline pauses the input for Ctrl-D. It does so after an answer, too, but then the prompt has ended by `setImmediate`.
		const close = () => setImmediate(() => closed.abort(new Declined()));
		input.once('pause', close).once('error', close);
		const signal = AbortSignal.any([this.#signal, closed.signal]);
		try {
			return await withoutSignals(() => prompt({ input, output: this.#output(), signal }, fail));
		} catch (error) {
			for (const { aborted, reason } of [this.#signal, closed.signal]) if (aborted) throw reason;
			// @inquirer/prompts 8 exports none of these classes; its documentation tells them apart by name.
			const isEnd = error instanceof Error && /^(Exit|Abort|Cancel)PromptError$/.test(error.name);
			throw isEnd ? new Declined() : error;
		} finally {
			input.off('pause', close);
			// Restoring the modes of a closed terminal fails after the last answer, when nobody handles the error.
			setImmediate(() => input.off('error', close));
		}
	}

	#output(): Writable {
		const { stderr } = this.#io;
		const hasColor = this.#hasColor;
		const output = new Writable({
			decodeStrings: false,
			write(chunk: string | Buffer, _encoding, done) {
				const text = String(chunk);
				// Write at once, because the command's next output does not go through this stream.
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
 * Removes the prompt's signal listeners. With one for SIGHUP, Node would abort on a closed terminal. The listeners for
 * SIGINT and SIGTERM would send the signal again, and end the process before the prompt restores the terminal.
 */
function withoutSignals<T>(prompt: () => Promise<T>): Promise<T> {
	const names = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const;
	const before = new Set(names.flatMap((name) => process.listeners(name)));
	const answer = prompt();
	for (const name of names)
		for (const listener of process.listeners(name)) if (!before.has(listener)) process.off(name, listener);
	return answer;
}

async function writeInEditor(
	io: Io,
	{ question, initial = '', check }: Line,
	ask: (line: Line) => Promise<string>,
): Promise<string> {
	const say = async (text: string) => io.stderr.write(`${await fitSentences(clean(text), io.stderr)}\n`);
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-text-'));
	const file = join(folder, 'text.txt');
	await writeFile(file, initial, { mode: 0o600 });
	let editor = io.env['VISUAL'] || io.env['EDITOR'] || 'vi';
	let isDone = false;
	try {
		for (;;) {
			const asked = `${question.replace(/:$/, '')}: which editor?`;
			const tried = (await ask({ question: asked, initial: editor })).trim() || editor;
			await say(`opening ${tried}: write the text, then save and quit`);
			const isWritten = await edit(tried, file, io);
			if (isWritten) editor = tried;
			const text = await readFile(file, 'utf8');
			const reason = isWritten ? await check?.(text) : `${tried} failed`;
			isDone = (reason ?? null) === null;
			if (isDone) return text;
			await say(`> ${reason}`);
		}
	} finally {
		const isKept = !isDone && (await readFile(file, 'utf8')).trim() !== initial.trim();
		if (isKept) await say(`the text is kept in ${file}`);
		else await rm(folder, { recursive: true, force: true });
	}
}

/** Returns false if the editor failed. A shell parses the editor's command, and only the editor gets Ctrl-C. */
async function edit(editor: string, file: string, { env }: Io): Promise<boolean> {
	const ignore = () => undefined;
	const listeners = process.listeners('SIGINT');
	process.removeAllListeners('SIGINT').on('SIGINT', ignore);
	try {
		const words = ['-c', `trap : INT; ${editor} "$@"`, 'mailctl', file];
		const [code] = await once(spawn('/bin/sh', words, { stdio: [0, 2, 2], env }), 'exit');
		return code === 0;
	} finally {
		process.off('SIGINT', ignore);
		for (const listener of listeners) process.on('SIGINT', listener);
	}
}
