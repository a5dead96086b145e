// Composing a message from compiled content, compared with compiling the content for each message.
import juice from 'juice';
import MailComposer from 'nodemailer/lib/mail-composer';
import { type CompiledContent, compileContent } from '../../src/content/compile.js';
import { htmlValue, parseTemplate, renderTemplate } from '../../src/content/fill-variables.js';
import { findLinks } from '../../src/content/links.js';
import { readHtml } from '../../src/content/read-html.js';
import { textAlternative } from '../../src/content/text-alternative.js';
import type { Recipient } from '../../src/content/types.js';
import { type Keyring, trackingKey, trackingOf } from '../../src/delivery/tracking/tokens.js';
import { newsletter } from '../content/newsletter.js';
import { content, envelope, hasCorpora, recipient, templates } from '../content/support.js';
import { type Bench, type BenchRow, median } from './bench.js';

const rounds = 15;
const joinsPerRound = 200;

const keyring: Keyring = [trackingKey(1, Buffer.alloc(32, 7))];

export const bench: Bench = {
	subject: `milliseconds a message, median of ${rounds} rounds in turn; ours is whole and encoded, the limit is not`,
	run: async () => {
		const rows: BenchRow[] = [];
		for (const { name, html } of documents()) {
			const compiled = await compileContent(
				content({ subject: 'News for #name#', html, disable_inline: false }),
				async (question) => readHtml(question, juice),
			);
			for (const warning of compiled.warnings) throw new Error(warning);
			rows.push(await againstJuice(name, html, compiled), await againstComposer(name, html, compiled));
		}
		return rows;
	},
};

function documents(): { name: string; html: string }[] {
	const own = { name: 'newsletter, 40 links', html: newsletter };
	if (!hasCorpora) return [own];
	const wanted = ['leemunroe-email.html', 'postmark/templates/receipt.html'];
	return [own, ...templates().filter(({ name }) => wanted.includes(name))];
}

function againstJuice(name: string, html: string, compiled: CompiledContent): Promise<BenchRow> {
	const subject = parseTemplate('News for #name#');
	return measured(`${name}: body per recipient`, compiled, {
		limit: 'juice + links + variables',
		goal: '≥ 50, then 150',
		perRound: 1,
		make: (person) => {
			const rewritten = withLinks(juice(html), person);
			const body = renderTemplate(parseTemplate(rewritten), person.variables, htmlValue);
			return body + renderTemplate(subject, person.variables, htmlValue);
		},
	});
}

function againstComposer(name: string, html: string, compiled: CompiledContent): Promise<BenchRow> {
	const ready = juice(html);
	const text = parseTemplate(textAlternative(ready));
	return measured(`${name}: whole message`, compiled, {
		limit: 'links + variables + MailComposer',
		goal: '–',
		perRound: 3,
		make: async (person) => {
			const { variables } = person;
			const sender = envelope();
			const mail = new MailComposer({
				from: sender.from,
				to: person.to,
				subject: `News for ${variables['name']}`,
				messageId: `<${person.messageId}>`,
				date: new Date(person.dateMs),
				text: renderTemplate(text, variables, (value) => value),
				html: renderTemplate(parseTemplate(withLinks(ready, person)), variables, htmlValue),
			});
			return await mail.compile().build();
		},
	});
}

function withLinks(html: string, { tracking }: Recipient): string {
	let out = '';
	let from = 0;
	for (const [position, { start, end }] of findLinks(html).entries()) {
		out += `${html.slice(from, start)}${tracking?.clickUrl}${tracking?.clickEnds[position]}`;
		from = end;
	}
	return out + html.slice(from).replace('</body>', `<img src="${tracking?.openUrl}"></body>`);
}

interface Limit {
	limit: string;
	goal: string;
	perRound: number;
	make(person: Recipient): unknown;
}

async function measured(
	what: string,
	compiled: CompiledContent,
	{ limit, goal, perRound, make }: Limit,
): Promise<BenchRow> {
	const theirs: number[] = [];
	const ours: number[] = [];
	const sender = envelope();
	for (let round = 0; round < rounds; round++) {
		const people = Array.from({ length: joinsPerRound }, (_, index) =>
			reader(round * joinsPerRound + index, compiled.links),
		);
		theirs.push(await msEach(people.slice(0, perRound), make));
		ours.push(await msEach(people, (person) => compiled.join(sender, person)));
	}
	const [limitMs, oursMs] = [median(theirs), median(ours)];
	return {
		what,
		limit,
		limitMedian: `${limitMs.toFixed(2)} ms`,
		oursMedian: `${oursMs.toFixed(4)} ms`,
		ratio: limitMs / oursMs,
		goal,
	};
}

async function msEach(people: readonly Recipient[], make: (person: Recipient) => unknown): Promise<number> {
	const began = performance.now();
	for (const person of people) await make(person);
	return (performance.now() - began) / people.length;
}

function reader(index: number, links: number): Recipient {
	const message = `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
	return recipient({
		to: `Reader ${index} <reader${index}@example.org>`,
		messageId: `${message}@example.com`,
		variables: {
			name: `Jürgen ${index}`,
			email: `reader${index}@example.org`,
			city: index % 2 === 0 ? 'Köln' : 'Oslo',
			offer: `https://shop.example/offer/${index}`,
			unsubscribe_url: `https://m.example/u/${index}`,
		},
		tracking: trackingOf({ publicUrl: 'https://m.example', keyring, message }, links),
		listUnsubscribeUrl: `https://m.example/u/${index}`,
	});
}
