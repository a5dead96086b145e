import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

export interface SinkMail {
	from: string;
	to: readonly string[];
	raw: Buffer;
}

interface MailSinkOptions {
	host?: string;
	port?: number;
	refusal?: (to: string) => Refusal | null;
	take: (mail: SinkMail) => void | Promise<void>;
}

interface Refusal {
	code: number;
	text: string;
}

export interface MailSink {
	readonly port: number;
	close(): Promise<void>;
}

/** Larger than the limits of mail providers (Gmail: 25 MB), so that no test fails because of this server. */
const mostBytes = 100 * 1024 * 1024;

/**
 * Accepts mail from any sender, with any login or none, without TLS. Rejects with errors of `listen` (`EADDRINUSE`,
 * `EACCES`, `EADDRNOTAVAIL`).
 */
export async function startMailSink({
	host = '127.0.0.1',
	port = 0,
	refusal = () => null,
	take,
}: MailSinkOptions): Promise<MailSink> {
	const server = new SMTPServer({
		disabledCommands: ['STARTTLS'],
		authOptional: true,
		allowInsecureAuth: true,
		onAuth: ({ username = '' }, _session, accept) => accept(null, { user: username }),
		disableReverseLookup: true,
		size: mostBytes,
		logger: false,
		closeTimeout: 1_000,
		onRcptTo: ({ address }, _session, accept) => {
			const refused = refusal(address);
			accept(refused && reply(refused.code, refused.text));
		},
		onData: (stream, { envelope: { mailFrom, rcptTo } }, accept) => {
			const chunks: Buffer[] = [];
			stream.on('data', (chunk: Buffer) => {
				if (!stream.sizeExceeded) chunks.push(chunk);
			});
			stream.once('end', () => {
				if (stream.sizeExceeded) return accept(reply(552, 'The message is larger than 100 MiB'));
				const from = mailFrom === false ? '' : mailFrom.address;
				const to = rcptTo.map(({ address }) => address);
				Promise.resolve(take({ from, to, raw: Buffer.concat(chunks) })).then(
					() => accept(),
					() => accept(reply(451, 'The test server cannot accept the mail now')),
				);
			});
		},
	});
	await new Promise<void>((resolve, reject) => {
		server.once('error', reject);
		server.listen(port, host, resolve);
	});
	server.removeAllListeners('error').on('error', () => undefined);
	const address = server.server.address() as AddressInfo;
	return {
		port: address.port,
		close: () => new Promise((resolve) => server.close(() => resolve())),
	};
}

function reply(responseCode: number, message: string): Error {
	return Object.assign(new Error(message), { responseCode });
}
