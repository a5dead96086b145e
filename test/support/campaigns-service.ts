/**
 * A service on a real socket that records the recipients and content of each send call. It has the lists and the send
 * call of the service document, without extensions. A test can set the reaction to each call.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { SendRequest } from '../../src/api/inputs.js';
import type { Subscriber } from '../../src/api/records.js';
import { closeNow, listenOn } from './listen.js';

export interface MailService {
	baseUrl: string;
	readonly calls: SendRequest[];
	readonly messages: { to: string; id: string; context: Readonly<Record<string, string>> }[];
	readonly busiest: number;
	timesSent(): Record<string, number>;
	close(): Promise<void>;
}

export type Reaction =
	| { kind: 'make'; delayMs?: number; but?: readonly string[] }
	| { kind: 'cut' }
	| { kind: 'drop' }
	| { kind: 'refuse'; status: number; body?: unknown; headers?: Record<string, string> };

export interface MailServiceOptions {
	react?: (request: SendRequest, number: number) => Reaction;
	subscribers?: readonly Partial<Subscriber>[];
	pageSize?: number;
}

export async function startMailService(options: MailServiceOptions = {}): Promise<MailService> {
	const calls: SendRequest[] = [];
	const messages: { to: string; id: string; context: Readonly<Record<string, string>> }[] = [];
	let busy = 0;
	let busiest = 0;
	const make = (request: SendRequest, but: readonly string[] = []) =>
		request.to
			.filter((to) => !but.includes(to))
			.map((to) => {
				const message = { to, id: idOf(messages.length + 1), context: request.context ?? {} };
				messages.push(message);
				return { to, id: message.id };
			});
	const take = (request: SendRequest, response: ServerResponse) => {
		calls.push(request);
		const reaction = options.react?.(request, calls.length) ?? { kind: 'make' };
		if (reaction.kind === 'refuse')
			return answer(response, reaction.status, reaction.body ?? {}, reaction.headers);
		if (reaction.kind === 'drop') return response.destroy();
		const made = make(request, reaction.kind === 'make' ? reaction.but : []);
		if (reaction.kind === 'cut') return response.destroy();
		busy += 1;
		busiest = Math.max(busiest, busy);
		setTimeout(() => {
			busy -= 1;
			answer(response, 200, { messages: made, result: true, messages_created: made.length });
		}, reaction.delayMs ?? 0);
	};
	const server = createServer(async (request, response) => {
		const path = new URL(request.url ?? '/', 'http://service').pathname;
		if (path === '/message/send/') return take(await bodyOf(request), response);
		if (path === '/sub/lists/1/') return answer(response, 200, list(options));
		if (path === '/sub/lists/') return answer(response, 200, pageOf([list(options)], request, 100));
		if (path === '/sub/lists/1/subscribers/')
			return answer(response, 200, pageOf(people(options), request, options.pageSize ?? 100));
		if (path === '/sub/fields/') return answer(response, 200, pageOf([], request, 100));
		answer(response, 404, { detail: 'Not found.' });
	});
	const port = await listenOn(server);
	return {
		baseUrl: `http://127.0.0.1:${port}`,
		calls,
		messages,
		get busiest() {
			return busiest;
		},
		timesSent: () => {
			const times: Record<string, number> = {};
			for (const { to } of messages) times[to] = (times[to] ?? 0) + 1;
			return times;
		},
		close: () => closeNow(server),
	};
}

const created = '2026-11-01T10:00:00.000000';

function list({ subscribers = [] }: MailServiceOptions) {
	const active = subscribers.filter(({ is_active = true }) => is_active).length;
	return {
		id: 1,
		name: 'Readers',
		email_reason: 'You asked',
		active_subscribers_count: active,
		inactive_subscribers_count: subscribers.length - active,
		overall_subscribers_count: subscribers.length,
		date_created: created,
	};
}

function people({ subscribers = [] }: MailServiceOptions): Subscriber[] {
	return subscribers.map((one, index) => ({
		id: index + 1,
		list_id: 1,
		email: `p${index + 1}@example.com`,
		name: '',
		is_active: true,
		disable_reason: null,
		is_email_verified: false,
		meta: {},
		source: 'API',
		opt_in_signed: null,
		date_created: created,
		...one,
	}));
}

function pageOf(all: readonly object[], { url = '/' }: IncomingMessage, size: number) {
	const page = Number(new URL(url, 'http://service').searchParams.get('page') ?? 1);
	const results = all.slice((page - 1) * size, page * size);
	const next = page * size < all.length ? `http://elsewhere/?page=${page + 1}` : null;
	return { count: all.length, next, previous: null, results };
}

function idOf(number: number): string {
	return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
}

async function bodyOf(request: IncomingMessage): Promise<SendRequest> {
	const chunks: Buffer[] = [];
	for await (const chunk of request) chunks.push(chunk as Buffer); // chunks are buffers, because no encoding is set
	return JSON.parse(Buffer.concat(chunks).toString('utf8')) as SendRequest; // only this client sends it
}

function answer(response: ServerResponse, status: number, body: unknown, headers = {}): void {
	response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
