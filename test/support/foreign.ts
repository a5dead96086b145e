/**
 * Another service: the collections of the service document with one record each, without extensions or `GET /`. It
 * accepts and records each write, so that a test can check that none arrived.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { closeNow, listenOn } from './listen.js';

export interface Foreign {
	baseUrl: string;
	readonly writes: string[];
	readonly reads: string[];
	close(): Promise<void>;
}

const created = '2026-11-01T10:00:00.000000';

const list = {
	id: 1,
	name: 'Readers',
	email_reason: 'You asked',
	active_subscribers_count: 1,
	inactive_subscribers_count: 0,
	overall_subscribers_count: 1,
	date_created: created,
};

const subscriber = {
	id: 1,
	list_id: 1,
	email: 'ann@example.com',
	name: 'Ann',
	is_active: true,
	disable_reason: null,
	is_email_verified: false,
	meta: { city: 'Oslo' },
	source: 'API',
	opt_in_signed: null,
	date_created: created,
};

const field = { id: 1, variable: 'city', name: 'City', date_created: created };

const webhook = {
	id: 1,
	url: 'https://hooks.example.com/in',
	type: 'OPENED',
	is_auth_enabled: false,
	login: '',
	password: '',
	date_created: created,
};

const sender = {
	id: 1,
	full_name: '',
	from_email: 'news@example.com',
	reply_to_email: '',
	is_verified: true,
	date_created: created,
};

const report = {
	results: {
		total: {
			sent: 0,
			opened: 0,
			opened_percent: '0',
			redirected_percent: 0,
			softbounced_percent: 0,
			unsubscribed_percent: 0,
			hardbounced_percent: 0,
		},
		data: [],
	},
};

const pageOf = (record: object) => ({ count: 1, next: null, previous: null, results: [record] });

const answers: readonly (readonly [path: RegExp, body: object])[] = [
	[/^\/sub\/lists\/$/, pageOf(list)],
	[/^\/sub\/lists\/1\/$/, list],
	[/^\/sub\/lists\/1\/subscribers\/$/, pageOf(subscriber)],
	[/^\/sub\/lists\/1\/subscribers\/1\/$/, subscriber],
	[/^\/sub\/fields\/$/, pageOf(field)],
	[/^\/sub\/fields\/1\/$/, field],
	[/^\/webhooks\/$/, pageOf(webhook)],
	[/^\/webhooks\/1\/$/, webhook],
	[/^\/senders\/$/, pageOf(sender)],
	[/^\/senders\/1\/$/, sender],
	[/^\/stat\/reports\/events-report\/$/, report],
];

export async function startForeign(): Promise<Foreign> {
	const writes: string[] = [];
	const reads: string[] = [];
	const server = createServer((request, response) => {
		const line = `${request.method} ${request.url}`;
		(request.method === 'GET' ? reads : writes).push(line);
		request.resume();
		request.on('end', () => answer(request, response));
	});
	const port = await listenOn(server);
	return {
		baseUrl: `http://127.0.0.1:${port}`,
		writes,
		reads,
		close: () => closeNow(server),
	};
}

function answer({ method, url = '/' }: IncomingMessage, response: ServerResponse): void {
	const path = new URL(url, 'http://stub').pathname;
	const found = answers.find(([pattern]) => pattern.test(path))?.[1];
	if (method === 'DELETE') response.writeHead(204).end();
	else if (path === '/message/send/') send(response, 200, sent);
	else if (found === undefined) response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>No</h1>');
	else if (method === 'POST') send(response, 201, 'results' in found ? subscriber : found);
	else send(response, 200, found);
}

const sent = {
	messages: [{ to: 'ann@example.com', id: '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f' }],
	result: true,
	messages_created: 1,
};

function send(response: ServerResponse, status: number, body: object): void {
	response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
