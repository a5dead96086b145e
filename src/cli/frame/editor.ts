import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clean } from '../render/clean.js';
import { fitSentences } from '../render/wrapping.js';
import type { Io } from './io.js';
import type { Asking } from './prompts.js';

/**
 * Opens an editor until `check` accepts the text. Does not use the editor of @inquirer/prompts, because that editor
 * writes to standard output and guesses the encoding.
 */
export async function writeInEditor(
	io: Io,
	{ question, initial = '', check }: NonNullable<Parameters<Asking['ask']>[1]> & { question: string },
	ask: Asking['ask'],
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
			const tried = (await ask(asked, { initial: editor })).trim() || editor;
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

/** `$EDITOR` may have arguments, so a shell runs the editor. */
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
