import { generateKeyPairSync } from 'node:crypto';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { createContentCache } from '../../src/content/cache.js';
import { createVerp } from '../../src/delivery/bounces/verp.js';
import { Composer } from '../../src/delivery/composer.js';
import type { SigningKey } from '../../src/delivery/dkim/sign.js';
import { keyringOf } from '../../src/delivery/tracking/tokens.js';
import type { StoredSubmission } from '../../src/store/campaigns.js';
import type { Leased } from '../../src/store/queue.js';
import {
	type ComposingOptions,
	type ComposingThreads,
	createComposingThreads,
} from '../../src/threads/composing.js';
import { readHere } from '../support/read-here.js';

const submission: StoredSubmission = {
	id: 'news',
	type: 'BULK',
	envelope: {
		from: 'News <news@example.com>',
		reply_to: [],
		cc: ['Copy <copy@example.com>', 'late@example.com'],
		bcc: [],
		headers: {},
	},
	tag: null,
	campaign: null,
	content: {
		subject: 'For #name#',
		text: null,
		html: `<style>p { color: red }</style><p>Grüße, #name#</p>${'<a href="https://shop.example.org/">x</a>'.repeat(3)}<a href="#unsubscribe_url#">leave</a>`,
		disable_inline: true,
	},
	content_sha256: 'news',
};
const signing: SigningKey[] = [
	{ selector: 'r', type: 'rsa', key: generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey },
	{ selector: 'e', type: 'ed25519', key: generateKeyPairSync('ed25519').privateKey },
].map((key) => ({ domain: 'example.com', ...key }) as SigningKey);
const settings = {
	publicUrl: 'https://mail.example.org',
	keys: [{ id: 7, secret: Buffer.alloc(32, 1).toString('base64url'), created_at: 1, retires_at: null }],
	bounceAddress: 'bounces@example.com',
};
const keysFor = async () => signing;

const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
	for (const end of endings.splice(0)) await end();
});

function threads(options: Partial<ComposingOptions> = {}): ComposingThreads & { taken(): number } {
	const made = createComposingThreads({ settings, keysFor, cores: 2, ...options });
	endings.push(() => made.close());
	let taken = 0;
	return {
		expect: (source, messages) => made.expect(source, messages),
		take: (message) => {
			const mail = made.take(message);
			if (mail !== null) taken += 1;
			return mail;
		},
		keysFor,
		close: () => made.close(),
		taken: () => taken,
	};
}

function composerWith(ahead?: ComposingThreads): Composer {
	const verp = createVerp(settings.bounceAddress, settings.keys);
	return new Composer({
		reads: { getSubmission: async () => submission, getAttachment: async () => null },
		contents: createContentCache({ askHtml: readHere, maxBytes: 1e6 }),
		publicUrl: settings.publicUrl,
		keyring: keyringOf(settings.keys),
		returnPath: ({ message }) => verp?.addressFor(message) ?? '',
		keysFor,
		...(ahead && { ahead }),
	});
}

type Composed = Awaited<ReturnType<Composer['compose']>>;

function unlent({ ...composed }: Composed): Composed {
	if (composed.kind === 'mail') delete composed.release;
	return composed;
}

function release(composed: Composed): void {
	if (composed.kind === 'mail') composed.release?.();
}

let count = 0;
function leased(more: Partial<Leased> = {}): Leased {
	count += 1;
	return {
		message: `00000000-0000-4000-8000-${String(count).padStart(12, '0')}`,
		fence: 1,
		submission: 'news',
		to: `Reader ${count} <r${count}@example.org>`,
		list_id: 1,
		variables: { name: `Reader ${count} ${'x'.repeat(count % 50)}` },
		attempts: 0,
		created_at: 1_000_000 * count,
		...more,
	};
}

function batch(size = 100): Leased[] {
	return Array.from({ length: size }, () => leased());
}

async function whileComposing(
	ahead: ReturnType<typeof threads>,
	enough: number,
	one: () => Promise<void>,
): Promise<void> {
	const until = performance.now() + 60_000;
	const before = ahead.taken();
	while (ahead.taken() - before < enough) {
		if (performance.now() > until) throw new Error(`threads composed ${ahead.taken()} mails in a minute`);
		await one();
		await turn();
	}
}

function turn(): Promise<void> {
	return new Promise(setImmediate);
}

describe('mails composed by threads', () => {
	it('equal mails composed by the main thread, byte for byte', async () => {
		const ahead = threads();
		const composer = composerWith(ahead);
		const here = composerWith();
		await whileComposing(ahead, 400, async () => {
			const messages = batch();
			const [first] = messages;
			if (first !== undefined) first.stopped_copies = ['late@example.com'];
			composer.expect(messages);
			await turn();
			const mails = await Promise.all(messages.map((message) => composer.compose(message)));
			expect(mails.map(unlent)).toEqual(await Promise.all(messages.map((message) => here.compose(message))));
			for (const mail of mails) release(mail);
		});
	});

	it('stay unchanged until the caller releases their memory', async () => {
		const ahead = threads();
		const composer = composerWith(ahead);
		const here = composerWith();
		const kept: { message: Leased; mail: Composed }[] = [];
		let composed = 0;
		await whileComposing(ahead, 3_000, async () => {
			const messages = batch();
			composer.expect(messages);
			await turn();
			for (const message of messages) {
				const mail = await composer.compose(message);
				// The test keeps one mail in fifty, more than there are slabs, although a thread never gives away its
				// last slab.
				if (composed++ % 50 === 0) kept.push({ message, mail });
				else release(mail);
			}
		});
		for (const { message, mail } of kept) expect(unlent(mail)).toEqual(await here.compose(message));
		for (const { mail } of kept) release(mail);
		await whileComposing(ahead, 500, async () => {
			const messages = batch();
			composer.expect(messages);
			await turn();
			for (const message of messages) release(await composer.compose(message));
		});
	});

	it('are reported as unsendable if a thread cannot compose them', async () => {
		const ahead = threads();
		const composer = composerWith(ahead);
		await whileComposing(ahead, 200, async () => {
			const messages = [...batch(30), leased({ to: 'no address' }), ...batch(30)];
			composer.expect(messages);
			const kinds: string[] = [];
			for (const message of messages) kinds.push((await composer.compose(message)).kind);
			expect(kinds.filter((kind) => kind !== 'mail')).toEqual(['unsendable']);
			expect(kinds[30]).toBe('unsendable');
		});
	});

	it('are composed by the main thread after a composing thread ends', async () => {
		let started = 0;
		// This thread composes nothing, and ends when one of its mails is requested.
		const source = `const { parentPort, workerData } = require('node:worker_threads');
			parentPort.once('message', ([{ id }]) => parentPort.postMessage([{ id, kind: 'value', value: null }]));
			workerData.once('message', () => process.exit(1));`;
		const ends: MessagePort[] = [];
		const spawn = () => {
			started += 1;
			const { port1, port2 } = new MessageChannel();
			ends.push(port1);
			return new Worker(source, { eval: true, workerData: port2, transferList: [port2] });
		};
		const ahead = threads({ spawn });
		const take: ComposingThreads['take'] = (message) => {
			const mail = ahead.take(message);
			if (mail !== null) for (const end of ends) end.postMessage('end');
			return mail;
		};
		const composer = composerWith({ ...ahead, take });
		let kinds: string[] = [];
		await whileComposing(ahead, 1, async () => {
			const messages = batch();
			composer.expect(messages);
			await turn();
			kinds = (await Promise.all(messages.map((message) => composer.compose(message)))).map(
				({ kind }) => kind,
			);
		});
		expect(new Set(kinds)).toEqual(new Set(['mail']));
		const before = started;
		for (let more = 0; more < 5; more += 1) composer.expect(batch());
		await turn();
		expect(started).toBe(before);
	});
});
