/** A mail server for bounces alone: takes what comes back to a return path of ours, and answers when it is recorded. */
import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import {
	SMTPServer,
	type SMTPServerAddress,
	type SMTPServerDataStream,
	type SMTPServerSession,
} from 'smtp-server';
import type { Uuid } from '../../api/records.js';
import type { Ingested, ReturnedMail } from './ingest.js';
import { createIntakeLimits } from './intake-limits.js';
import type { Verp } from './verp.js';

export interface BounceListenerOptions {
	host: string;
	/** 0: any free one. */
	port: number;
	/** PEM texts; STARTTLS is offered with them. */
	tls: { cert: string; key: string } | null;
	/** Return paths by the settings of this moment; asked for each recipient. */
	verp(): Promise<Verp | null>;
	/** Resolves when it is durable; rejects when the database fails. */
	ingest(mail: ReturnedMail): Promise<Ingested>;
	/** A connection is ended after so long, whatever it does; 10 minutes. */
	maxConnectionMs?: number;
	/** Told of each mail, and of what failed, as one object; no addresses. */
	log: (line: object) => void;
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
/** Nothing behind that is ever read. */
const keptBytes = 4 * 1024 * 1024;
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
			answer(isFree ? null : reply(421, '4.7.0 Too many connections from your address'));
		},
		onClose: (session) => {
			clearTimeout(ends.get(session));
			if (ends.delete(session)) limits.disconnect(session.remoteAddress);
		},
		onMailFrom: (_, session, answer) => {
			const isFree = limits.mail(session.remoteAddress);
			answer(isFree ? null : reply(450, '4.7.1 Too many mails from your address, try later'));
		},
		onRcptTo: (recipient, session, answer) => {
			checkRecipient(options, recipient).then(
				(message) => {
					targets.set(session, message);
					answer();
				},
				(error: unknown) => answer(refusal(error, options.log)),
			);
		},
		onData: (stream, session, answer) => {
			const target = targets.get(session) ?? null;
			take(options, stream, target).then(
				() => answer(null, '2.0.0 Recorded'),
				(error: unknown) => answer(refusal(error, options.log)),
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

class Refusal extends Error {
	readonly responseCode: number;
	constructor(code: number, text: string) {
		super(text);
		this.responseCode = code;
	}
}

function reply(code: number, text: string): Refusal {
	return new Refusal(code, text);
}

/** What failed behind an answer: the sender keeps the mail and comes again. */
function refusal(error: unknown, log: (line: object) => void): Refusal {
	if (error instanceof Refusal) return error;
	log({ event: 'bounce_not_taken', error: error instanceof Error ? error.message : String(error) });
	return reply(451, '4.3.0 Cannot record it now, try later');
}

async function checkRecipient(
	{ verp }: BounceListenerOptions,
	{ address }: SMTPServerAddress,
): Promise<Uuid> {
	const paths = await verp();
	if (paths === null || !paths.isOurDomain(address)) throw reply(550, '5.7.1 Relaying denied');
	const message = paths.messageOf(address);
	if (message === null) throw reply(550, '5.1.1 No such return path');
	return message;
}

async function take(
	{ ingest, log }: BounceListenerOptions,
	stream: SMTPServerDataStream,
	returnPath: Uuid | null,
): Promise<void> {
	const bytes = await beginOf(stream);
	// Too much: refused whatever is answered here, and not to be recorded either.
	if (stream.sizeExceeded) return;
	const ingested = await ingest({ bytes, returnPath });
	log({ bounce_smtp: ingested, bytes: stream.byteLength });
	if (ingested === 'in_flight') throw reply(451, '4.3.0 The message is being sent, try later');
}

/** All is read, as SMTP wants it; a part of it is kept. */
async function beginOf(stream: Readable): Promise<Buffer> {
	const kept: Buffer[] = [];
	let length = 0;
	for await (const piece of stream) {
		const bytes = Buffer.from(piece);
		if (length < keptBytes) kept.push(bytes);
		length += bytes.length;
	}
	return Buffer.concat(kept).subarray(0, keptBytes);
}

function addressOf(server: SMTPServer): string {
	// What a server on a host and a port is bound to.
	const { address, port, family } = server.server.address() as AddressInfo;
	return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
}
