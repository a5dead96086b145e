/** A deployment that fails as the first part of its path says: `http://…/500`, `http://…/cut`. */
import { createServer, type ServerResponse } from 'node:http';
import { listenOn } from '../listen.js';

export interface Faulty {
	url: string;
	close(): Promise<void>;
}

const page = { count: 0, next: null, previous: null, results: [] };

/** Besides these every number from 300 on is a status. */
const faults: Readonly<Record<string, (response: ServerResponse) => void>> = {
	cut: (response) => response.socket?.destroy(),
	silent: () => {},
	html: (response) => response.setHeader('content-type', 'text/html').end('<h1>Welcome</h1>'),
	shape: (response) => json(response, 200, { ...page, results: [{ id: 'one' }] }),
	loop: (response) => json(response, 200, { ...page, count: 3, next: '/loop/sub/lists/?page=1' }),
	truncated: (response) => {
		response.setHeader('content-length', 100).write('{"count": 3', () => response.socket?.destroy());
	},
	'429': (response) =>
		json(response.setHeader('retry-after', '0'), 429, { detail: 'Request was throttled.' }),
	'302': (response) => response.writeHead(302, { location: 'https://elsewhere.example/' }).end(),
	'503': (response) => response.writeHead(503, { 'content-type': 'text/html' }).end('<h1>503</h1>'),
};

export async function startFaulty(): Promise<Faulty> {
	const server = createServer((request, response) => {
		const [, fault = '', ...rest] = (request.url ?? '').split('/');
		request.resume();
		request.on('end', () => {
			// Whether it is one of ours is answered soundly: it is not.
			if (request.method === 'GET' && rest.join('') === '')
				return json(response, 404, { detail: 'Not found.' });
			const act =
				faults[fault] ?? (() => json(response, Number(fault), { detail: `Told to answer ${fault}.` }));
			act(response);
		});
	});
	const port = await listenOn(server);
	return {
		url: `http://127.0.0.1:${port}`,
		close: () => {
			server.closeAllConnections();
			return new Promise((resolve) => server.close(() => resolve()));
		},
	};
}

function json(response: ServerResponse, status: number, body: object): void {
	response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
