/**
 * Limits for one network at the server for bounces, and for its lines in the log: a faulty server neither keeps others
 * out nor fills the log.
 */
import ipaddr from 'ipaddr.js';
import { type Clock, formatDateTime, type Micros, steadyOf } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { Ingested } from './ingest.js';

/** Counts by network: an IPv4 address, or a /64 of IPv6, which has one owner. */
export interface IntakeLimits {
	/**
	 * A connection begins; false: the network has too many, opened too many within this minute, or had too many refusals.
	 */
	connect(ip: string): boolean;
	/** The connection has ended, whether it was admitted or not. */
	disconnect(ip: string): void;
	/** A mail begins; false: the network sent too many within this minute. */
	mail(ip: string): boolean;
	/** A recipient was refused: a client that guesses return paths is not admitted again within this minute. */
	refused(ip: string): void;
}

export interface IntakeOptions {
	/** At once, of one address; 20. */
	maxConnections?: number;
	/** Begun within a minute, of one address; 1,200: a mail may come in a connection of its own. */
	maxOpened?: number;
	/** Within a minute, of one address; 1,200. */
	maxMails?: number;
	/** Refused recipients within a minute, of one address; 100. */
	maxRefused?: number;
	/** Milliseconds that only grow. */
	now?: () => number;
}

const minuteMs = 60_000;

/** In memory, for one listener. A refused connection counts too, until `disconnect`. */
export function createIntakeLimits(options: IntakeOptions = {}): IntakeLimits {
	const { maxConnections = 20, maxOpened = 1_200, maxMails = 1_200, maxRefused = 100 } = options;
	const { now = () => performance.now() } = options;
	const open = new Map<string, number>();
	let minute = startMinute(Number.NEGATIVE_INFINITY);
	/** Counts one more, and returns the number within this minute. */
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

/**
 * The network of an address: IPv4 as it is, also mapped into IPv6; the first half of IPv6; anything else as it stands.
 */
export function networkOf(ip: string): string {
	if (!ipaddr.isValid(ip)) return ip;
	const address = ipaddr.process(ip);
	return address instanceof ipaddr.IPv6 ? address.parts.slice(0, 4).join(':') : address.toString();
}

/**
 * The kind of a mail's recipient. `return_path`: one of ours. `unsigned`: in our domain, but made up or of a deleted
 * key. `elsewhere`: another domain, as of a client that searches for a relay.
 */
export type RecipientKind = 'return_path' | 'unsigned' | 'elsewhere';

/** The facts about a session when an answer is given. */
export interface Answered {
	/** The outcome of the mail; `refused`: not accepted, `failed`: the database or this program failed. */
	verdict: Ingested | 'refused' | 'failed';
	/** Null before RCPT. */
	recipient: RecipientKind | null;
	/** The message of the return path; null for any other recipient. */
	message: Uuid | null;
	/** The reply's code. */
	status: number;
	/** When its text began to arrive; null without a text. */
	began: Micros | null;
	bytes: number;
	/** The client. */
	ip: string;
}

/** A line of the log in the form of requests, with `bounce_smtp` for the method and path of a request. */
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

/** For the operator: the sending server keeps the mail and tries again. */
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
	/** Writes lines that still wait. */
	close(): void;
}

/** Further keys of one minute are written together, as the last of them. */
const maxKeys = 1_000;

/** Over `log`; `everyMs`: a minute. */
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
