/** Content, recipients and hostile values for the tests of content/. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import type { Content, Envelope } from '../../src/api/messages.js';
import type { Recipient } from '../../src/content/types.js';

export const corpora = join(process.env['MAILCTL_CORPORA'] ?? '../shared/corpora', 'html');
export const hasCorpora = existsSync(corpora);

export function templates(): { name: string; html: string }[] {
	if (!hasCorpora) return [];
	return readdirSync(corpora, { recursive: true, encoding: 'utf8' })
		.filter((name) => name.endsWith('.html'))
		.map((name) => ({ name, html: withVariables(readFileSync(join(corpora, name), 'utf8')) }));
}

function withVariables(html: string): string {
	return html
		.replace(/\{\{\s*(\w+)\s*\}\}/g, '#$1#')
		.replace('</p>', ' Dear #name##city#,\r\n#note#<a href="#link#" title="#note#">x</a></p>')
		.replace('</body>', '<img src="#picture#" alt="#name#"></body>');
}

export function content(over: Partial<Content>): Content {
	return { subject: 'Hello', text: null, html: null, disable_inline: true, ...over };
}

export function envelope(over: Partial<Envelope> = {}): Envelope {
	return { from: 'News <news@example.com>', reply_to: [], cc: [], bcc: [], headers: {}, ...over };
}

export function recipient(over: Partial<Recipient> = {}): Recipient {
	return {
		to: 'ada@example.org',
		messageId: '5f0c7b1e@mail.example.com',
		dateMs: Date.UTC(2026, 0, 2, 3, 4, 5),
		variables: {},
		tracking: null,
		listUnsubscribeUrl: null,
		...over,
	};
}

export const hostile = [
	'',
	' ',
	'a\r\nb',
	'a\nb\rc',
	'\r\n.\r\n',
	'.',
	'..dots',
	'From me',
	'F',
	'rom me',
	'trailing  ',
	'\ttab\t',
	`${'x'.repeat(74)}😀`,
	`${'x'.repeat(75)}😀${'é'.repeat(80)}`,
	'w'.repeat(3000),
	'javascript:alert(1)',
	' java\tscript:alert(1)',
	'data:text/html,<script>',
	'https://example.com/?a=1&b=2#c',
	'<script>alert("x")</script>',
	`<>&"'`,
	'line\u2028separator\u2029end\u0085',
	'=?utf-8?Q?=0D=0ABcc:_x@y.z?=',
	'=20=\r\n=',
	'--=_boundary',
	'#name#',
	'日本語のとても長い文章'.repeat(20),
	'\u202egnihton\ufeff\u200b',
	'$& $1 $$ \\0',
];

export const hostileValue: fc.Arbitrary<string> = fc.oneof(
	fc.constantFrom(...hostile),
	fc.string({ unit: 'binary', maxLength: 120 }).map((text) => text.replaceAll('\0', '')),
	fc.string({
		unit: fc.constantFrom('F', 'r', 'o', 'm', ' ', '.', '\r', '\n', '=', '\t', 'é', '😀', 'x'),
		maxLength: 200,
	}),
);

export function valuesFor(names: readonly string[]): fc.Arbitrary<Record<string, string>> {
	return fc.record(Object.fromEntries(names.map((name) => [name, hostileValue])));
}

export function wireProblems(message: Buffer): string[] {
	const text = message.toString('latin1');
	const problems: string[] = [];
	if (/[^\t\r\n -~]/.test(text)) problems.push('an octet that is not printable ASCII');
	if (/\r(?!\n)|(?<!\r)\n/.test(text)) problems.push('a bare CR or LF');
	if (!text.endsWith('\r\n')) problems.push('no line end at the end');
	const lines = text.split('\r\n');
	if (lines.some((line) => line.length > 998)) problems.push('a line over 998');
	const body = lines.slice(lines.indexOf('') + 1);
	if (body.some((line) => /^(From |\.)/.test(line)))
		problems.push('a body line that begins with From or a dot');
	return problems;
}

export function longestBodyLine(message: Buffer): number {
	const text = message.toString('latin1');
	return Math.max(
		...text
			.slice(text.indexOf('\r\n\r\n') + 4)
			.split('\r\n')
			.map((line) => line.length),
	);
}
