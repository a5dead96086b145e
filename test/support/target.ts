/** A local HTTP server that records its requests. */
import { createServer } from 'node:http';
import { listenOn } from './listen.js';

export interface NotifiedTarget {
	url: string;
	received: string[];
	authorizations: (string | null)[];
	close(): Promise<void>;
}

export async function startTarget(status: number): Promise<NotifiedTarget> {
	const received: string[] = [];
	const authorizations: (string | null)[] = [];
	const server = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request.on('data', (chunk: Buffer) => chunks.push(chunk));
		request.on('end', () => {
			received.push(Buffer.concat(chunks).toString('utf8'));
			authorizations.push(request.headers.authorization ?? null);
			response.writeHead(status).end();
		});
	});
	const port = await listenOn(server);
	return {
		url: `http://127.0.0.1:${port}/in`,
		received,
		authorizations,
		close: () => new Promise((resolve) => server.close(() => resolve())),
	};
}
