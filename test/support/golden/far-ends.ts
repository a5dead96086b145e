import { createServer, type ServerResponse } from 'node:http';
import { listenOn } from '../listen.js';
import { type NameServer, startNameServer } from '../name-server.js';
import { type SmtpSink, startSmtpSink } from '../smtp-sink.js';
import { startTarget } from '../target.js';

interface FarEnds {
	values: Record<string, string>;
	names: Record<string, string>;
	sink: SmtpSink;
	close(): Promise<void>;
}

const refusals: Readonly<Record<string, readonly [code: number, text: string]>> = {
	refused: [550, '5.1.1 no such user'],
	later: [451, '4.7.1 try again later'],
	spam: [554, '5.6.0 message looks like spam'],
	full: [552, '5.2.2 mailbox full'],
};

export async function startFarEnds(): Promise<FarEnds> {
	const sink = await startSmtpSink({
		onRcptTo: ({ address }, _session, callback) => {
			const [code, text] = refusals[address.split('@')[0] ?? ''] ?? [];
			callback(code === undefined ? null : Object.assign(new Error(text), { responseCode: code }));
		},
	});
	const hook = await startTarget(204);
	const badHook = await startTarget(500);
	const goneHook = await startTarget(410);
	const dns: NameServer = await startNameServer({
		'example.com': { MX: [[10, 'mx.example.com']], TXT: ['v=spf1 a:mail.example.com -all'] },
		'mx.example.com': { A: ['192.0.2.25'] },
	});
	const faulty = await startFaulty();
	const smtp = `127.0.0.1:${sink.port}`;
	const origin = ({ url }: { url: string }) => new URL(url).host;
	return {
		values: {
			smtp,
			hook: hook.url,
			badHook: badHook.url,
			goneHook: goneHook.url,
			dns: dns.address,
			faulty: faulty.url,
		},
		names: {
			smtp,
			hook: origin(hook),
			'bad-hook': origin(badHook),
			'gone-hook': origin(goneHook),
			dns: dns.address,
			faulty: origin(faulty),
		},
		sink,
		close: async () => {
			dns.close();
			await Promise.all([sink.close(), hook.close(), badHook.close(), goneHook.close(), faulty.close()]);
		},
	};
}

interface Faulty {
	url: string;
	close(): Promise<void>;
}

const page = { count: 0, next: null, previous: null, results: [] };

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

async function startFaulty(): Promise<Faulty> {
	const server = createServer((request, response) => {
		const [, fault = '', ...rest] = (request.url ?? '').split('/');
		request.resume();
		request.on('end', () => {
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
