/** Compiles contents of one kind, with `--expose-gc`, and tells what was counted of them and what the process holds for them. */
import type { Content } from '../../src/api/messages.js';
import { compileContent } from '../../src/content/compile.js';
import { readHtml } from '../../src/content/read-html.js';
import type { CompiledContent, Recipient } from '../../src/content/types.js';
import { orderMail } from './soak.js';

const kinds: Record<string, (number: number) => Partial<Content>> = {
	order: (number) => ({ html: orderMail(number).html_body }),
	plain: (number) => ({ text: `Hello #name#, your code is ${number}.` }),
	links: (number) => ({
		html: many(200, (at) => `<a href="https://shop.example.org/${number}/${at}">Offer ${at}</a>`),
	}),
	variables: (number) => ({ html: many(300, (at) => `<p>${at} #name# of ${number} #city#</p>`) }),
	cyrillic: (number) => ({
		html: many(100, (at) => `<p>Заказ ${number}, посылка ${at} в пути, #name#.</p>`),
	}),
	constant: (number) => ({ text: many(100, (at) => `Line ${at} of order ${number} says nothing new.\n`) }),
	large: (number) => ({
		html: many(3_000, (at) => `<p>Line ${at} of ${number}, dear #name#, is one of many.</p>`),
	}),
};

const kind = kinds[process.argv[2] ?? ''];
const count = Number(process.argv[3]);
if (kind === undefined || globalThis.gc === undefined)
	throw new Error('usage: --expose-gc held-program KIND COUNT');

/** What is compiled and thrown away before: code, and whatever V8 keeps of a kind once. */
const warmUp = 20;
const kept: CompiledContent[] = [];
let counted = 0;

for (let number = 0; number < warmUp; number += 1) await compiled(number);
const before = await inUse();
for (let number = 0; number < count; number += 1) {
	const one = await compiled(warmUp + number);
	kept.push(one.content);
	counted += one.bytes;
}
const held = (await inUse()) - before;
process.stdout.write(JSON.stringify({ counted, held, kept: kept.length }));

async function compiled(number: number): Promise<{ content: CompiledContent; bytes: number }> {
	const source = {
		subject: `Order ${number}`,
		text: null,
		html: null,
		disable_inline: false,
		...kind?.(number),
	};
	let bytes = 0;
	const read = async (question: Parameters<typeof readHtml>[0]) =>
		structuredClone(readHtml(question, (html) => html));
	const content = await compileContent(source, read, (sum) => {
		bytes = sum;
	});
	const envelope = { from: 'desk@example.org', reply_to: [], cc: [], bcc: [], headers: {} };
	content.join(envelope, recipientOf(number, content.links));
	return { content, bytes };
}

function recipientOf(number: number, links: number): Recipient {
	return {
		to: `reader${number}@example.org`,
		messageId: `${number}@mail.example.com`,
		dateMs: 0,
		variables: { name: `Reader ${number}`, city: 'Oslo' },
		tracking: {
			openUrl: 'https://mail.example.com/o/1',
			clickUrl: 'https://mail.example.com/c/1/',
			clickEnds: Array.from({ length: links }, (_, at) => String(at)),
		},
		listUnsubscribeUrl: null,
	};
}

async function inUse(): Promise<number> {
	for (let round = 0; round < 3; round += 1) {
		globalThis.gc?.();
		await new Promise((resolve) => setImmediate(resolve));
	}
	const { heapUsed, arrayBuffers } = process.memoryUsage();
	return heapUsed + arrayBuffers;
}

function many(count: number, one: (at: number) => string): string {
	return Array.from({ length: count }, (_, at) => one(at)).join('');
}
