/** A loopback proxy: it tunnels CONNECT (RFC 9110 s.9.3.6), forwards http (RFC 9112 s.3.2.2), and records both. */
import { createServer, type IncomingMessage, type ServerResponse, request as sendRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { listenOn } from './listen.js';

export interface TunnelProxy {
	url: string;
	host: string;
	tunnels: { target: string; authorization: string | undefined }[];
	plain: { target: string; authorization: string | undefined }[];
	close(): Promise<void>;
}

export interface ProxyOptions {
	to: number;
	refuse?: number;
}

export async function startProxy({ to, refuse }: ProxyOptions): Promise<TunnelProxy> {
	const tunnels: TunnelProxy['tunnels'] = [];
	const plain: TunnelProxy['plain'] = [];
	const sockets = new Set<Socket>();
	const server = createServer((request, response) => {
		plain.push({ target: request.url ?? '', authorization: request.headers['proxy-authorization'] });
		if (refuse === undefined) passOn(request, response, to);
		else response.writeHead(refuse).end();
	});
	const keep = (socket: Socket) => {
		sockets.add(socket);
		socket.on('error', () => {});
		socket.on('close', () => sockets.delete(socket));
	};
	server.on('connection', keep);
	server.on('connect', (request, client: Socket) => {
		tunnels.push({ target: request.url ?? '', authorization: request.headers['proxy-authorization'] });
		if (refuse !== undefined) {
			client.end(`HTTP/1.1 ${refuse} No\r\ncontent-length: 0\r\n\r\n`);
			return;
		}
		const service = connect(to, '127.0.0.1', () => {
			client.write('HTTP/1.1 200 Connection established\r\n\r\n');
			service.pipe(client).pipe(service);
		});
		keep(service);
	});
	const port = await listenOn(server);
	return {
		url: `http://127.0.0.1:${port}`,
		host: `127.0.0.1:${port}`,
		tunnels,
		plain,
		close: async () => {
			for (const socket of sockets) socket.destroy();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

function passOn(request: IncomingMessage, response: ServerResponse, port: number): void {
	const { pathname, search } = new URL(request.url ?? '');
	const { 'proxy-authorization': _, ...headers } = request.headers;
	const onward = sendRequest({ port, method: request.method, path: pathname + search, headers }, (answer) => {
		response.writeHead(answer.statusCode ?? 502, answer.headers);
		answer.pipe(response);
	});
	onward.on('error', () => response.destroy());
	request.pipe(onward);
}
