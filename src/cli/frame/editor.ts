/** A text that a person writes in an editor. @inquirer/prompts guesses the encoding of what comes back; this reads UTF-8. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clean } from '../render/clean.js';
import { fitSentences } from '../render/sentences.js';
import type { Io } from './io.js';
import type { Line } from './prompts.js';

/** Asks for the editor and opens a private file in it, until the text can be taken. */
export async function writeInEditor(
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
			const asked = `${question.replace(/:$/, '')}, Enter opens this editor:`;
			editor = (await ask({ question: asked, initial: editor })).trim() || editor;
			await say(`opens ${editor}: write the text, save and quit to go on`);
			const isWritten = await edit(editor, file, io);
			const text = await readFile(file, 'utf8');
			const reason = isWritten ? await check?.(text) : `${editor} has failed`;
			isDone = (reason ?? null) === null;
			if (isDone) return text;
			await say(`> ${reason}`);
		}
	} finally {
		const isKept = !isDone && (await readFile(file, 'utf8')) !== initial;
		if (isKept) await say(`the text is kept in ${file}`);
		else await rm(folder, { recursive: true, force: true });
	}
}

/** False: it failed. As in git, a shell reads its words, and Ctrl-C is for the editor alone. Its screen is stderr. */
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
