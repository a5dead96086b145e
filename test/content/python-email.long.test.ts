// An outside witness: Python's email package under its strict policy finds nothing to complain of.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Content, Envelope } from '../../src/api/messages.js';
import { compileContent } from '../../src/content/compile.js';
import type { Recipient } from '../../src/content/types.js';
import { readHere } from '../support/read-here.js';
import { corpusStrings } from './corpus-strings.js';
import { hasPython, pythonReads, type Testimony } from './python-witness.js';
import {
	content,
	envelope,
	hostile,
	longestBodyLine,
	recipient,
	templates,
	valuesFor,
	wireProblems,
} from './support.js';

interface Case {
	content: Content;
	variables: Record<string, string>;
	name: string;
}

const own = [
	content({ subject: 'a #name# ü', text: '#name# é #note#\r\n#name#' }),
	content({ subject: '#name#', html: '<p>#name# <b>#note#</b>' }),
	content({ subject: 'plain', text: 'plain\r\ntext' }),
	content({
		subject: '漢字 #name#',
		text: `${'漢字'.repeat(200)}#name#`,
		html: `<p>${'漢字'.repeat(200)}#note#`,
	}),
];

function wrapped(text: string): Case[] {
	const constant = text.replaceAll('#', '');
	const short = Array.from(text).slice(0, 900).join('');
	const variables = { v: text, short };
	const dense = `<p>#v#</p>${'日本'.repeat(60)}`;
	return [
		{ content: content({ subject: 'a #short# b', text: constant }), variables, name: text },
		{ content: content({ subject: '#short#', text: `${'x'.repeat(70)} #v#` }), variables, name: '' },
		{ content: content({ subject: short.replaceAll('#', ''), html: dense }), variables, name: '' },
	];
}

function cleanName(name: string): string {
	return Array.from(name.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029<>]/g, ''))
		.slice(0, 120)
		.join('');
}

async function messageOf({ content, variables, name }: Case) {
	const compiled = await compileContent(content, readHere);
	const clean = cleanName(name);
	const person: Recipient = recipient({
		to: clean === '' ? 'a@b.example' : `"${clean.replace(/["\\]/g, '\\$&')}" <a@b.example>`,
		variables,
		listUnsubscribeUrl: 'https://x.example/u/1',
	});
	const sender: Envelope = envelope({
		reply_to: ['r@b.example', 'Ünal <u@b.example>'],
		headers: { 'X-Job': `é ${clean}` },
	});
	const message = compiled.join(sender, person);
	expect(wireProblems(message)).toEqual([]);
	return { message, shown: compiled.preview({ variables }), name: clean };
}

async function expectRead(cases: readonly Case[]): Promise<void> {
	const wanted = await Promise.all(cases.map(messageOf));
	const answers = pythonReads(wanted.map(({ message }) => message));
	expect(answers.flatMap(({ defects }) => defects)).toEqual([]);
	for (const [index, one] of wanted.entries()) {
		const answer = answers[index];
		if (answer !== undefined) expectSame(answer, one);
	}
}

function expectSame(answer: Testimony, { message, shown, name }: Awaited<ReturnType<typeof messageOf>>) {
	if (!answer.encodings.includes('7bit')) expect(longestBodyLine(message)).toBeLessThanOrEqual(76);
	// Python 3.11 keeps the blank between the encoded words of a name, which RFC 2047 s.6.2 drops.
	const [to] = answer.mailboxes['To'] ?? [];
	expect([to?.[0].replace(/\s/g, ''), to?.[1]]).toEqual([name.replace(/\s/g, ''), 'a@b.example']);
	expect(answer.mailboxes['Reply-To']).toEqual([
		['', 'r@b.example'],
		['Ünal', 'u@b.example'],
	]);
	expect(squeeze(answer.subject)).toBe(squeeze(shown.subject));
	expect(answer.date).toBe(Date.UTC(2026, 0, 2, 3, 4, 5) / 1000);
	expect(answer.message_id).toBe('<5f0c7b1e@mail.example.com>');
	expect(body(answer.parts['text/plain'])).toBe(body(shown.text));
	expect(body(answer.parts['text/html'])).toBe(body(shown.html ?? ''));
}

describe.skipIf(!hasPython)("Python's strict email policy (needs python3)", () => {
	it('finds no defect, and reads what was written, over templates and hostile values', async () => {
		const contents = [...own, ...templates().map(({ html }) => content({ subject: '#name# – é', html }))];
		await expectRead(
			contents.flatMap((one, at) => {
				const names = [one.subject, one.text ?? '', one.html ?? '']
					.flatMap((text) => [...text.matchAll(/#(\w+)#/g)])
					.map((match) => match[1] ?? '');
				return fc.sample(valuesFor(names), { numRuns: 5, seed: 7 }).map((variables, index) => ({
					content: one,
					variables,
					name: `Jürgen, ${hostile[(at * 5 + index) % hostile.length]}`,
				}));
			}),
		);
	});

	it('finds no defect in texts that break things, wherever they stand', async () => {
		await expectRead([...hostile, ...corpusStrings()].flatMap(wrapped));
	});
});

function squeeze(text = ''): string {
	return text.replace(/\s+/g, ' ').trim();
}

function body(text = ''): string {
	return text.replace(/\r\n?|\n/g, '\n').replace(/\n+$/, '');
}
