/** A proxy that runs a test's `strike` at a request, before it forwards the request or after the service has answered. */
import { Agent, createServer, type ServerResponse, request as sendRequest } from 'node:http';
import { listenOn } from './listen.js';

export interface KillingProxy {
	baseUrl: string;
	arm(strike: Strike): void;
	disarm(): void;
	close(): Promise<void>;
}

interface Strike {
	at: number;
	when: 'before' | 'after';
	only?: string | RegExp;
	lasts?: true;
	strike: (response: ServerResponse) => void;
}

export async function startKillingProxy(target: string): Promise<KillingProxy> {
	const agent = new Agent({ keepAlive: true });
	const { hostname, port: targetPort } = new URL(target);
	let armed: Strike | null = null;
	const server = createServer((request, response) => {
		const current = armed;
		const isCounted = isOf(`${request.method} ${request.url} `, current?.only ?? '');
		if (current !== null && isCounted) current.at -= 1;
		const isMet =
			current !== null && isCounted && (current.at === 0 || (current.at < 0 && current.lasts === true));
		const struck = isMet ? current : null;
		if (struck?.when === 'before') {
			request.resume();
			return struck.strike(response);
		}
		const { method, url, headers } = request;
		const passed = sendRequest(
			{ hostname, port: targetPort, method, path: url, headers, agent },
			(answer) => {
				if (struck !== null) {
					answer.resume();
					answer.on('end', () => struck.strike(response));
					return;
				}
				response.writeHead(answer.statusCode ?? 500, answer.headers);
				answer.pipe(response);
			},
		);
		passed.on('error', () => response.destroy());
		response.on('error', () => {});
		request.pipe(passed);
	});
	const port = await listenOn(server);
	return {
		baseUrl: `http://127.0.0.1:${port}`,
		arm: (strike) => {
			armed = { ...strike };
		},
		disarm: () => {
			armed = null;
		},
		close: () =>
			new Promise((done) => {
				server.close(() => {
					agent.destroy();
					done();
				});
				server.closeAllConnections();
			}),
	};
}

function isOf(asked: string, only: string | RegExp): boolean {
	return typeof only === 'string' ? asked.startsWith(only) : only.test(asked);
}
