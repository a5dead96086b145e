/** A mail server for bounces alone: takes what comes back to a return path of ours, and answers when it is recorded. */
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';
import type { Uuid } from '../../api/records.js';
import { checkRecipient, type Intake, refuse, reply, take } from './intake.js';
import { createIntakeLimits } from './intake-limits.js';

export interface BounceListenerOptions extends Intake {
	host: string;
	/** 0: any free one. */
	port: number;
	/** PEM texts; STARTTLS is offered with them. */
	tls: { cert: string; key: string } | null;
	/** A connection is ended after so long, whatever it does; 10 minutes. */
	maxConnectionMs?: number;
}

/** A server that listens; `close` once. */
export interface BounceListener {
	/** `host:port`. */
	address: string;
	/** Takes nothing new; what is being answered gets `graceMs`. */
	close(options: { graceMs: number }): Promise<void>;
}

/** A bounce may bring back the whole message. */
const maxMailBytes = 25 * 1024 * 1024;
/** Each may hold a mail of that size in memory. */
const maxConnections = 50;
const silenceMs = 60_000;
/** A byte now and then is no silence, and fifty who send so would keep everybody else out. */
const usualConnectionMs = 600_000;

/** Rejects when it cannot listen. */
export async function listenForBounces(options: BounceListenerOptions): Promise<BounceListener> {
	const limits = createIntakeLimits();
	const targets = new WeakMap<SMTPServerSession, Uuid>();
	/** Connections that count, with what ends them. */
	const ends = new WeakMap<SMTPServerSession, NodeJS.Timeout>();
	const { maxConnectionMs = usualConnectionMs } = options;
	const refused = ({ remoteAddress: ip }: SMTPServerSession, error: unknown) =>
		refuse(options, { error, ip });
	const server = new SMTPServer({
		...(options.tls ?? {}),
		disabledCommands: options.tls === null ? ['AUTH', 'STARTTLS'] : ['AUTH'],
		disableReverseLookup: true,
		logger: false,
		banner: 'for bounces',
		size: maxMailBytes,
		rejectOversized: true,
		// A bounce has one recipient; the next one of the same mail is to come in a mail of its own.
		maxRecipients: 1,
		maxClients: maxConnections,
		socketTimeout: silenceMs,
		onConnect: (session, answer) => {
			ends.set(session, setTimeout(() => end(server, session), maxConnectionMs).unref());
			const isFree = limits.connect(session.remoteAddress);
			answer(isFree ? null : refused(session, reply(421, '4.7.0 Too many connections from your address')));
		},
		onClose: (session) => {
			clearTimeout(ends.get(session));
			if (ends.delete(session)) limits.disconnect(session.remoteAddress);
		},
		onMailFrom: (_, session, answer) => {
			const isFree = limits.mail(session.remoteAddress);
			answer(
				isFree ? null : refused(session, reply(450, '4.7.1 Too many mails from your address, try later')),
			);
		},
		onRcptTo: (recipient, session, answer) => {
			checkRecipient(options, recipient).then(
				(message) => {
					targets.set(session, message);
					answer();
				},
				(error: unknown) => answer(refused(session, error)),
			);
		},
		onData: (stream, session, answer) => {
			const message = targets.get(session);
			// The library lets nobody begin a mail for whom no recipient was taken.
			if (message === undefined) return answer(reply(503, '5.5.1 No recipient'));
			take(options, stream, { message, ip: session.remoteAddress }).then(
				(refusal) => answer(refusal, '2.0.0 Recorded'),
				answer,
			);
		},
	});
	// A client that hangs up, or talks no SMTP, is its own business.
	server.on('error', () => undefined);
	await new Promise<void>((resolve, reject) => {
		server.server.once('error', reject);
		server.listen(options.port, options.host, resolve);
	});
	return {
		address: addressOf(server),
		close: ({ graceMs }) => {
			server.options.closeTimeout = graceMs;
			return new Promise((resolve) => server.close(() => resolve()));
		},
	};
}

/** What of a connection its library shows to a server, and its types do not tell. */
interface Connection {
	session: SMTPServerSession;
	send(code: number, text: string): void;
	close(): void;
}

function end(server: SMTPServer, session: SMTPServerSession): void {
	const connections: Set<Connection> = server.connections;
	for (const connection of connections) {
		if (connection.session !== session) continue;
		connection.send(421, '4.4.2 This took too long, try again');
		connection.close();
	}
}

function addressOf(server: SMTPServer): string {
	// What a server on a host and a port is bound to.
	const { address, port, family } = server.server.address() as AddressInfo;
	return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
}
