// Content that could stop a server: it keeps answering other clients, refuses impossible mails and sends the rest.
import PostalMime from 'postal-mime';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { observe } from '../support/bystander.js';
import { isBuilt } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { memoryOf } from '../support/memory.js';
import { type Serving, startServing } from '../support/serving.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

const mebibyte = 1024 * 1024;
const full = 2 * mebibyte;
const filled = (piece: string, size = full) => piece.repeat(Math.floor(size / piece.length));
const nested = (open: string, close: string) => {
	const levels = Math.floor(full / (open.length + close.length));
	return open.repeat(levels) + close.repeat(levels);
};

const nesting = 'Ensure the HTML is nested no deeper than 400 elements.';
const variables = 'Ensure the body has no more than 20,000 variables.';

const refused: [string, string, string][] = [
	['lists in lists', nested('<ul><li>', '</li></ul>'), nesting],
	['what is never closed', filled('<b>'), nesting],
	['variables without a value', filled('#a#'), variables],
];

const taken: [string, string][] = [
	['items with implied end tags', `<ul>${filled('<li>x', full - 9)}`],
	['rows', `<table>${filled('<tr><td>x', full - 9)}`],
	['linked images', filled('<a href="https://x.example/"><img src="a.png" alt="abcdefgh"></a>')],
	['attributes', `<p ${filled('a=b ', full - 9)}>`],
	[
		'a style sheet',
		`<style>${filled('.a p,', mebibyte)} b{color:red}</style>${filled('<p class="a">x', mebibyte - 99)}`,
	],
	['lists nested 400 deep, repeated', filled(`${'<ul><li>'.repeat(190)}x${'</li></ul>'.repeat(190)}`)],
	['variables without a value', filled('#a#', 60_000)],
];

let calm: Serving;
const running: Serving[] = [];
const sinks: SmtpSink[] = [];
beforeAll(async () => {
	calm = await startServing();
});
afterAll(() => calm.stop('SIGKILL'));
afterEach(async () => {
	await Promise.all(running.splice(0).map((one) => one.stop('SIGKILL')));
	await Promise.all(sinks.splice(0).map((one) => one.close()));
});

async function serve(): Promise<{ serving: Serving; sink: SmtpSink }> {
	const sink = await startSmtpSink();
	sinks.push(sink);
	const serving = await startServing({ smtp: sink.port });
	running.push(serving);
	return { serving, sink };
}

async function post(
	serving: Serving,
	path: string,
	body: object,
): Promise<{ status: number; body: unknown }> {
	const headers = { 'Content-Type': 'application/json' };
	const answer = await serving.fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
	return { status: answer.status, body: await answer.json() };
}

const send = { from: 'news@example.com', to: ['a@example.com'], subject: 'Hello' };

async function sent(serving: Serving, body: object): Promise<string> {
	const answer = await post(serving, '/message/send/', { ...send, ...body });
	expect(answer).toMatchObject({ status: 200 });
	const { messages } = answer.body as { messages: { id: string }[] };
	return messages[0]?.id ?? '';
}

/** Returns the raw message in Base64. */
async function rawOf(serving: Serving, id: string): Promise<string> {
	const answer = await serving.fetch(`/ext/messages/${id}/raw/`);
	const body = await answer.json();
	expect({ status: answer.status, body }).toMatchObject({ status: 200 });
	return (body as { raw_base64: string }).raw_base64;
}

async function finalState(serving: Serving, id: string): Promise<string> {
	return await eventually(async () => {
		const { state } = (await (await serving.fetch(`/ext/messages/${id}/`)).json()) as { state: string };
		if (['queued', 'leased', 'deferred'].includes(state)) throw new Error(`it is ${state}`);
		return state;
	});
}

describe.runIf(isBuilt)('a server that receives two mebibytes of HTML', () => {
	it('rejects deep nesting and too many variables, in messages and templates', async () => {
		const { serving } = await serve();
		const seen = await observe({ attacked: serving, calm }, async () => {
			for (const [, html, message] of refused) {
				const no = { status: 400, body: { html_body: [message] } };
				expect(await post(serving, '/message/send/', { ...send, html_body: html })).toEqual(no);
				expect(await post(serving, '/ext/templates/', { name: 'x', html_body: html })).toEqual(no);
			}
		});
		expect(Object.keys(seen.statuses)).toEqual(['200']);
		expect(seen.p99).toBeLessThan(seen.patience);
	});

	it.each(taken)('delays no other client, and sends the mail: %s', async (what, html) => {
		const { serving, sink } = await serve();
		const seen = await observe({ attacked: serving, calm }, async () => {
			const id = await sent(serving, { subject: '#view_url#', html_body: html });
			const raw = await rawOf(serving, id);
			// Parsing the whole mail takes seconds, and would block the clients in this process.
			const [head = ''] = Buffer.from(raw, 'base64').toString('latin1').split('\r\n\r\n', 1);
			const { subject } = await PostalMime.parse(head);
			const path = /\/v\/\S+$/.exec(subject ?? '')?.[0] ?? '';
			expect((await serving.fetch(path, { token: null })).status).toBe(200);
			expect(await finalState(serving, id)).toBe('sent');
		});
		expect(sink.received).toHaveLength(1);
		expect(Object.keys(seen.statuses)).toEqual(['200']);
		expect(seen.p99).toBeLessThan(seen.patience);
		expect(seen.peakMb).toBeLessThan(1_200);
		const { p99, patience, peakMb } = seen;
		process.stderr.write(
			`${what}: p99 ${p99.toFixed(0)} of ${patience.toFixed(0)} ms, ${peakMb.toFixed(0)} MB\n`,
		);
	});
});

describe.runIf(isBuilt)('a server that puts long values into messages', () => {
	it('rejects a send if the values make the message larger than 16 MiB or the subject longer than 998 characters', async () => {
		const { serving } = await serve();
		const before = memoryOf(serving.process.pid).residentMb;
		const seen = await observe({ attacked: serving, calm }, async () => {
			const k = 'x'.repeat(1_000_000);
			const large = await post(serving, '/message/send/', {
				...send,
				text_body: '#k# '.repeat(400),
				context: { k },
			});
			expect(large).toEqual({
				status: 400,
				body: {
					context: [
						'With this context the message would have 400,000,400 bytes with its values, and may have 16,777,216.',
					],
				},
			});
			const many = await post(serving, '/message/send/', {
				...send,
				html_body: filled('#a#'),
				context: { a: '"&<>'.repeat(10) },
			});
			expect(many.status).toBe(400);
			const long = await post(serving, '/message/send/', {
				...send,
				subject: '#k#'.repeat(300),
				text_body: 'x',
				context: { k },
			});
			expect(long.body).toEqual({
				context: [
					'With this context the subject would have 300,000,000 characters with its values, and may have 998.',
				],
			});
			const short = { subject: '#k#'.repeat(300), text_body: 'x', context: { k: 'abc' } };
			expect(await finalState(serving, await sent(serving, short))).toBe('sent');
			const id = await sent(serving, { text_body: '#k# '.repeat(16), context: { k } });
			expect(await finalState(serving, id)).toBe('sent');
		});
		expect(Object.keys(seen.statuses)).toEqual(['200']);
		expect(seen.p99).toBeLessThan(seen.patience);
		expect(seen.peakMb - before).toBeLessThan(400);
	});

	it.each([
		{
			what: 'is too large',
			content: { text_body: '#k# '.repeat(4_000) },
			says: 'the message would have 40,004,000 bytes with its values, and may have 16,777,216',
		},
		{
			what: 'has a subject that is too long',
			content: { subject: 'Hi #k#', text_body: 'x' },
			says: 'the subject would have 10,003 characters with its values, and may have 998',
		},
	])('sends one recipient’s message even if the message to another $what', async ({ content, says }) => {
		const { serving, sink } = await serve();
		const { id: list_id } = (await post(serving, '/sub/lists/', { name: 'News', email_reason: 'x' }))
			.body as { id: number };
		await post(serving, '/sub/fields/', { name: 'k', variable: 'k' });
		const people = [
			{ email: 'large@example.com', meta: { k: 'x'.repeat(10_000) } },
			{ email: 'small@example.com', meta: { k: 'x' } },
		];
		for (const person of people) {
			const added = await post(serving, `/sub/lists/${list_id}/subscribers/`, person);
			expect(added).toMatchObject({ status: 201 });
		}
		const to = people.map(({ email }) => email);
		const answer = await post(serving, '/message/send/', { ...send, ...content, list_id, to });
		expect(answer).toMatchObject({ status: 200 });
		const { messages } = answer.body as { messages: { id: string; to: string }[] };
		const idOf = (email: string) => messages.find((one) => one.to === email)?.id ?? '';
		expect(await finalState(serving, idOf('small@example.com'))).toBe('sent');
		const large = idOf('large@example.com');
		expect(await finalState(serving, large)).toBe('failed');
		const found = await (await serving.fetch(`/ext/messages/${large}/`)).json();
		const reason = `the content cannot be composed: ${says}`;
		expect(found).toMatchObject({ last_reply: reason, attempts: 1 });
		const raw = await serving.fetch(`/ext/messages/${large}/raw/`);
		expect({ status: raw.status, body: await raw.json() }).toEqual({
			status: 400,
			body: { state: [reason] },
		});
		expect(sink.received).toHaveLength(1);
	});
});
