/** A proxy between a store and PostgreSQL that can close connections, go silent, or refuse connections. */
import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

interface PostgresProxy {
	url: string;
	cutAt(text: string, options?: { times?: number; silently?: boolean; after?: () => void }): void;
	cuts(): number;
	forget(): void;
	trips(): number;
	idle(): Promise<void>;
	refuse(isRefusing: boolean): void;
	close(): void;
}

export async function startPostgresProxy(
	url: string,
	{ host = '127.0.0.1', port = 0, latencyMs = 0 }: { host?: string; port?: number; latencyMs?: number } = {},
): Promise<PostgresProxy> {
	const place = new URL(url);
	const folder = decodeURIComponent(place.hostname);
	const upstream = folder.startsWith('/')
		? { path: `${folder}/.s.PGSQL.${place.port || 5432}` }
		: { host: place.hostname, port: Number(place.port || 5432) };
	let cut: { text: string; left: number; isSilent: boolean; after: () => void } | null = null;
	let cuts = 0;
	let trips = 0;
	let isRefusing = false;
	const forgetting = new Set<() => void>();
	const sockets = new Set<Socket>();
	const waiting = new Set<Socket>();
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
		let isForgotten = false;
		const forget = () => {
			isForgotten = true;
		};
		forgetting.add(forget);
		client.on('close', () => forgetting.delete(forget));
		let isWatch = false;
		let isNotice = false;
		const countTrips = createFrameReader((type) => {
			if (type !== 'Z') return;
			waiting.delete(client);
			if (!isWatch && !isNotice) trips += 1;
			isNotice = false;
		});
		client.on('close', () => waiting.delete(client));
		client.on('data', (chunk) => {
			if (isForgotten) return;
			waiting.add(client);
			isWatch ||= chunk.includes('mailctl watch');
			isNotice ||= chunk.includes('pg_notify(');
			if (cut !== null && cut.left > 0 && chunk.includes(`\0${cut.text}`)) {
				cut.left -= 1;
				cuts += 1;
				isCut = true;
			}
			if (latencyMs === 0) server.write(chunk);
			else setTimeout(() => server.write(chunk), latencyMs);
		});
		server.on('data', (chunk) => {
			if (isForgotten) return;
			countTrips(chunk);
			if (isCut) {
				if (cut?.isSilent) forget();
				else client.destroy();
				cut?.after();
			} else client.write(chunk);
		});
		client.on('close', () => {
			if (!isForgotten) server.destroy();
		});
		server.on('close', () => client.destroy());
	});
	await new Promise<void>((resolve) => listener.listen(port, host, resolve));
	const listening = listener.address() as AddressInfo;
	const end = () => {
		for (const socket of sockets) socket.destroy();
	};
	const own = new URL(url);
	own.host = `${host}:${listening.port}`;
	return {
		url: own.href,
		cutAt: (text, { times = 1, silently = false, after = () => undefined } = {}) => {
			cut = { text, left: times, isSilent: silently, after };
		},
		cuts: () => cuts,
		trips: () => trips,
		idle: async () => {
			for (let turns = 0; turns < 3; turns = waiting.size === 0 ? turns + 1 : 0) await delay(5);
		},
		forget: () => {
			for (const forget of forgetting) forget();
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

function createFrameReader(onMessage: (type: string) => void): (chunk: Buffer) => void {
	let rest: Buffer = Buffer.alloc(0);
	return (chunk) => {
		rest = Buffer.concat([rest, chunk]);
		while (rest.length >= 5) {
			const end = 1 + rest.readUInt32BE(1);
			if (rest.length < end) return;
			onMessage(String.fromCharCode(rest[0] ?? 0));
			rest = rest.subarray(end);
		}
	};
}
