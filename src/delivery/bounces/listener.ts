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
	/** Gets one line for each mail, and one line a minute for equal refusals. No line contains an e-mail address. */
	log: (line: object) => void;
}

export interface BounceListener {
	address: string;
	close(options: { graceMs: number }): Promise<void>;
}

/** This limit is high, because a bounce may return the whole message. */
const maxMessageBytes = 25 * 1024 * 1024;
const maxConnections = 50;
const silenceMs = 60_000;
/** Limits the duration of a connection. Fifty clients that send a byte now and then would block all others. */
const usualConnectionMs = 600_000;
/** Refused recipients per connection. A bounce has only one recipient. */
const maxRefused = 10;

export async function listenForBounces(options: BounceListenerOptions): Promise<BounceListener> {
	const intake = new Intake(options);
	await intake.listen();
	return intake;
}

/** `unsigned`: an address in the bounce domain without a valid signature. `elsewhere`: an address in another domain. */
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

interface Visit {
	message: Uuid | null;
	refused: number;
	end: NodeJS.Timeout;
}

interface Connection {
	session: SMTPServerSession;
	send(code: number, text: string): void;
	close(): void;
}

class Intake implements BounceListener {
	readonly #options: BounceListenerOptions;
	readonly #server: SMTPServer;
	readonly #limits = new IntakeLimits();
	readonly #visits = new WeakMap<SMTPServerSession, Visit>();

	constructor(options: BounceListenerOptions) {
		this.#options = options;
		this.#server = new SMTPServer({
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
			onConnect: (session, answer) => answer(this.#connect(session)),
			onClose: (session) => {
				clearTimeout(this.#visits.get(session)?.end);
				if (this.#visits.delete(session)) this.#limits.disconnect(session.remoteAddress);
			},
			onRcptTo: ({ address }, session, answer) => void this.#receive(address, session).then(answer),
			onData: (stream, session, answer) => {
				this.#take(stream, session).then((refusal) => answer(refusal, '2.0.0 Recorded'), answer);
			},
		});
		// Ignore errors of clients that hang up or do not speak SMTP.
		this.#server.on('error', () => undefined);
	}

	async listen(): Promise<void> {
		await new Promise<void>((resolve, reject) => {
			this.#server.server.once('error', reject);
			this.#server.listen(this.#options.port, this.#options.host, resolve);
		});
	}

	get address(): string {
		const { address, port, family } = this.#server.server.address() as AddressInfo;
		return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
	}

	async close({ graceMs }: { graceMs: number }): Promise<void> {
		this.#server.options.closeTimeout = graceMs;
		await new Promise<void>((resolve) => this.#server.close(resolve));
	}

	#connect(session: SMTPServerSession): Refusal | null {
		const { maxConnectionMs = usualConnectionMs } = this.#options;
		const end = setTimeout(() => this.#end(session), maxConnectionMs).unref();
		this.#visits.set(session, { message: null, refused: 0, end });
		if (this.#limits.connect(session.remoteAddress)) return null;
		return this.#refuse(session, new Refusal(421, '4.7.0 Too many connections from your address'));
	}

	#end(session: SMTPServerSession): void {
		const connections: Set<Connection> = this.#server.connections;
		for (const connection of connections) {
			if (connection.session !== session) continue;
			connection.send(421, '4.4.2 This took too long, try again');
			connection.close();
		}
	}

	async #receive(address: string, session: SMTPServerSession): Promise<Refusal | null> {
		const visit = this.#visits.get(session);
		try {
			const message = await this.#messageOf(address);
			if (visit !== undefined) visit.message = message;
			return null;
		} catch (error) {
			const refusal = this.#refuse(session, error);
			if (refusal.responseCode < 500 || visit === undefined) return refusal;
			visit.refused += 1;
			this.#limits.refused(session.remoteAddress);
			// The library closes the connection after a 421.
			return visit.refused > maxRefused ? new Refusal(421, '4.7.0 Too many refused recipients') : refusal;
		}
	}

	async #messageOf(address: string): Promise<Uuid> {
		const paths = await this.#options.verp();
		if (!paths?.isOurDomain(address)) throw new Refusal(550, '5.7.1 Relaying denied', 'elsewhere');
		const message = paths.messageOf(address);
		if (message === null) throw new Refusal(550, '5.1.1 No such return path', 'unsigned');
		return message;
	}

	#refuse({ remoteAddress: ip }: SMTPServerSession, error: unknown): Refusal {
		const isOurs = !(error instanceof Refusal);
		const refusal = isOurs ? failed() : error;
		const { log } = this.#options;
		if (isOurs && this.#limits.isFirst(`failure ${String(error)}`)) log(this.#failureLine(null, error));
		const { recipient, responseCode: status } = refusal;
		const bounce_smtp = isOurs ? 'failed' : 'refused';
		if (this.#limits.isFirst([networkOf(ip), bounce_smtp, recipient, status].join(' ')))
			log({ time: this.#time(), bounce_smtp, recipient, message: null, status, ms: 0, bytes: 0, ip });
		return refusal;
	}

	async #take(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<Refusal | null> {
		const message = this.#visits.get(session)?.message ?? null;
		// This should not happen, because the library refuses DATA without an accepted recipient.
		if (message === null) return new Refusal(503, '5.5.1 No recipient');
		const { clock, log, ingest } = this.#options;
		const began = steadyOf(clock);
		let verdict: Ingested | 'refused' | 'failed' = 'refused';
		let refusal: Refusal | null = null;
		try {
			const bytes = await beginOf(stream);
			// The library refuses a mail that is too large, whatever this handler returns.
			if (!stream.sizeExceeded) verdict = await ingest({ bytes, returnPath: message });
			if (verdict === 'in_flight') refusal = new Refusal(451, '4.3.0 The message is being sent, try later');
		} catch (error) {
			log(this.#failureLine(message, error));
			verdict = 'failed';
			refusal = failed();
		}
		const ms = Math.round((steadyOf(clock) - began) / 100) / 10;
		const status = stream.sizeExceeded ? 552 : (refusal?.responseCode ?? 250);
		const mail = { recipient: 'return_path', message, status, ms, bytes: stream.byteLength };
		log({ time: this.#time(), bounce_smtp: verdict, ...mail, ip: session.remoteAddress });
		return refusal;
	}

	#time(): string {
		return `${formatDateTime(this.#options.clock.now())}Z`;
	}

	#failureLine(message: Uuid | null, error: unknown): object {
		const why = error instanceof Error ? error.message : String(error);
		return { time: this.#time(), event: 'bounce_not_taken', message, error: why };
	}
}

const failed = () => new Refusal(451, '4.3.0 Cannot record it now, try later');

/** Returns the IPv4 address, even if it is written as IPv6. For IPv6, returns the /64 prefix, which has one owner. */
function networkOf(ip: string): string {
	if (!ipaddr.isValid(ip)) return ip;
	const address = ipaddr.process(ip);
	return address instanceof ipaddr.IPv6 ? address.parts.slice(0, 4).join(':') : address.toString();
}

const minuteMs = 60_000;

/** Limits per network: open connections, and refused recipients per minute. */
const usual = { maxConnections: 20, maxRefused: 100 };
/** Log lines per minute that refused clients can cause. */
const maxTold = 1_000;

export class IntakeLimits {
	readonly #max: typeof usual;
	readonly #now: () => number;
	readonly #open = new Map<string, number>();
	readonly #refused = new Map<string, number>();
	readonly #told = new Set<string>();
	#minuteBegan = Number.NEGATIVE_INFINITY;

	constructor({
		now = () => performance.now(),
		...max
	}: Partial<typeof usual> & { now?: () => number } = {}) {
		this.#max = { ...usual, ...max };
		this.#now = now;
	}

	connect(ip: string): boolean {
		this.#startMinute();
		const network = networkOf(ip);
		const isFree = raise(this.#open, network, 1) <= this.#max.maxConnections;
		return isFree && (this.#refused.get(network) ?? 0) < this.#max.maxRefused;
	}

	disconnect(ip: string): void {
		const network = networkOf(ip);
		if (raise(this.#open, network, -1) <= 0) this.#open.delete(network);
	}

	refused(ip: string): void {
		this.#startMinute();
		raise(this.#refused, networkOf(ip), 1);
	}

	isFirst(kind: string): boolean {
		this.#startMinute();
		if (this.#told.has(kind) || this.#told.size >= maxTold) return false;
		this.#told.add(kind);
		return true;
	}

	/** Forgets refusals and events every minute. Otherwise memory would grow with each new network. */
	#startMinute(): void {
		if (this.#now() - this.#minuteBegan < minuteMs) return;
		this.#minuteBegan = this.#now();
		this.#refused.clear();
		this.#told.clear();
	}
}

function raise(counts: Map<string, number>, network: string, step: number): number {
	const count = (counts.get(network) ?? 0) + step;
	counts.set(network, count);
	return count;
}
