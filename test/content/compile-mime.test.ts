import fc from 'fast-check';
import MailComposer from 'nodemailer/lib/mail-composer';
import PostalMime, { type Email } from 'postal-mime';
import { describe, expect, it } from 'vitest';
import type { Content, Envelope } from '../../src/api/messages.js';
import { type CompiledContent, compileContent } from '../../src/content/compile.js';
import type { Recipient } from '../../src/content/types.js';
import { readHere } from '../support/read-here.js';
import { corpusStrings } from './corpus-strings.js';
import {
	content,
	envelope,
	hasCorpora,
	hostileValue,
	longestBodyLine,
	recipient,
	wireProblems,
} from './support.js';

describe('a composed message', () => {
	it('parses to the same result as nodemailer’s message, whatever text surrounds the variables', async () => {
		const literal = fc.oneof(
			hostileValue,
			fc.constantFrom('Dear ', 'F', '\r\n', 'x'.repeat(74), '。', '日本'.repeat(40)),
		);
		const body = fc.option(
			fc.array(literal, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('#v#')),
			{
				nil: null,
			},
		);
		const subject = literal.map((text) => `s ${text}#v#`);
		const source = fc.record({ subject, text: body, html: body });
		const value = hostileValue.map((text) => text.replaceAll('\ufeff', ''));
		await fc.assert(
			fc.asyncProperty(source, value, async (written, v) => {
				const subject = written.subject.replaceAll('\ufeff', '');
				fc.pre(subject.length + 2 * v.length < longSubject);
				const one = await compileContent(content({ ...written, subject }), readHere);
				await expectAlike(one, envelope(), recipient({ variables: { v } }));
			}),
			{ numRuns: 150 },
		);
	});

	it.skipIf(!hasCorpora)(
		'parses to the same result as nodemailer’s message for hostile values (needs the corpora)',
		async () => {
			const one = await compileContent(
				content({ subject: 'a #v#', text: 'x #w#', html: '<p>#w# é</p>' }),
				readHere,
			);
			for (const w of corpusStrings()) {
				const v = Array.from(w.replaceAll('\ufeff', '')).slice(0, 400).join('');
				await expectAlike(one, envelope(), recipient({ variables: { v, w } }));
				const written = content({ subject: v, text: w.replaceAll('#', ''), html: null });
				await expectAlike(await compileContent(written, readHere), envelope(), recipient());
			}
		},
	);

	it('parses to the names and addresses that the caller gave', async () => {
		const word = fc.oneof(
			fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
			fc.constantFrom(
				'Doe, Jane',
				'Dr. O"Brien \\ Sons',
				'Ä',
				'日本語 の 名前'.repeat(8),
				'a@b',
				'(comment)',
				'x'.repeat(300),
			),
		);
		const name = word.map((text) => text.replace(/[\x00-\x1f\x7f<>]|=\?/g, '').trim());
		const one = await compileContent(content({ text: 'x' }), readHere);
		await fc.assert(
			fc.asyncProperty(name, name, fc.array(name, { maxLength: 12 }), async (from, to, cc) => {
				const mailbox = (text: string, address: string) =>
					text === '' ? address : `"${text.replace(/["\\]/g, '\\$&')}" <${address}>`;
				const message = one.join(
					envelope({
						from: mailbox(from, 'a@bücher.example'),
						cc: cc.map((text, index) => mailbox(text, `c${index}@example.com`)),
						headers: { 'X-Name': to },
					}),
					recipient({ to: mailbox(to, 'b@example.com') }),
				);
				expect(wireProblems(message)).toEqual([]);
				const email = await PostalMime.parse(message);
				expect({ ...email.from, name: squeeze(email.from?.name ?? '') }).toEqual({
					name: squeeze(from),
					address: 'a@xn--bcher-kva.example',
				});
				expect((email.to ?? []).map((address) => squeeze(address.name))).toEqual([squeeze(to)]);
				expect((email.cc ?? []).map((address) => squeeze(address.name))).toEqual(cc.map(squeeze));
			}),
			{ numRuns: 120 },
		);
	});
});

const longSubject = 980;

function squeeze(text: string): string {
	return text.replace(/\s+/g, ' ').trim();
}

async function expectAlike(one: CompiledContent, sender: Envelope, person: Recipient): Promise<void> {
	const message = one.join(sender, person);
	expect(wireProblems(message)).toEqual([]);
	if (!/encoding: 7bit/.test(message.toString('latin1')))
		expect(longestBodyLine(message)).toBeLessThanOrEqual(998);
	const ours = await PostalMime.parse(message);
	const theirs = await PostalMime.parse(await composed(one.preview(person), sender, person));
	const subject = one.preview(person).subject;
	expect(readable(ours)).toEqual({
		...readable(theirs),
		...(subject.includes('=?') ? { subject: squeeze(subject) } : {}),
	});
}

type Shown = Pick<Content, 'subject' | 'html'> & { text: string };

async function composed(shown: Shown, sender: Envelope, person: Recipient): Promise<Buffer> {
	const mail = new MailComposer({
		from: sender.from,
		to: person.to,
		subject: shown.subject,
		messageId: `<${person.messageId}>`,
		date: new Date(person.dateMs),
		headers: sender.headers,
		...(shown.text === '' && shown.html !== null ? {} : { text: shown.text }),
		...(shown.html === null ? {} : { html: shown.html }),
		disableFileAccess: true,
		disableUrlAccess: true,
	});
	return await mail.compile().build();
}

function readable(email: Email): object {
	const { from, to, cc, replyTo, subject, messageId, date } = email;
	const body = (text: string | undefined) => (text ?? '').replace(/\r\n?|\n/g, '\n').replace(/\s+$/, '');
	return {
		from,
		to,
		cc,
		replyTo,
		messageId,
		date,
		subject: squeeze(subject ?? ''),
		text: body(email.text),
		html: body(email.html),
		parts: email.attachments.length,
	};
}
