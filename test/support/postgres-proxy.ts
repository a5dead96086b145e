/** Between a store and its server: ends connections where it is told to, goes silent, or refuses to be reached. */
import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';

export interface PostgresProxy {
	/** By way of the proxy. */
	url: string;
	/** Ends the connection once the server has received this text, before it answers; each time, or so often. */
	cutAt(text: string | null, options?: { times?: number; after?: () => void }): void;
	/** Cuts so far. */
	cuts(): number;
	/** Open connections stay open, and nothing goes through them, nor through new ones. */
	freeze(isFrozen: boolean): void;
	/** Ends all connections, and each new one at once. */
	refuse(isRefusing: boolean): void;
	close(): void;
}

export async function startPostgresProxy(url: string): Promise<PostgresProxy> {
	const place = new URL(url);
	const folder = decodeURIComponent(place.hostname);
	const upstream = folder.startsWith('/')
		? { path: `${folder}/.s.PGSQL.${place.port || 5432}` }
		: { host: place.hostname, port: Number(place.port || 5432) };
	let cut: { text: string; left: number; after: () => void } | null = null;
	let cuts = 0;
	let isRefusing = false;
	let isFrozen = false;
	const sockets = new Set<Socket>();
	const keep = (socket: Socket) => {
		sockets.add(socket);
		socket.on('error', () => undefined);
		socket.on('close', () => sockets.delete(socket));
	};
	const listener = createServer((client) => {
		keep(client);
		if (isRefusing) {
			client.destroy();
			return;
		}
		const server = dial(upstream);
		keep(server);
		let isCut = false;
		client.on('data', (chunk) => {
			if (isFrozen) return;
			if (cut !== null && cut.left > 0 && chunk.includes(cut.text)) {
				cut.left -= 1;
				cuts += 1;
				isCut = true;
			}
			server.write(chunk);
		});
		server.on('data', (chunk) => {
			if (isFrozen) return;
			if (isCut) {
				client.destroy();
				cut?.after();
			} else client.write(chunk);
		});
		client.on('close', () => server.destroy());
		server.on('close', () => client.destroy());
	});
	await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
	const { port } = listener.address() as AddressInfo;
	const end = () => {
		for (const socket of sockets) socket.destroy();
	};
	const own = new URL(url);
	own.host = `127.0.0.1:${port}`;
	return {
		url: own.href,
		cutAt: (text, { times = 1, after = () => undefined } = {}) => {
			cut = text === null ? null : { text, left: times, after };
		},
		cuts: () => cuts,
		freeze: (value) => {
			isFrozen = value;
		},
		refuse: (value) => {
			isRefusing = value;
			if (value) end();
		},
		close: () => {
			end();
			listener.close();
		},
	};
}
