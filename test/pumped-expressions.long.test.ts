/** Each regular expression must take linear time for any text. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from 'esbuild';
import { parseAst } from 'vite';
import { describe, expect, it } from 'vitest';
import { separators } from '../src/delivery/bounces/wordings.js';
import { startCpuClock } from './support/cpu-clock.js';

const root = join(import.meta.dirname, '../src');
const length = 40_000;
const maxMs = 30;
/**
 * A text of an eighth of the length is skipped if it takes less than this. With quadratic time, 0.5 ms for an eighth
 * means 30 ms for the whole text.
 */
const trivialMs = 0.25;

interface Found {
	path: string;
	expression: RegExp;
}

/** Returns the regular expression literals of a source, found by a parser. */
function expressionsOf(path: string): Found[] {
	const { code } = transformSync(readFileSync(join(root, path), 'utf8'), { loader: 'ts', target: 'node20' });
	const found: Found[] = [];
	const visit = (node: unknown) => {
		if (typeof node !== 'object' || node === null) return;
		if ('regex' in node && isLiteral(node.regex))
			found.push({ path, expression: new RegExp(node.regex.pattern, node.regex.flags) });
		for (const child of Object.values(node)) visit(child);
	};
	visit(parseAst(code));
	return found;
}

function isLiteral(value: unknown): value is { pattern: string; flags: string } {
	return typeof value === 'object' && value !== null && 'pattern' in value && 'flags' in value;
}

const always = [
	...[
		'a',
		'A',
		'é',
		'0',
		' ',
		'\n',
		'\r\n',
		'\t',
		'"',
		"'",
		',',
		';',
		'.',
		'-',
		'=',
		'<',
		'>',
		'\\',
		'/',
		'(',
		')',
		'[',
	],
	...['@', 'a@', '<a@b>', '=?a?b?', '5.', '550 ', '5.1.1 ', '=-', '. ', ': ', 'a ', 'a: ', '0.', '\ue000 '],
];

function pumpsOf({ source }: RegExp): Set<string> {
	const plain = source.replace(
		/\\[nrtsSdDwWbB]|\\u[\da-f]{4}|\\x[\da-f]{2}|\\p\{\w+\}|\(\?(?:<?[=!]|:)/gi,
		' ',
	);
	const signs = [...new Set(plain.replace(/[A-Za-z\d]/g, ''))];
	const words = plain.match(/[A-Za-z]{2,}/g) ?? [];
	return new Set([
		...always,
		...signs,
		...words,
		...words.map((word) => `${word} `),
		...signs.map((sign) => `${sign}a`),
	]);
}

function timeOf(work: () => void): number {
	const cpuMs = startCpuClock();
	work();
	return cpuMs();
}

function isTrivial(work: () => void): boolean {
	const began = performance.now();
	work();
	return performance.now() - began < trivialMs;
}

const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
const composed = separators.map((expression) => ({ path: 'delivery/bounces/wordings.ts', expression }));
const found = [...files.flatMap(expressionsOf), ...composed];

describe('regular expressions', () => {
	it('are found in the sources, and there are more than 300', () =>
		expect(found.length).toBeGreaterThan(300));

	it.each(found)('in $path take linear time for 40 kB of any text: $expression', ({ expression }) => {
		expect(slowOn(expression)).toBeNull();
	});
});

function slowOn(expression: RegExp): string | null {
	const texts = (run: string) => [run, `${run}\u0001`, `x${run}\u0001y`, `<${run}\u0001`, `{"${run}\u0001`];
	// The fastest of three runs counts, because garbage collection may slow one.
	const timeOn = (text: string) => {
		const work = () => void text.replace(expression, '');
		const first = timeOf(work);
		return first <= maxMs ? first : Math.min(first, timeOf(work), timeOf(work));
	};
	for (const unit of pumpsOf(expression)) {
		const ofLength = (size: number) => texts(unit.repeat(Math.ceil(size / unit.length)));
		for (const [at, text] of ofLength(length / 8).entries()) {
			// Short texts come first, so that quadratic time is found before it takes seconds.
			if (isTrivial(() => void text.replace(expression, ''))) continue;
			const shortMs = timeOn(text);
			const longMs = shortMs > maxMs ? shortMs : timeOn(ofLength(length)[at] ?? '');
			// The long text is eight times as long. Replacing each character costs more, so up to 24 times the time is
			// allowed.
			if (longMs > maxMs && (shortMs > maxMs || longMs > 24 * shortMs))
				return JSON.stringify(text.slice(0, 16));
		}
	}
	return null;
}
