import type { Env, OutStream } from '../frame/io.js';

export const colorModes = ['auto', 'always', 'never'] as const;
export type ColorMode = (typeof colorModes)[number];

export function hasUnicode(env: Env): boolean {
	const term = env['TERM'] ?? '';
	const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '';
	return /utf-?8/i.test(locale) && term !== 'dumb' && term !== 'linux';
}

export function rowsOf({ raw }: Pick<OutStream, 'raw'>): number {
	return 'rows' in raw && typeof raw.rows === 'number' ? raw.rows : 0;
}

export interface Paint {
	strong(text: string): string;
	red(text: string): string;
	yellow(text: string): string;
	cyan(text: string): string;
	dim(text: string): string;
}

/** NO_COLOR counts only if it is not empty (no-color.org). */
export function hasColor(stream: Pick<OutStream, 'isTTY'>, mode: ColorMode, env: Env): boolean {
	if (mode !== 'auto') return mode === 'always';
	if ((env['NO_COLOR'] ?? '') !== '') return false;
	const force = env['FORCE_COLOR'];
	if (force !== undefined) return force !== '0' && force !== 'false';
	if ((env['CLICOLOR_FORCE'] ?? '0') !== '0' && env['CLICOLOR_FORCE'] !== '') return true;
	return stream.isTTY && env['TERM'] !== 'dumb' && env['CLICOLOR'] !== '0';
}

export async function paint(enabled: boolean): Promise<Paint> {
	if (!enabled) return plain;
	const { Chalk } = await import('chalk');
	const chalk = new Chalk({ level: 1 });
	return { strong: chalk.bold, red: chalk.red, yellow: chalk.yellow, cyan: chalk.cyan, dim: chalk.dim };
}

const same = (text: string) => text;
const plain: Paint = { strong: same, red: same, yellow: same, cyan: same, dim: same };
