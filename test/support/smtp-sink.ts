import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { listenOn } from './listen.js';

export interface Received {
	from: string;
	to: string[];
	raw: Buffer;
}

export interface SmtpSink {
	readonly port: number;
	readonly received: readonly Received[];
	readonly connections: number;
	until(count: number): Promise<void>;
	close(): Promise<void>;
}

export async function startSmtpSink(options: SMTPServerOptions = {}): Promise<SmtpSink> {
	const received: Received[] = [];
	const waiting: { count: number; resolve: () => void }[] = [];
	let connections = 0;
	const server = new SMTPServer({
		authOptional: true,
		disabledCommands: ['STARTTLS'],
		disableReverseLookup: true,
		logger: false,
		onConnect: (_session, callback) => {
			connections += 1;
			callback();
		},
		onData: (stream, session, callback) => {
			const chunks: Buffer[] = [];
			stream.on('data', (chunk: Buffer) => chunks.push(chunk));
			stream.on('end', () => {
				const { mailFrom, rcptTo } = session.envelope;
				const from = mailFrom === false ? '' : mailFrom.address;
				received.push({ from, to: rcptTo.map(({ address }) => address), raw: Buffer.concat(chunks) });
				callback(null);
				for (const waiter of waiting) if (received.length >= waiter.count) waiter.resolve();
			});
		},
		...options,
	});
	server.on('error', () => undefined);
	const port = await listenOn(server.server);
	return {
		port,
		received,
		get connections() {
			return connections;
		},
		until: (count) =>
			received.length >= count
				? Promise.resolve()
				: new Promise((resolve) => waiting.push({ count, resolve })),
		close: () => new Promise((resolve) => server.close(resolve)),
	};
}

export function messageIdIn(raw: Buffer): string {
	return /^Message-ID: <([^>]+)>/im.exec(raw.toString('latin1'))?.[1] ?? '';
}
