import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import ipaddr from 'ipaddr.js';
import {
	SMTPServer,
	type SMTPServerAddress,
	type SMTPServerDataStream,
	type SMTPServerSession,
} from 'smtp-server';
import { type Clock, formatDateTime, type Micros, steadyOf } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { Ingested, ReturnedMail } from './ingest.js';
import { maxMailBytes } from './mime.js';
import type { Verp } from './verp.js';

export interface BounceListenerOptions extends Intake {
	host: string;
	port: number;
	tls: { cert: string; key: string } | null;
	maxConnectionMs?: number;
}

export interface BounceListener {
	address: string;
	close(options: { graceMs: number }): Promise<void>;
}

/** A bounce may return the whole message. */
const maxMessageBytes = 25 * 1024 * 1024;
/** Each may hold a mail of that size in memory. */
const maxConnections = 50;
const silenceMs = 60_000;
/** A byte now and then defeats an idle timeout, and fifty such clients would keep all others out. */
const usualConnectionMs = 600_000;

/** A mail server knows the one return path of its bounce. */
const maxRefused = 10;

export async function listenForBounces(options: BounceListenerOptions): Promise<BounceListener> {
	const limits = createIntakeLimits();
	const targets = new WeakMap<SMTPServerSession, Uuid>();
	const ends = new WeakMap<SMTPServerSession, NodeJS.Timeout>();
	const { maxConnectionMs = usualConnectionMs } = options;
	const refusals = createSummedLog(options.log);
	const refused = ({ remoteAddress: ip }: SMTPServerSession, error: unknown) =>
		refuse({ ...options, refusals }, { error, ip });
	const counts = new WeakMap<SMTPServerSession, number>();
	const refusedRecipient = (session: SMTPServerSession, error: unknown) => {
		const count = (counts.get(session) ?? 0) + 1;
		const refusal = refused(session, error);
		if (refusal.responseCode < 500) return refusal;
		counts.set(session, count);
		limits.refused(session.remoteAddress);
		// The library ends a connection after a 421.
		return count > maxRefused ? reply(421, '4.7.0 Too many refused recipients') : refusal;
	};
	const server = new SMTPServer({
		...(options.tls ?? {}),
		disabledCommands: options.tls === null ? ['AUTH', 'STARTTLS'] : ['AUTH'],
		disableReverseLookup: true,
		logger: false,
		banner: 'for bounces',
		size: maxMessageBytes,
		rejectOversized: true,
		// A bounce has one recipient; a further one must come in a mail of its own.
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
				(error: unknown) => answer(refusedRecipient(session, error)),
			);
		},
		onData: (stream, session, answer) => {
			const message = targets.get(session);
			if (message === undefined) return answer(reply(503, '5.5.1 No recipient'));
			take(options, stream, { message, ip: session.remoteAddress }).then(
				(refusal) => answer(refusal, '2.0.0 Recorded'),
				answer,
			);
		},
	});
	// A client that hangs up, or does not speak SMTP, is not our error.
	server.on('error', () => undefined);
	await new Promise<void>((resolve, reject) => {
		server.server.once('error', reject);
		server.listen(options.port, options.host, resolve);
	});
	return {
		address: addressOf(server),
		close: ({ graceMs }) => {
			server.options.closeTimeout = graceMs;
			return new Promise((resolve) =>
				server.close(() => {
					refusals.close();
					resolve();
				}),
			);
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

interface Intake {
	verp(): Promise<Verp | null>;
	/** Resolves when it is durable; rejects when the database fails. */
	ingest(mail: ReturnedMail): Promise<Ingested>;
	clock: Clock;
	/** Takes one object for each mail, refusal or failure; without e-mail addresses. */
	log: (line: object) => void;
}

class Refusal extends Error {
	readonly responseCode: number;
	readonly recipient: RecipientKind | null;
	constructor(code: number, text: string, recipient: RecipientKind | null) {
		super(text);
		this.responseCode = code;
		this.recipient = recipient;
	}
}

function reply(code: number, text: string, recipient: RecipientKind | null = null): Refusal {
	return new Refusal(code, text, recipient);
}

function refuse(
	{ clock, refusals }: Pick<Intake, 'clock'> & { refusals: SummedLog },
	{ error, ip }: { error: unknown; ip: string },
): Refusal {
	const isOurs = !(error instanceof Refusal);
	const refusal = isOurs ? tryLater() : error;
	if (isOurs) refusals.tell(`failure ${String(error)}`, () => failureLine(clock, { message: null, error }));
	const { recipient, responseCode: status } = refusal;
	const verdict = isOurs ? 'failed' : 'refused';
	refusals.tell([networkOf(ip), verdict, recipient, status].join(' '), () =>
		mailLine(clock, { verdict, recipient, status, message: null, began: null, bytes: 0, ip }),
	);
	return refusal;
}

async function checkRecipient({ verp }: Intake, { address }: SMTPServerAddress): Promise<Uuid> {
	const paths = await verp();
	if (paths === null || !paths.isOurDomain(address)) throw reply(550, '5.7.1 Relaying denied', 'elsewhere');
	const message = paths.messageOf(address);
	if (message === null) throw reply(550, '5.1.1 No such return path', 'unsigned');
	return message;
}

async function take(
	intake: Intake,
	stream: SMTPServerDataStream,
	{ message, ip }: { message: Uuid; ip: string },
): Promise<Refusal | null> {
	const { clock, log } = intake;
	const began = steadyOf(clock);
	const { verdict, refusal } = await taken(intake, stream, message);
	// Too large: the library refuses it, whatever the answer here.
	const status = stream.sizeExceeded ? 552 : (refusal?.responseCode ?? 250);
	const mail = { message, began, bytes: stream.byteLength, ip };
	log(mailLine(clock, { verdict, recipient: 'return_path', status, ...mail }));
	return refusal;
}

async function taken(
	{ ingest, clock, log }: Intake,
	stream: SMTPServerDataStream,
	message: Uuid,
): Promise<{ verdict: Answered['verdict']; refusal: Refusal | null }> {
	try {
		const bytes = await beginOf(stream);
		if (stream.sizeExceeded) return { verdict: 'refused', refusal: null };
		const verdict = await ingest({ bytes, returnPath: message });
		const later = () => reply(451, '4.3.0 The message is being sent, try later');
		return { verdict, refusal: verdict === 'in_flight' ? later() : null };
	} catch (error) {
		return { verdict: 'failed', refusal: failure({ clock, log }, { message, error }) };
	}
}

function failure(
	{ clock, log }: Pick<Intake, 'clock' | 'log'>,
	{ message, error }: { message: Uuid; error: unknown },
): Refusal {
	log(failureLine(clock, { message, error }));
	return tryLater();
}

function tryLater(): Refusal {
	return reply(451, '4.3.0 Cannot record it now, try later');
}

/** Reads everything, as SMTP requires (RFC 5321 s.4.1.1.4), and keeps the first 4 MiB. */
async function beginOf(stream: Readable): Promise<Buffer> {
	const kept: Buffer[] = [];
	let length = 0;
	for await (const piece of stream) {
		const bytes = Buffer.from(piece);
		if (length < maxMailBytes) kept.push(bytes);
		length += bytes.length;
	}
	return Buffer.concat(kept).subarray(0, maxMailBytes);
}

/** Counts by network: an IPv4 address, or a /64 of IPv6, which has one owner. */
export interface IntakeLimits {
	/** False: the network has too many connections, at once or within this minute, or too many refusals. */
	connect(ip: string): boolean;
	disconnect(ip: string): void;
	mail(ip: string): boolean;
	/** A recipient was refused: a client that guesses return paths is not admitted again within this minute. */
	refused(ip: string): void;
}

export interface IntakeOptions {
	maxConnections?: number;
	maxOpened?: number;
	maxMails?: number;
	maxRefused?: number;
	now?: () => number;
}

const minuteMs = 60_000;

export function createIntakeLimits(options: IntakeOptions = {}): IntakeLimits {
	const { maxConnections = 20, maxOpened = 1_200, maxMails = 1_200, maxRefused = 100 } = options;
	const { now = () => performance.now() } = options;
	const open = new Map<string, number>();
	let minute = startMinute(Number.NEGATIVE_INFINITY);
	const counted = (what: 'opened' | 'mails' | 'refused', network: string, step = 1) => {
		// Whole minutes: an address that comes back later has no state here.
		if (now() - minute.begins >= minuteMs) minute = startMinute(now());
		return raise(minute[what], network, step);
	};
	return {
		connect: (ip) => {
			const network = networkOf(ip);
			const isFree = raise(open, network, 1) <= maxConnections;
			const isSlow = counted('opened', network) <= maxOpened;
			return isFree && isSlow && counted('refused', network, 0) < maxRefused;
		},
		disconnect: (ip) => {
			const network = networkOf(ip);
			if (raise(open, network, -1) <= 0) open.delete(network);
		},
		mail: (ip) => counted('mails', networkOf(ip)) <= maxMails,
		refused: (ip) => void counted('refused', networkOf(ip)),
	};
}

function startMinute(begins: number) {
	const counts = () => new Map<string, number>();
	return { begins, opened: counts(), mails: counts(), refused: counts() };
}

function raise(counts: Map<string, number>, network: string, step: number): number {
	const count = (counts.get(network) ?? 0) + step;
	if (step !== 0) counts.set(network, count);
	return count;
}

/** IPv4 as it is, also mapped into IPv6; the first half of IPv6; anything else as it stands. */
export function networkOf(ip: string): string {
	if (!ipaddr.isValid(ip)) return ip;
	const address = ipaddr.process(ip);
	return address instanceof ipaddr.IPv6 ? address.parts.slice(0, 4).join(':') : address.toString();
}

/** `unsigned`: in our domain, but made up or of a deleted key. `elsewhere`: another domain. */
export type RecipientKind = 'return_path' | 'unsigned' | 'elsewhere';

export interface Answered {
	verdict: Ingested | 'refused' | 'failed';
	recipient: RecipientKind | null;
	message: Uuid | null;
	status: number;
	began: Micros | null;
	bytes: number;
	ip: string;
}

export function mailLine(clock: Clock, answered: Answered): object {
	const { verdict, recipient, message, status, began, bytes, ip } = answered;
	return {
		time: `${formatDateTime(clock.now())}Z`,
		bounce_smtp: verdict,
		recipient,
		message,
		status,
		ms: began === null ? 0 : Math.round((steadyOf(clock) - began) / 100) / 10,
		bytes,
		ip,
	};
}

export function failureLine(
	clock: Clock,
	{ message, error }: { message: Uuid | null; error: unknown },
): object {
	const why = error instanceof Error ? error.message : String(error);
	return { time: `${formatDateTime(clock.now())}Z`, event: 'bounce_not_taken', message, error: why };
}

/** Lines that one client may cause in any number: each is written once, then with the number of repeats. */
export interface SummedLog {
	/** Writes the first line of its key within a minute at once; the others after the minute, as one with `count`. */
	tell(key: string, lineOf: () => object): void;
	close(): void;
}

/** Further keys of one minute are written together, as the last of them. */
const maxKeys = 1_000;

export function createSummedLog(log: (line: object) => void, everyMs = 60_000): SummedLog {
	const again = new Map<string, { count: number; lineOf: () => object }>();
	let timer: NodeJS.Timeout | null = null;
	const tellAll = () => {
		if (timer !== null) clearTimeout(timer);
		timer = null;
		for (const { count, lineOf } of again.values()) if (count > 0) log({ ...lineOf(), count });
		again.clear();
	};
	return {
		tell: (key, lineOf) => {
			timer ??= setTimeout(tellAll, everyMs).unref();
			const known = again.get(key) ?? (again.size >= maxKeys ? again.get(others) : undefined);
			if (known !== undefined) {
				known.count += 1;
				known.lineOf = lineOf;
			} else {
				again.set(again.size >= maxKeys ? others : key, { count: 0, lineOf });
				log(lineOf());
			}
		},
		close: tellAll,
	};
}

const others = 'others';
