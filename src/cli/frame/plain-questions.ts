/** Questions for a terminal that moves no cursor (`TERM=dumb`): choices have numbers, an answer is a line. */
import { StringDecoder } from 'node:string_decoder';
import { clean, cleanLines } from '../render/clean.js';
import { Declined } from './errors.js';
import type { Io } from './io.js';
import type { Choice, Line, Questions, Source } from './questions.js';

export function plainQuestions(io: Io, signal: AbortSignal): Questions {
	const say = (text: string) => io.stderr.write(text);
	const read = lineReader(io, signal);
	const line = async ({ question, initial, check }: Line, isHidden = false): Promise<string> => {
		for (;;) {
			const shown = `? ${clean(question)}${initial === undefined ? '' : ` (${clean(initial)})`} `;
			const typed = (await read(shown, isHidden)) || (initial ?? '');
			const reason = (await check?.(typed)) ?? null;
			if (reason === null) return typed;
			await say(`> ${clean(reason)}\n`);
		}
	};
	const pick = <T>(choices: readonly Choice<T>[], typed: string): Choice<T> | undefined =>
		choices[Number(typed) - 1] ?? choices.find(({ name }) => name === typed);
	const list = async <T>(choices: readonly Choice<T>[]) => {
		for (const [at, { name, disabled }] of choices.entries())
			await say(`  ${at + 1}) ${clean(name)}${disabled === undefined ? '' : ` ${disabled}`}\n`);
	};
	return {
		line: (one) => line(one),
		secret: (one) => line(one, true),
		yes: async (question, initial) => {
			const typed = await line({ question: `${question} (${initial ? 'Y/n' : 'y/N'})` });
			return typed.trim() === '' ? initial : /^y/i.test(typed.trim());
		},
		one: async (question, choices, initial) => {
			await list(choices);
			const preset = choices.findIndex(({ value }) => value === initial) + 1;
			const check = async (typed: string) => {
				const picked = pick(choices, typed);
				return picked === undefined ? `a number from 1 to ${choices.length}` : reasonAgainst(picked);
			};
			const typed = await line({ question, check, ...(preset > 0 && { initial: String(preset) }) });
			return pick(choices, typed)?.value as never;
		},
		search: (question, source) => searched({ question, source, list, pick, line, say }),
		text: async ({ question, initial, check }) => {
			if (initial !== undefined) await say(`${cleanLines(initial).trimEnd()}\na dot at once keeps it\n`);
			await say('end it with a line that holds a dot alone\n');
			const lines = async () => {
				const all: string[] = [];
				for (let typed = await line({ question }); typed !== '.'; typed = await read('', false))
					all.push(typed);
				return all.length === 0 ? (initial ?? '') : `${all.join('\n')}\n`;
			};
			for (;;) {
				const text = await lines();
				const reason = (await check?.(text)) ?? null;
				if (reason === null) return text;
				await say(`> ${clean(reason)}\n`);
			}
		},
	};
}

/** Why it cannot be chosen; null: it can. */
function reasonAgainst({ name, disabled }: Choice<unknown>): string | null {
	return disabled === undefined ? null : `${name} cannot be chosen ${disabled}`;
}

/** What is typed narrows the choices, until a number or a whole name picks one. */
async function searched<T>({
	question,
	source,
	list,
	pick,
	line,
	say,
}: {
	question: string;
	source: Source<T>;
	list: (choices: readonly Choice<T>[]) => Promise<void>;
	pick: (choices: readonly Choice<T>[], typed: string) => Choice<T> | undefined;
	line: (line: Line) => Promise<string>;
	say: (text: string) => Promise<void>;
}): Promise<T> {
	let choices = await source('');
	for (;;) {
		await list(choices.slice(0, mostShown));
		if (choices.length > mostShown)
			await say(`  and ${choices.length - mostShown} more: type a part of the name\n`);
		const typed = await line({ question });
		const named = pick(choices, typed);
		const found = named === undefined ? await source(typed) : [named];
		const picked = found.length === 1 && typed !== '' ? found[0] : undefined;
		const reason = picked === undefined ? null : reasonAgainst(picked);
		if (picked !== undefined && reason === null) return picked.value;
		if (reason !== null) await say(`> ${clean(reason)}\n`);
		else if (found.length === 0) await say('> nothing matches\n');
		else choices = found;
	}
}

const mostShown = 20;

/** Reads a line behind a question, key by key: Ctrl-C and Ctrl-D are answers, and a hidden line has no echo. */
function lineReader(
	{ stdin, stderr }: Io,
	signal: AbortSignal,
): (question: string, isHidden: boolean) => Promise<string> {
	const decoder = new StringDecoder('utf8');
	/** Typed ahead. */
	let waiting = '';
	return (question, isHidden) => {
		const input: Io['stdin']['raw'] & { setRawMode?: (on: boolean) => void } = stdin.raw;
		const isRaw = stdin.isTTY && input.setRawMode !== undefined;
		let typed = '';
		const echo = (text: string) => {
			if (isRaw && !isHidden) void stderr.write(text);
		};
		const erase = (count: number) => {
			const letters = [...typed];
			const kept = letters.slice(0, Math.max(0, letters.length - count));
			echo('\b \b'.repeat(letters.length - kept.length));
			typed = kept.join('');
		};
		const take = (key: string): 'go on' | 'done' => {
			if (key === '\r' || key === '\n') return 'done';
			if (key === '\x03' || (key === '\x04' && typed === '')) throw new Declined();
			if (key === '\x7f' || key === '\b') erase(1);
			else if (key === '\x15') erase(typed.length);
			else if (key >= ' ') {
				typed += key;
				echo(key);
			}
			return 'go on';
		};
		return new Promise<string>((resolve, reject) => {
			const end = (settle: () => void) => {
				input.off('data', hear).off('end', gone).off('error', gone).off('close', gone);
				signal.removeEventListener('abort', stop);
				if (isRaw) input.setRawMode?.(false);
				input.pause();
				if (isRaw) void stderr.write('\n');
				settle();
			};
			const gone = () => end(() => reject(new Declined()));
			const stop = () => end(() => reject(signal.reason));
			const drain = () => {
				while (waiting !== '') {
					const [letter = ''] = waiting;
					const key = moveOf(waiting) ?? letter;
					waiting = waiting.slice(key.length);
					try {
						if (take(key) === 'done') return end(() => resolve(typed));
					} catch (error) {
						return end(() => reject(error));
					}
				}
			};
			const hear = (chunk: Buffer | string) => {
				waiting += typeof chunk === 'string' ? chunk : decoder.write(chunk);
				drain();
			};
			if (signal.aborted) return reject(signal.reason);
			input.on('data', hear).on('end', gone).on('error', gone).on('close', gone);
			signal.addEventListener('abort', stop, { once: true });
			// Before the question: a key that answers it must not be one of the terminal's own.
			if (isRaw) input.setRawMode?.(true);
			void stderr.write(question);
			input.resume();
			drain();
		});
	};
}

/** A key that moves a cursor (an arrow, Home), or Esc alone, at the start of what is typed: nothing moves here. */
function moveOf(typed: string): string | null {
	return /^\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~])?/.exec(typed)?.[0] ?? null;
}
