/** A client that writes any bytes to a socket and reads the answers. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface WireAnswer {
	status: number;
	headers: Record<string, string>;
	body: string;
}

export interface Wire {
	socket: Socket;
	write(text: string | Uint8Array): void;
	read(method?: string): Promise<WireAnswer | null>;
	closed(): Promise<void>;
	received(): string;
	destroy(): void;
}

export async function dial(url: string): Promise<Wire> {
	const { hostname, port } = new URL(url);
	const socket = connect(Number(port), hostname);
	socket.on('error', () => {});
	let received = Buffer.alloc(0);
	let offset = 0;
	let isEnded = false;
	let wake = () => {};
	socket.on('data', (chunk) => {
		received = Buffer.concat([received, chunk]);
		wake();
	});
	const end = () => {
		isEnded = true;
		wake();
	};
	socket.on('end', end).on('close', end);
	await once(socket, 'connect');
	const wire: Wire = {
		socket,
		write: (text) => void socket.write(text),
		read: async (method = 'GET') => {
			while (true) {
				const parsed = parseAnswer(received.subarray(offset), method);
				if (parsed !== null) {
					offset += parsed.length;
					if (parsed.answer.status !== 100) return parsed.answer;
					continue;
				}
				if (isEnded) return null;
				await new Promise<void>((resolve) => {
					wake = resolve;
				});
			}
		},
		closed: async () => {
			socket.resume();
			if (!socket.destroyed && !isEnded)
				await new Promise<void>((resolve) => socket.once('close', () => resolve()));
		},
		received: () => received.toString('latin1'),
		destroy: () => socket.destroy(),
	};
	return wire;
}

function parseAnswer(bytes: Buffer, method: string): { answer: WireAnswer; length: number } | null {
	const headEnd = bytes.indexOf('\r\n\r\n');
	if (headEnd < 0) return null;
	const [first = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n');
	const headers = Object.fromEntries(
		lines.map((line) => {
			const at = line.indexOf(':');
			return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()];
		}),
	);
	const status = Number(first.split(' ')[1]);
	const hasBody = method !== 'HEAD' && status !== 204 && status >= 200;
	const size = hasBody ? Number(headers['content-length'] ?? 0) : 0;
	const start = headEnd + 4;
	if (bytes.length < start + size) return null;
	return {
		answer: { status, headers, body: bytes.toString('utf8', start, start + size) },
		length: start + size,
	};
}
