// A client as the service's own is written, which knows nothing of mailctl: its five kinds of call against `serve`.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { type Serving, startServing } from '../support/serving.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

type Json = Record<string, unknown>;

class ServiceClient {
	readonly #base: string;
	readonly #token: string;
	constructor(base: string, token: string) {
		this.#base = base;
		this.#token = token;
	}

	async request(method: string, path: string, body?: Json): Promise<{ status: number; data: Json }> {
		const response = await fetch(`${this.#base}${path}`, {
			method,
			headers: {
				'X-Secure-Token': this.#token,
				Accept: 'application/json',
				'Content-Type': 'application/json',
			},
			...(body !== undefined && { body: JSON.stringify(body) }),
		});
		const text = await response.text();
		return { status: response.status, data: text === '' ? {} : JSON.parse(text) };
	}

	/** Counts pages by itself until there is no next one. */
	async all(path: string): Promise<Json[]> {
		const records: Json[] = [];
		for (let page = 1; ; page += 1) {
			const { data } = await this.request('GET', `${path}?page=${page}`);
			records.push(...(data['results'] as Json[]));
			if (data['next'] === null) return records;
		}
	}
}

describe("the service's own client", () => {
	let sink: SmtpSink;
	let serving: Serving;
	let client: ServiceClient;
	beforeAll(async () => {
		sink = await startSmtpSink();
		serving = await startServing({ smtp: sink.port });
		client = new ServiceClient(serving.url, serving.token);
	});
	afterAll(async () => {
		await serving.stop();
		await sink.close();
	});

	it('reads a collection page by page', async () => {
		const list = await client.request('POST', '/sub/lists/', { name: 'News', email_reason: 'asked' });
		const people = `/sub/lists/${list.data['id']}/subscribers/`;
		const emails = Array.from({ length: 101 }, (_, n) => `p${n}@example.com`);
		for (const email of emails)
			expect(await client.request('POST', people, { email })).toMatchObject({ status: 201 });
		expect((await client.all(people)).map(({ email }) => email)).toEqual(emails);
		expect(await client.request('GET', `${people}?page=3`)).toEqual({
			status: 404,
			data: { detail: 'Invalid page.' },
		});
	});

	it('sends without tracking, and follows the message by its events', async () => {
		const { status, data } = await client.request('POST', '/message/send/', {
			type: 'TRANSACTIONAL',
			from: ['news@example.com'],
			to: ['ann@example.com'],
			subject: 'Your password',
			html_body: '<p><a href="https://example.com/reset?key=1">Reset</a></p>',
			disable_tracking: true,
		});
		expect({ status, data }).toMatchObject({ status: 200, data: { result: true, messages_created: 1 } });
		const [{ id } = {}] = data['messages'] as Json[];
		const events = () => client.request('GET', `/message/events/${id}/`);
		await eventually(async () => expect((await events()).data['results']).toHaveLength(2));
		const date = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/);
		const once = { date, count: 1, url: null, machine: false };
		expect(await events()).toEqual({
			status: 200,
			data: {
				results: [
					{ type: 'CREATED', ...once },
					{ type: 'SENT', ...once },
				],
			},
		});
		const mail = String(sink.received[0]?.raw).replaceAll('=\r\n', '');
		expect(mail).toMatch(/https:\/\/example\.com\/reset\?key=(3D)?1/);
		expect(mail).not.toContain(serving.url);
		const unknown = await client.request('GET', '/message/events/77777777-0000-4000-8000-000000000000/');
		expect(unknown).toEqual({ status: 404, data: { detail: 'Not found.' } });
	});

	it('keeps the senders of the project', async () => {
		const names = { full_name: 'The desk', from_email: 'desk@example.com', reply_to_email: '' };
		const made = await client.request('POST', '/senders/', names);
		expect(made).toMatchObject({ status: 201, data: { ...names, is_verified: true } });
		const path = `/senders/${made.data['id']}/`;
		expect(await client.request('POST', '/senders/', { from_email: 'DESK@example.com' })).toEqual({
			status: 400,
			data: { from_email: ['This field must be unique.'] },
		});
		const reply_to_email = 'help@example.com';
		const changed = { ...made.data, reply_to_email };
		expect(await client.request('PATCH', path, { reply_to_email })).toEqual({ status: 200, data: changed });
		expect(await client.request('GET', path)).toEqual({ status: 200, data: changed });
		expect((await client.all('/senders/')).map(({ from_email }) => from_email)).toEqual([
			'news@example.com',
			'desk@example.com',
		]);
		expect(await client.request('PUT', path, { full_name: 'Desk' })).toEqual({
			status: 400,
			data: { from_email: ['This field is required.'] },
		});
		expect(await client.request('DELETE', path)).toEqual({ status: 204, data: {} });
		expect(await client.request('GET', path)).toEqual({ status: 404, data: { detail: 'Not found.' } });
	});
});
