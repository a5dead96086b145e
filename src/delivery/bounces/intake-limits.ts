/** How much one address may bring: so that one server in trouble does not keep the others out. */
import ipaddr from 'ipaddr.js';

/** Of IPv6 one address is a /64: who has one has them all. */
export interface IntakeLimits {
	/** A connection begins; false: it has too many. */
	connect(ip: string): boolean;
	/** It has ended, whether it was let in or not. */
	disconnect(ip: string): void;
	/** A mail begins; false: it brought too many within this minute. */
	mail(ip: string): boolean;
}

export interface IntakeOptions {
	/** At once, of one address; 20. */
	maxConnections?: number;
	/** Within a minute, of one address; 1,200. */
	maxMails?: number;
	/** Milliseconds that only grow. */
	now?: () => number;
}

const minuteMs = 60_000;

/** In memory, for one listener. A connection that is refused is counted too, until `disconnect` is told of it. */
export function createIntakeLimits(options: IntakeOptions = {}): IntakeLimits {
	const { maxConnections = 20, maxMails = 1_200, now = () => performance.now() } = options;
	const connections = new Map<string, number>();
	let minute = { begins: Number.NEGATIVE_INFINITY, mails: new Map<string, number>() };
	return {
		connect: (ip) => {
			const network = networkOf(ip);
			const count = (connections.get(network) ?? 0) + 1;
			connections.set(network, count);
			return count <= maxConnections;
		},
		disconnect: (ip) => {
			const network = networkOf(ip);
			const count = (connections.get(network) ?? 1) - 1;
			if (count > 0) connections.set(network, count);
			else connections.delete(network);
		},
		mail: (ip) => {
			// Whole minutes: who comes back later finds nothing of him kept here.
			if (now() - minute.begins >= minuteMs) minute = { begins: now(), mails: new Map() };
			const network = networkOf(ip);
			const count = (minute.mails.get(network) ?? 0) + 1;
			minute.mails.set(network, count);
			return count <= maxMails;
		},
	};
}

/** IPv4 as it is, mapped into IPv6 too; the first half of IPv6; anything else as it stands. */
function networkOf(ip: string): string {
	if (!ipaddr.isValid(ip)) return ip;
	const address = ipaddr.process(ip);
	return address instanceof ipaddr.IPv6 ? address.parts.slice(0, 4).join(':') : address.toString();
}
