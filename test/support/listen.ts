/** Starts servers of tests on free ports of this machine. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';

export async function listenOn(server: Server, port = 0, host = '127.0.0.1'): Promise<number> {
	server.listen(port, host);
	await once(server, 'listening');
	return (server.address() as AddressInfo).port;
}

export function closeNow(server: HttpServer): Promise<void> {
	return new Promise((resolve) => {
		server.close(() => resolve());
		server.closeAllConnections();
	});
}

export async function freePort(): Promise<number> {
	for (;;) {
		const port = randomInt(20_000, 32_000);
		const probe = createServer().listen(port, '127.0.0.1');
		try {
			await once(probe, 'listening');
		} catch {
			continue;
		}
		await new Promise((resolve) => probe.close(resolve));
		return port;
	}
}
