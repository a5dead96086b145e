/** A text written in the editor of the person: a private file, and a terminal that is the editor's alone meanwhile. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { clean } from '../render/clean.js';
import { fitSentences } from '../render/sentences.js';
import type { Io } from './io.js';
import type { Line, Questions } from './questions.js';

interface Desk {
	io: Io;
	signal: AbortSignal;
	/** Asks which editor it is to be. */
	line: Questions['line'];
}

/**
 * Asks for the editor and returns the text, once one has written a text that can be taken. An editor that fails is asked
 * for again, and finds the file as the last one left it. Where the question is left, what was written stays in its file,
 * whose path is told. The next text opens in the same editor without a question.
 */
export function createWriting(desk: Desk): (line: Line) => Promise<string> {
	let last: string | null = null;
	return (line) =>
		writeText({ ...desk, last }, line, (editor) => {
			last = editor;
		});
}

async function writeText(
	{ io, signal, line, last }: Desk & { last: string | null },
	{ question, initial = '', check }: Line,
	onWritten: (editor: string) => void,
): Promise<string> {
	const file = await createDraft(initial);
	let known = last;
	let usual = last ?? editorOf(io.env);
	let isKept = true;
	try {
		for (;;) {
			const asked = `${question.replace(/:$/, '')}, Enter opens this editor:`;
			const editor = known ?? ((await line({ question: asked, initial: usual })).trim() || usual);
			known = null;
			const opens = `opens ${editor}: write the text, save and quit to go on`;
			await io.stderr.write(`${await fitSentences(clean(opens), io.stderr)}\n`);
			const fault = await edit(editor, file, { io, signal });
			if (fault === null) usual = editor;
			const text = await readDraft(file);
			const reason = fault ?? (text === null ? 'the text is not in UTF-8' : await check?.(text)) ?? '';
			if (reason === '' && text !== null) {
				isKept = false;
				onWritten(editor);
				return text;
			}
			await io.stderr.write(`${await fitSentences(`> ${clean(reason)}`, io.stderr)}\n`);
		}
	} finally {
		const text = await readDraft(file);
		if (isKept && text !== initial && text?.trim() !== '')
			await io.stderr.write(`the text is kept in ${file}\n`);
		else await rm(dirname(file), { recursive: true, force: true });
	}
}

/** For a shell, as in git: `code --wait`. */
function editorOf(env: Io['env']): string {
	const chosen = [env['VISUAL'], env['EDITOR']].find((one) => one !== undefined && one.trim() !== '');
	return chosen?.trim() ?? (process.platform === 'win32' ? 'notepad' : 'vi');
}

/** 0600 in a folder of its own. */
async function createDraft(text: string): Promise<string> {
	const file = join(await mkdtemp(join(tmpdir(), 'mailctl-text-')), 'text.txt');
	await writeFile(file, text, { flag: 'wx', mode: 0o600 });
	return file;
}

/** Null: it is no UTF-8. An editor may have deleted it. */
async function readDraft(file: string): Promise<string | null> {
	const bytes = await readFile(file).catch(() => Buffer.alloc(0));
	try {
		return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
	} catch {
		return null;
	}
}

/** Why the editor failed; null: it did not. Throws the reason of the signal, once the editor has ended. */
async function edit(
	editor: string,
	file: string,
	{ io, signal }: Pick<Desk, 'io' | 'signal'>,
): Promise<string | null> {
	const [program = '', ...words] = wordsOf(editor, file);
	// Its screen is where the questions are: standard output is data.
	const child = spawn(program, words, { stdio: [0, 2, 2], env: io.env, shell: process.platform === 'win32' });
	const stop = () => child.kill('SIGTERM');
	signal.addEventListener('abort', stop, { once: true });
	try {
		const [code, endedBy] = await keysLeftTo(() => once(child, 'exit'));
		if (signal.aborted) throw signal.reason;
		if (code === 0) return null;
		if (code === 126 || code === 127) return noEditor(editor);
		return `${editor} has failed: ${code === null ? endedBy : `exit ${code}`}`;
	} catch (error) {
		if (error === signal.reason || !(error instanceof Error && 'syscall' in error)) throw error;
		return noEditor(editor);
	} finally {
		signal.removeEventListener('abort', stop);
	}
}

function noEditor(editor: string): string {
	const other = editor === 'nano' ? 'vi' : 'nano';
	return `no editor starts as ${JSON.stringify(editor)}; another name, such as ${other}, or the variable EDITOR helps`;
}

/** Without characters of the shell its words are parted here. A shell that runs it survives Ctrl-C as well. */
function wordsOf(editor: string, file: string): readonly string[] {
	if (process.platform === 'win32') return [editor, `"${file}"`];
	if (!/[|&;<>()$`\\"'*?[\]#~=%!{}\n]/.test(editor)) return [...editor.split(/\s+/), file];
	return ['/bin/sh', '-c', `trap : INT QUIT; ${editor} "$@"`, 'mailctl', file];
}

/** Ctrl-C and Ctrl-\ reach all programs of a terminal, and only the editor is meant: git ignores them likewise. */
async function keysLeftTo<T>(work: () => Promise<T>): Promise<T> {
	const ignore = () => undefined;
	const held = (['SIGINT', 'SIGQUIT'] as const).map((name) => ({ name, listeners: process.listeners(name) }));
	for (const { name, listeners } of held) {
		process.on(name, ignore);
		for (const listener of listeners) process.off(name, listener);
	}
	try {
		return await work();
	} finally {
		for (const { name, listeners } of held) {
			for (const listener of listeners) process.on(name, listener);
			process.off(name, ignore);
		}
	}
}
