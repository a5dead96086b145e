/** Records output as a person sees it, in lines of text, and compares it with the goldens. */
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Outcome } from './program.js';

export function blockOf(line: string, { code, stdout, stderr }: Outcome): string {
	return `${[`$ ${line}`, ...marked('|', stdout), ...marked('!', stderr), `= ${code}`].join('\n')}\n`;
}

export async function expectGolden(name: string, text: string): Promise<void> {
	const meant =
		'If it is meant: npm run goldens, read the diff, and give the reason in test/goldens/intended.md.';
	await expect(text, meant).toMatchFileSnapshot(join(import.meta.dirname, '../../goldens', name));
}

function marked(mark: string, text: string): string[] {
	if (text === '') return [];
	const lines = text.split('\n');
	const isWhole = lines.at(-1) === '';
	if (isWhole) lines.pop();
	return [
		...lines.map((line) => (line === '' ? mark : `${mark} ${visible(line)}`)),
		...(isWhole ? [] : [`${mark}\\ no line end`]),
	];
}

function visible(line: string): string {
	return line
		.replace(
			/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g,
			(char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
		)
		.replace(/[ \t]+$/, (blanks) => blanks.replaceAll(' ', '·').replaceAll('\t', '\\t'));
}
