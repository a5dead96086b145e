/** How much one address may bring: so that one server in trouble does not keep the others out. */

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

export function createIntakeLimits(options: IntakeOptions = {}): IntakeLimits {
	const { maxConnections = 20, maxMails = 1_200, now = () => performance.now() } = options;
	const connections = new Map<string, number>();
	let minute = { begins: Number.NEGATIVE_INFINITY, mails: new Map<string, number>() };
	return {
		connect: (ip) => {
			const count = (connections.get(ip) ?? 0) + 1;
			connections.set(ip, count);
			return count <= maxConnections;
		},
		disconnect: (ip) => {
			const count = (connections.get(ip) ?? 1) - 1;
			if (count > 0) connections.set(ip, count);
			else connections.delete(ip);
		},
		mail: (ip) => {
			// Whole minutes: who comes back later finds nothing of him kept here.
			if (now() - minute.begins >= minuteMs) minute = { begins: now(), mails: new Map() };
			const count = (minute.mails.get(ip) ?? 0) + 1;
			minute.mails.set(ip, count);
			return count <= maxMails;
		},
	};
}
