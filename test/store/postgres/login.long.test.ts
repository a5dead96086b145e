import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';

/** Message `R` of PostgreSQL's protocol (55.7): AuthenticationSASL (10) or AuthenticationSASLContinue (11). */
function authentication(kind: 10 | 11, text: string): Buffer {
	const head = Buffer.from('R\0\0\0\0\0\0\0\0', 'latin1');
	head.writeInt32BE(8 + text.length, 1);
	head.writeInt32BE(kind, 5);
	return Buffer.concat([head, Buffer.from(text, 'latin1')]);
}

const sockets = new Set<Socket>();
const server = createServer((socket) => {
	sockets.add(socket);
	socket.on('error', () => undefined);
	socket.on('close', () => void sockets.delete(socket));
	socket.once('data', () => {
		socket.write(authentication(10, 'SCRAM-SHA-256\0\0'));
		socket.once('data', () => socket.write(authentication(11, 'r=abc,s=c2FsdA==,i=4096')));
	});
});

afterEach(() => {
	for (const socket of sockets) socket.destroy();
	server.close();
});

it('a failed login leaves no open connection', async () => {
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address() as AddressInfo;
	const accepted = once(server, 'connection');
	const opening = openPostgresStore({
		...{ url: `postgres://ann@127.0.0.1:${port}/mail`, clock: systemClock },
		...{ mode: 'existing', lockTimeoutMs: 500 },
	});
	const failure = await opening.catch((error: unknown) => error);
	expect(failure).toMatchObject({ code: 'denied', message: expect.stringContaining('wants a password') });
	const [socket] = (await accepted) as [Socket];
	if (!socket.closed) await once(socket, 'close');
	expect(sockets.size).toBe(0);
});
