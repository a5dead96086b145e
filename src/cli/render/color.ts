/** Whether a stream gets colour, decided for each by itself. */
import type { OutStream } from '../io.js';
import type { ColorMode, Env } from '../settings.js';

export interface Paint {
	strong(text: string): string;
	red(text: string): string;
	yellow(text: string): string;
	dim(text: string): string;
}

/**
 * `--color` first; then NO_COLOR (any value but the empty one, no-color.org), then FORCE_COLOR and CLICOLOR_FORCE,
 * then a terminal that is not dumb.
 */
export function hasColor(stream: Pick<OutStream, 'isTTY'>, mode: ColorMode, env: Env): boolean {
	if (mode !== 'auto') return mode === 'always';
	if ((env['NO_COLOR'] ?? '') !== '') return false;
	const force = env['FORCE_COLOR'];
	if (force !== undefined) return force !== '0' && force !== 'false';
	if ((env['CLICOLOR_FORCE'] ?? '0') !== '0' && env['CLICOLOR_FORCE'] !== '') return true;
	return stream.isTTY && env['TERM'] !== 'dumb' && env['CLICOLOR'] !== '0';
}

/** The four marks in use; the identity without colour. */
export function paint(enabled: boolean): Paint {
	const mark = (open: number, close: number) => (text: string) =>
		enabled && text !== '' ? `\x1b[${open}m${text}\x1b[${close}m` : text;
	return { strong: mark(1, 22), red: mark(31, 39), yellow: mark(33, 39), dim: mark(2, 22) };
}
