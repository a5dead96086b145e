import { spawn } from 'node:child_process';
import { finished } from 'node:stream/promises';
import { stripVTControlCharacters } from 'node:util';
import type { Env, OutStream } from '../frame/io.js';
import { isOn } from '../frame/words.js';
import { rowsOf } from './terminal.js';

export function pagerOf({ isTTY }: Pick<OutStream, 'isTTY'>, env: Env): string | null {
	if (!isTTY || env['TERM'] === 'dumb' || isOn(env['CI'])) return null;
	const command = (env['MAILCTL_PAGER'] ?? env['PAGER'] ?? 'less').trim();
	return command === '' || command === 'cat' ? null : command;
}

export function isLonger(stream: OutStream, text: string): boolean {
	const { columns } = stream;
	const rows = rowsOf(stream);
	if (rows <= 1) return false;
	const lines = stripVTControlCharacters(text)
		.split('\n')
		.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / columns)), -1);
	return lines >= rows;
}

/** Waits until the user quits the pager. Prints the text if the shell cannot run the pager (exit code 126 or 127). */
export async function showPaged(stream: OutStream, text: string, command: string, env: Env): Promise<void> {
	// -F exits if the text fits, -R keeps colors, -X leaves the text on the screen.
	const less = { LESS: 'FRX', LESSCHARSET: 'utf-8' };
	const pager = spawn(command, {
		shell: true,
		stdio: ['pipe', 'inherit', 'inherit'],
		env: { ...less, ...env },
	});
	const code = new Promise<number | null>((resolve) => {
		pager.on('error', () => resolve(127));
		pager.on('close', (status) => resolve(status));
	});
	pager.stdin.end(text);
	await finished(pager.stdin).catch(() => undefined);
	const status = await code;
	if (status === 127 || status === 126) await stream.write(text);
}
