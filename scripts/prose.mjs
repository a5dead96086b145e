// Checks the English of comments, texts, test names and documents: node scripts/prose.mjs
import { readdirSync, readFileSync } from 'node:fs';

const rules = [
	[/^(Of|What|Where|Those|As|Which|That|Than|By|Behind|Beside) (?!.*\?$)/, 'begins as a fragment'],
	[/(?<!\bthere )\b(is|are|was|were) no (?!longer\b|more than\b)/i, 'negates a noun: write "is not a"'],
	[
		/\b(none of ours|in vain|of its own|is whose|becomes of|is told(?! to\b)|are meant|goes with)\b/,
		'has words that need a second reading',
	],
	[
		/\b(puts? off|takes? no mail|mend(s|ed)?|people and machines|deployments? of others|no second time)\b/,
		'has a word that CONTRIBUTING.md replaces',
	],
];
const found = [];

/**
 * Skips sentences in other languages (letters outside ASCII). Counts only plain words, because other words are code.
 */
function check(file, line, text) {
	for (const sentence of text.split(/(?<=[.!?:;][*)"']*)\s+/)) {
		if (/(?![\x00-\x7f])\p{L}/u.test(sentence)) continue;
		for (const [pattern, why] of rules) if (pattern.test(sentence)) found.push([file, line, why, sentence]);
		const words = sentence
			.split(/\s+/)
			.filter((word) => /^[(*"'`]*[a-z][a-z'-]*[)*"'`]*[,.;:!?]?$/i.test(word));
		const isProse = /[,.;:]/.test(sentence) && !/\b(SELECT|UPDATE|INSERT|FROM|JOIN|AND)\b/.test(sentence);
		if (isProse && words.length > 30) found.push([file, line, 'has over 30 words', sentence]);
	}
}

/**
 * Checks comments, and literals of at least three words. In tests, checks only names, because other literals quote
 * output.
 */
function checkSource(file, text) {
	const parts = /\/\*\*?([\s\S]*?)\*\/|((?:^[\t ]*\/\/.*\n)+)|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`/gm;
	for (const match of text.matchAll(parts)) {
		const [, block, lines, ...literals] = match;
		const isName = !file.startsWith('test/') || /(?:\bit|describe|\))\($/.test(text.slice(0, match.index));
		const literal = literals.find((one) => isName && one !== undefined && /[a-z]+ [a-z]+ /.test(one));
		const words =
			block?.replace(/^\s*\* {3,}.*$/gm, '').replace(/^\s*\*/gm, '') ??
			lines?.replace(/^\s*\/\//gm, '') ??
			literal;
		for (const part of words?.split(/\n(?=\s*\n| {2}\S)/) ?? [])
			check(file, text.slice(0, match.index).split('\n').length, part.replace(/\s+/g, ' ').trim());
	}
}

function checkPage(file, text) {
	const prose = text.replace(/^( *)```[\s\S]*?^\1```/gm, (code) => code.replace(/[^\n]/g, ''));
	for (const match of prose.matchAll(/(?:^(?!#|\|| *$).+\n?)+/gm))
		for (const item of match[0].split(/^ *(?:[-*]|\d+\.) /m))
			check(file, prose.slice(0, match.index).split('\n').length, item.replace(/\s+/g, ' ').trim());
}

const all = (folder) => readdirSync(folder, { recursive: true }).map((name) => `${folder}/${name}`);
const pages = readdirSync('.').filter((name) => name.endsWith('.md'));
for (const file of ['vitest.config.ts', ...['bin', 'scripts', 'src', 'test'].flatMap(all)])
	if (/\.m?[jt]s$/.test(file)) checkSource(file, readFileSync(file, 'utf8'));
for (const file of [...pages, ...all('docs')])
	if (file.endsWith('.md')) checkPage(file, readFileSync(file, 'utf8'));
for (const [file, line, why, sentence] of found)
	console.error(`${file}:${line} ${why}: ${sentence.slice(0, 120)}`);
process.exitCode = found.length === 0 ? 0 : 1;
