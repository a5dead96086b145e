/** A mail server that keeps what it is given, for the demonstration: loopback only, in this process. */
import { createServer } from 'node:net';
import { SMTPServer } from 'smtp-server';

export interface SinkMail {
	from: string;
	to: readonly string[];
	raw: Buffer;
}

export interface Sink {
	port: number;
	mails: readonly SinkMail[];
	close(): Promise<void>;
}

/**
 * On a free port of 127.0.0.1, for any sender and recipient, without TLS or login. `mails` grows as they come and stays
 * after `close`, which the caller owes.
 */
export async function startSink(): Promise<Sink> {
	const mails: SinkMail[] = [];
	const server = new SMTPServer({
		disabledCommands: ['AUTH', 'STARTTLS'],
		logger: false,
		onData: (stream, session, accept) => {
			const chunks: Buffer[] = [];
			stream.on('data', (chunk: Buffer) => chunks.push(chunk));
			stream.once('end', () => {
				const { mailFrom, rcptTo } = session.envelope;
				mails.push({
					from: mailFrom === false ? '' : mailFrom.address,
					to: rcptTo.map(({ address }) => address),
					raw: Buffer.concat(chunks),
				});
				accept();
			});
		},
	});
	// A client that hangs up is its own business.
	server.on('error', () => undefined);
	const port = await freePort();
	await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
	return { port, mails, close: () => new Promise((resolve) => server.close(() => resolve())) };
}

/** smtp-server does not tell the port that 0 became. */
function freePort(): Promise<number> {
	return new Promise((resolve, reject) => {
		const probe = createServer();
		probe.once('error', reject);
		probe.listen(0, '127.0.0.1', () => {
			const address = probe.address();
			probe.close(() =>
				address === null || typeof address === 'string'
					? reject(new Error('no port'))
					: resolve(address.port),
			);
		});
	});
}
