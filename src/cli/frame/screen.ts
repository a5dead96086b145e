/** The terminal that a question is drawn on: it survives Ctrl-Z and `fg`, and is let go of when it is closed. */
import { Writable } from 'node:stream';
import { Declined } from './errors.js';
import type { Io } from './io.js';

/** The streams for one question of @inquirer/prompts. */
export interface Screen {
	readonly input: NodeJS.ReadableStream;
	readonly output: NodeJS.WritableStream;
	/** Aborted where no answer can come. The reason: `Declined` for Ctrl-D and a closed terminal, or why work has failed. */
	readonly closed: AbortSignal;
	/** What the prompt waits for; keys that it would drop meanwhile are pressed when it has ended. */
	whileBusy<T>(work: Promise<T>, drops: (key: Key) => boolean): Promise<T>;
	/** Calls the prompt, and leaves signals to their listeners. */
	ask<T>(prompt: () => Promise<T>): Promise<T>;
	release(): void;
}

/** As readline reports it. */
export interface Key {
	ctrl?: boolean;
	name?: string;
}

type Input = Io['stdin']['raw'] & { setRawMode?: (on: boolean) => void };

const showCursor = '\x1b[?25h';
const eraseBelow = '\x1b[J';

export function openScreen({ stdin, stderr }: Io, { hasColor }: { hasColor: boolean }): Screen {
	const input: Input = stdin.raw;
	const closed = new AbortController();
	const { output, last } = drawing(stderr, hasColor);
	// After an answer the input is paused too: by the next turn of the loop that prompt has ended.
	const close = () => setImmediate(() => closed.abort(new Declined()));
	const goOn = () => {
		// The shell has set modes of its own, and a mode that is set already is not set again.
		input.setRawMode?.(false);
		input.setRawMode?.(true);
		void stderr.write(`\r${last()}`);
	};
	const onKey = (_: unknown, key: Key | undefined) => {
		if (key?.ctrl !== true || key.name !== 'z' || input.setRawMode === undefined) return;
		// readline would stop the process, too, and take the input for closed when it goes on.
		key.name = '';
		void stderr.write(`${eraseBelow}${showCursor}`);
		input.setRawMode(false);
		process.kill(process.pid, 'SIGTSTP');
	};
	if (input.setRawMode !== undefined) process.on('SIGCONT', goOn);
	// readline takes Ctrl-D for the end of the input and pauses it, and the prompt waits for an answer that cannot come.
	input.once('pause', close).once('error', close).prependListener('keypress', onKey);
	const held = holdKeys(input, (reason) => closed.abort(reason));
	return {
		input,
		output,
		closed: closed.signal,
		whileBusy: held.whileBusy,
		ask: withoutSignals,
		release: () => {
			process.off('SIGCONT', goOn);
			input.off('pause', close).off('keypress', onKey);
			held.release();
			// The modes of a closed terminal cannot be restored; the error comes after the last answer and has no reader.
			setImmediate(() => input.off('error', close));
		},
	};
}

/**
 * A prompt drops most keys while it checks an answer or looks for choices: of text that is pasted together with its Enter,
 * the Enter. They are held back, and so are all keys behind them; keys with Ctrl go through.
 */
function holdKeys(
	input: Input,
	fail: (reason: unknown) => void,
): Pick<Screen, 'whileBusy'> & { release(): void } {
	const works = new Set<(key: Key) => boolean>();
	let held: { text: string | undefined; key: Key }[] = [];
	let isPressing = false;
	const onKey = (text: string | undefined, key: Key | undefined) => {
		if (key === undefined || key.ctrl === true || isPressing) return;
		if (held.length === 0 && ![...works].some((drops) => drops(key))) return;
		held.push({ text, key: { ...key } });
		// A key that neither readline nor a prompt knows.
		Object.assign(key, { name: '', ctrl: true });
	};
	const press = () => {
		while (works.size === 0) {
			const next = held.shift();
			if (next === undefined) return;
			isPressing = true;
			input.emit('keypress', next.text, next.key);
			isPressing = false;
		}
	};
	input.prependListener('keypress', onKey);
	return {
		whileBusy: async (work, drops) => {
			const one: typeof drops = (key) => drops(key);
			works.add(one);
			try {
				return await work;
			} catch (error) {
				fail(error);
				// A prompt has no place for it.
				return new Promise(() => {});
			} finally {
				works.delete(one);
				// The prompt goes on first.
				setImmediate(press);
			}
		},
		release: () => {
			held = [];
			input.off('keypress', onKey);
		},
	};
}

/**
 * A prompt listens to signals, and none of these is its own. A listener for SIGHUP would have Node end by itself, which on a
 * terminal that is gone it does by an abort. For SIGINT and SIGTERM it would send the signal again once ours has let go of
 * it: the process would end before the prompt gives the terminal back.
 */
const notOfPrompts = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const;

function withoutSignals<T>(prompt: () => Promise<T>): Promise<T> {
	const held = notOfPrompts.map((name) => ({ name, before: new Set(process.listeners(name)) }));
	const answer = prompt();
	for (const { name, before } of held)
		for (const listener of process.listeners(name)) if (!before.has(listener)) process.off(name, listener);
	return answer;
}

/** Passes on what is drawn and remembers it. A prompt writes its whole picture each time, behind what erases the last one. */
function drawing(stderr: Io['stderr'], hasColor: boolean): { output: Writable; last: () => string } {
	let picture = '';
	let cursor = '';
	const output = new Writable({
		decodeStrings: false,
		write(chunk: string | Buffer, _encoding, done) {
			const text = String(chunk);
			const drawn = text.replace(/^(?:\x1b\[\d*[ABGK])*/, '');
			if (drawn === '') cursor = text;
			else [picture, cursor] = [drawn, ''];
			// At once: what the command prints next is written past this stream. What waits for an answer stays silent meanwhile.
			void stderr.write(hasColor ? text : uncoloured(text));
			done();
		},
	});
	Object.defineProperty(output, 'columns', { get: () => stderr.columns });
	return {
		output: Object.assign(output, { isTTY: true }),
		last: () => (hasColor ? picture : uncoloured(picture)) + cursor,
	};
}

function uncoloured(text: string): string {
	return text.replace(/\x1b\[[\d;]*m/g, '');
}
