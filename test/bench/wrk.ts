// Runs wrk, which needs a tenth of the CPU time of a load generator in Node.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isInstalled } from '../support/run-program.js';

export const hasWrk: boolean = isInstalled('wrk');

export interface Load {
	url: string;
	connections: number;
	seconds: number;
	headers?: Readonly<Record<string, string>>;
	script?: { folder: string; lua: string };
}

export async function requestsPerSecond(load: Load): Promise<number> {
	const words = ['-t1', `-c${load.connections}`, `-d${load.seconds}`];
	for (const [name, value] of Object.entries(load.headers ?? {})) words.push('-H', `${name}: ${value}`);
	if (load.script !== undefined) {
		const file = join(load.script.folder, 'wrk.lua');
		writeFileSync(file, load.script.lua);
		words.push('-s', file);
	}
	const text = await output('wrk', [...words, load.url]);
	if (/Non-2xx|Socket errors/.test(text)) throw new Error(text);
	return Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1]);
}

async function output(command: string, words: readonly string[]): Promise<string> {
	const child = spawn(command, words, { stdio: ['ignore', 'pipe', 'inherit'] });
	let text = '';
	for await (const chunk of child.stdout) text += String(chunk);
	return text;
}
