// An outside witness: Python's email package under its strict policy finds nothing to complain of.
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileContent } from '../../src/content/compile.js';
import { content, envelope, hostile, recipient, templates, valuesFor } from './support.js';

const witness = `
import base64, email, json, sys
from email import policy
answers = []
for raw in json.load(sys.stdin):
    try:
        message = email.message_from_bytes(base64.b64decode(raw), policy=policy.strict)
        defects = [repr(d) for part in message.walk() for d in part.defects]
        defects += [repr(d) for key in message.keys() for h in message.get_all(key) for d in getattr(h, 'defects', [])]
        parts = {part.get_content_type(): part.get_content() for part in message.walk() if not part.is_multipart()}
        answers.append({'defects': defects, 'subject': str(message['Subject']), 'parts': parts, 'to': str(message['To'].addresses[0].display_name)})
    except Exception as error:
        answers.append({'defects': [repr(error)], 'subject': '', 'parts': {}, 'to': ''})
json.dump(answers, sys.stdout)
`;
const hasPython = spawnSync('python3', ['-c', 'import email']).status === 0;

interface Answer {
	defects: string[];
	subject: string;
	parts: Record<string, string>;
	to: string;
}

function ask(messages: readonly Buffer[]): Answer[] {
	const input = JSON.stringify(messages.map((message) => message.toString('base64')));
	const run = spawnSync('python3', ['-c', witness], { input, maxBuffer: 256 * 1024 * 1024 });
	expect(run.stderr.toString()).toBe('');
	return JSON.parse(run.stdout.toString());
}

describe("Python's strict email policy", () => {
	it.skipIf(!hasPython)(
		'finds no defect, and reads what was written (needs python3)',
		{ timeout: 120_000 },
		async () => {
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
			const contents = [...own, ...templates().map(({ html }) => content({ subject: '#name# – é', html }))];
			const cases = await Promise.all(
				contents.map(async (one) => {
					const compiled = await compileContent(one, async (html) => html);
					const samples = fc.sample(valuesFor(compiled.variables), { numRuns: 12, seed: 7 });
					return samples.map((variables) => ({ compiled, variables }));
				}),
			);
			const wanted = cases.flat().map(({ compiled, variables }, index) => {
				const name = `Jürgen, ${hostile[index % hostile.length]?.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029<>]/g, '')}`;
				const person = recipient({
					to: `"${name.replace(/["\\]/g, '\\$&')}" <a@b.example>`,
					variables,
					listUnsubscribeUrl: 'https://x.example/u/1',
				});
				const sender = envelope({
					reply_to: ['r@b.example', 'Ünal <u@b.example>'],
					headers: { 'X-Job': `é ${name}` },
				});
				return { message: compiled.join(sender, person), shown: compiled.preview({ variables }), name };
			});
			const answers = ask(wanted.map(({ message }) => message));
			expect(answers.flatMap(({ defects }) => defects)).toEqual([]);
			for (const [index, { shown, name }] of wanted.entries()) {
				const answer = answers[index];
				// Python 3.11 keeps the blank between the encoded words of a name, which RFC 2047 s.6.2 drops.
				expect(answer?.to.replace(/\s/g, '')).toBe(name.replace(/\s/g, ''));
				expect(squeeze(answer?.subject)).toBe(squeeze(shown.subject));
				expect(body(answer?.parts['text/plain'])).toBe(body(shown.text));
				expect(body(answer?.parts['text/html'])).toBe(body(shown.html ?? ''));
			}
		},
	);
});

function squeeze(text = ''): string {
	return text.replace(/\s+/g, ' ').trim();
}

function body(text = ''): string {
	return text.replace(/\r\n?|\n/g, '\n').replace(/\n+$/, '');
}
