import type { AddressInfo } from 'node:net';
import ipaddr from 'ipaddr.js';
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server';
import { type Clock, formatDateTime, steadyOf } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { Ingested, ReturnedMail } from './ingest.js';
import { beginOf } from './mime.js';
import type { Verp } from './verp.js';

export interface BounceListenerOptions {
	host: string;
	port: number;
	tls: { cert: string; key: string } | null;
	maxConnectionMs?: number;
	verp(): Promise<Verp | null>;
	ingest(mail: ReturnedMail): Promise<Ingested>;
	clock: Clock;
	/** Gets one object for each mail, refusal or failure, without e-mail addresses. */
	log: (line: object) => void;
}

export interface BounceListener {
	address: string;
	close(options: { graceMs: number }): Promise<void>;
}

/** A bounce may return the whole message. */
const maxMessageBytes = 25 * 1024 * 1024;
const maxConnections = 50;
const silenceMs = 60_000;
/** A client that sends a byte now and then is never idle, and fifty such clients would block all others. */
const usualConnectionMs = 600_000;
/** A bounce has one recipient, so a mail server never tries this many refused ones. */
const maxRefused = 10;

export async function listenForBounces(options: BounceListenerOptions): Promise<BounceListener> {
	const limits = new IntakeLimits();
	const intake = new Intake(options);
	const targets = new WeakMap<SMTPServerSession, Uuid>();
	const ends = new WeakMap<SMTPServerSession, NodeJS.Timeout>();
	const counts = new WeakMap<SMTPServerSession, number>();
	const refusedRecipient = (session: SMTPServerSession, error: unknown) => {
		const refusal = intake.refuse(session, error);
		if (refusal.responseCode < 500) return refusal;
		const count = (counts.get(session) ?? 0) + 1;
		counts.set(session, count);
		limits.refused(session.remoteAddress);
		// The library closes the connection after a 421.
		return count > maxRefused ? new Refusal(421, '4.7.0 Too many refused recipients') : refusal;
	};
	const server = new SMTPServer({
		...(options.tls ?? {}),
		disabledCommands: options.tls === null ? ['AUTH', 'STARTTLS'] : ['AUTH'],
		disableReverseLookup: true,
		logger: false,
		banner: 'for bounces',
		size: maxMessageBytes,
		rejectOversized: true,
		maxRecipients: 1,
		maxClients: maxConnections,
		socketTimeout: silenceMs,
		onConnect: (session, answer) => {
			const { maxConnectionMs = usualConnectionMs } = options;
			ends.set(session, setTimeout(() => end(server, session), maxConnectionMs).unref());
			const tooMany = () => new Refusal(421, '4.7.0 Too many connections from your address');
			answer(limits.connect(session.remoteAddress) ? null : intake.refuse(session, tooMany()));
		},
		onClose: (session) => {
			clearTimeout(ends.get(session));
			if (ends.delete(session)) limits.disconnect(session.remoteAddress);
		},
		onRcptTo: ({ address }, session, answer) => {
			intake.messageOf(address).then(
				(message) => {
					targets.set(session, message);
					answer();
				},
				(error: unknown) => answer(refusedRecipient(session, error)),
			);
		},
		onData: (stream, session, answer) => {
			const message = targets.get(session);
			// The library refuses DATA if no recipient was accepted.
			if (message === undefined) return answer(new Refusal(503, '5.5.1 No recipient'));
			intake
				.take(stream, { message, ip: session.remoteAddress })
				.then((refusal) => answer(refusal, '2.0.0 Recorded'), answer);
		},
	});
	// A client that hangs up, or does not speak SMTP, causes no error here.
	server.on('error', () => undefined);
	await new Promise<void>((resolve, reject) => {
		server.server.once('error', reject);
		server.listen(options.port, options.host, resolve);
	});
	return {
		address: addressOf(server),
		close: async ({ graceMs }) => {
			server.options.closeTimeout = graceMs;
			await new Promise<void>((resolve) => server.close(resolve));
			intake.close();
		},
	};
}

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
	const { address, port, family } = server.server.address() as AddressInfo;
	return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
}

/** `unsigned`: an address of this domain without a valid signature. `elsewhere`: another domain. */
type RecipientKind = 'return_path' | 'unsigned' | 'elsewhere';

class Refusal extends Error {
	readonly responseCode: number;
	readonly recipient: RecipientKind | null;
	constructor(code: number, text: string, recipient: RecipientKind | null = null) {
		super(text);
		this.responseCode = code;
		this.recipient = recipient;
	}
}

const failed = () => new Refusal(451, '4.3.0 Cannot record it now, try later');

class Intake {
	readonly #options: BounceListenerOptions;
	readonly #refusals: SummedLog;

	constructor(options: BounceListenerOptions) {
		this.#options = options;
		this.#refusals = new SummedLog(options.log);
	}

	close(): void {
		this.#refusals.close();
	}

	/** Returns the refusal to answer with, and logs it once a minute per network. */
	refuse({ remoteAddress: ip }: SMTPServerSession, error: unknown): Refusal {
		const isOurs = !(error instanceof Refusal);
		const refusal = isOurs ? failed() : error;
		if (isOurs) this.#refusals.tell(`failure ${String(error)}`, () => this.#failureLine(null, error));
		const { recipient, responseCode: status } = refusal;
		const bounce_smtp = isOurs ? 'failed' : 'refused';
		const line = { bounce_smtp, recipient, message: null, status, ms: 0, bytes: 0, ip };
		const key = [networkOf(ip), bounce_smtp, recipient, status].join(' ');
		this.#refusals.tell(key, () => ({ time: this.#time(), ...line }));
		return refusal;
	}

	async messageOf(address: string): Promise<Uuid> {
		const paths = await this.#options.verp();
		if (!paths?.isOurDomain(address)) throw new Refusal(550, '5.7.1 Relaying denied', 'elsewhere');
		const message = paths.messageOf(address);
		if (message === null) throw new Refusal(550, '5.1.1 No such return path', 'unsigned');
		return message;
	}

	async take(
		stream: SMTPServerDataStream,
		{ message, ip }: { message: Uuid; ip: string },
	): Promise<Refusal | null> {
		const { clock, log } = this.#options;
		const began = steadyOf(clock);
		const { verdict: bounce_smtp, refusal } = await this.#ingest(stream, message);
		const ms = Math.round((steadyOf(clock) - began) / 100) / 10;
		// The library refuses a mail that is too large, whatever this handler returns.
		const status = stream.sizeExceeded ? 552 : (refusal?.responseCode ?? 250);
		const mail = { recipient: 'return_path', message, status, ms, bytes: stream.byteLength, ip };
		log({ time: this.#time(), bounce_smtp, ...mail });
		return refusal;
	}

	async #ingest(
		stream: SMTPServerDataStream,
		message: Uuid,
	): Promise<{ verdict: Ingested | 'refused' | 'failed'; refusal: Refusal | null }> {
		try {
			const bytes = await beginOf(stream);
			if (stream.sizeExceeded) return { verdict: 'refused', refusal: null };
			const verdict = await this.#options.ingest({ bytes, returnPath: message });
			const later = () => new Refusal(451, '4.3.0 The message is being sent, try later');
			return { verdict, refusal: verdict === 'in_flight' ? later() : null };
		} catch (error) {
			this.#options.log(this.#failureLine(message, error));
			return { verdict: 'failed', refusal: failed() };
		}
	}

	#time(): string {
		return `${formatDateTime(this.#options.clock.now())}Z`;
	}

	#failureLine(message: Uuid | null, error: unknown): object {
		const why = error instanceof Error ? error.message : String(error);
		return { time: this.#time(), event: 'bounce_not_taken', message, error: why };
	}
}

/** Returns an IPv4 address, even if written as IPv6, or the first half of an IPv6 address, which has one owner. */
function networkOf(ip: string): string {
	if (!ipaddr.isValid(ip)) return ip;
	const address = ipaddr.process(ip);
	return address instanceof ipaddr.IPv6 ? address.parts.slice(0, 4).join(':') : address.toString();
}

const minuteMs = 60_000;

/** Limits of a network: connections at the same time, and refused recipients per minute. */
const usual = { maxConnections: 20, maxRefused: 100 };

export class IntakeLimits {
	readonly #max: typeof usual;
	readonly #now: () => number;
	readonly #open = new Map<string, number>();
	readonly #refused = new Map<string, number>();
	#minuteBegan = Number.NEGATIVE_INFINITY;

	constructor({
		now = () => performance.now(),
		...max
	}: Partial<typeof usual> & { now?: () => number } = {}) {
		this.#max = { ...usual, ...max };
		this.#now = now;
	}

	/** Returns false if the network has too many connections, or too many refusals within this minute. */
	connect(ip: string): boolean {
		this.#begin();
		const network = networkOf(ip);
		const isFree = raise(this.#open, network, 1) <= this.#max.maxConnections;
		return isFree && (this.#refused.get(network) ?? 0) < this.#max.maxRefused;
	}

	disconnect(ip: string): void {
		const network = networkOf(ip);
		if (raise(this.#open, network, -1) <= 0) this.#open.delete(network);
	}

	refused(ip: string): void {
		this.#begin();
		raise(this.#refused, networkOf(ip), 1);
	}

	/** Counts whole minutes, so that clearing the counts removes all state of old networks. */
	#begin(): void {
		if (this.#now() - this.#minuteBegan < minuteMs) return;
		this.#minuteBegan = this.#now();
		this.#refused.clear();
	}
}

function raise(counts: Map<string, number>, network: string, step: number): number {
	const count = (counts.get(network) ?? 0) + step;
	counts.set(network, count);
	return count;
}

/** Keys beyond this number share one line. */
const maxKeys = 1_000;
const others = 'others';

/** Sums log lines that a client can cause in any number: logs the first, then a count. */
class SummedLog {
	readonly #log: (line: object) => void;
	readonly #again = new Map<string, { count: number; lineOf: () => object }>();
	#timer: NodeJS.Timeout | null = null;

	constructor(log: (line: object) => void) {
		this.#log = log;
	}

	/** Logs the first line of a key at once, and its other lines of that minute as one line with `count`. */
	tell(key: string, lineOf: () => object): void {
		this.#timer ??= setTimeout(() => this.close(), minuteMs).unref();
		const isFull = this.#again.size >= maxKeys;
		const known = this.#again.get(key) ?? (isFull ? this.#again.get(others) : undefined);
		if (known !== undefined) {
			known.count += 1;
			known.lineOf = lineOf;
		} else {
			this.#again.set(isFull ? others : key, { count: 0, lineOf });
			this.#log(lineOf());
		}
	}

	close(): void {
		if (this.#timer !== null) clearTimeout(this.#timer);
		this.#timer = null;
		for (const { count, lineOf } of this.#again.values()) if (count > 0) this.#log({ ...lineOf(), count });
		this.#again.clear();
	}
}
