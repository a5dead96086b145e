/** Stands before a deployment and strikes at a request: before it is passed on, or once it was carried out. */
import { Agent, createServer, request as sendRequest } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface KillingProxy {
	/** Without a slash at its end. */
	baseUrl: string;
	/** Calls `strike` at the request so many from now, in place of an answer. */
	arm(strike: Strike): void;
	/** Passes everything on. */
	disarm(): void;
	close(): Promise<void>;
}

export interface Strike {
	/** 1: the next one. */
	at: number;
	/** Where the request is by then. */
	when: 'before' | 'after';
	strike: () => void;
}

export async function startKillingProxy(target: string): Promise<KillingProxy> {
	const agent = new Agent({ keepAlive: true });
	const { hostname, port } = new URL(target);
	let armed: Strike | null = null;
	const server = createServer((request, response) => {
		const current = armed;
		if (current !== null) current.at -= 1;
		const struck = current !== null && current.at === 0 ? current : null;
		if (struck?.when === 'before') return struck.strike();
		const { method, url, headers } = request;
		const passed = sendRequest({ hostname, port, method, path: url, headers, agent }, (answer) => {
			if (struck !== null) {
				answer.resume();
				answer.on('end', struck.strike);
				return;
			}
			response.writeHead(answer.statusCode ?? 500, answer.headers);
			answer.pipe(response);
		});
		passed.on('error', () => response.destroy());
		response.on('error', () => {});
		request.pipe(passed);
	});
	await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
	// A server that listens on a port has an address of this kind.
	const address = server.address() as AddressInfo;
	return {
		baseUrl: `http://127.0.0.1:${address.port}`,
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
