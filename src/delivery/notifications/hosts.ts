/**
 * Limits the calls under way to each host, so that a dead or slow host takes no room from others. A host without
 * answers gets fewer calls at a time and a pause; its first answer restores the full number.
 */
import { backoff } from '../../api/backoff.js';
import type { LeasedDelivery } from '../../store/notifications.js';

/** Calls at once: to a host that answers, to one that does not, and in all. */
const perHost = 8;
const perSilentHost = 1;
const inAll = 256;
/** Deliveries leased ahead for a host, so that no call waits for the store. */
const heldPerHost = 4 * perHost;
/** Some calls of a busy host may fail although it is alive. */
const silentAfter = 5;
const rests = { first: 250, longest: 30_000 };

interface Host {
	waiting: LeasedDelivery[];
	underWay: number;
	/** Calls in a row without an answer. */
	unanswered: number;
	restsUntil: number;
	hooks: Set<number>;
	/** The last lease contained some for this host: there may be more. */
	hasMore: boolean;
}

export interface Hosts {
	/** Adds the deliveries of one lease. */
	add(deliveries: readonly LeasedDelivery[]): void;
	/** A host that answers will soon have none left, and there may be more for it. */
	isLow(nowMs: number): boolean;
	/**
	 * The next delivery that may be called; it counts as under way. Null: none at this moment (milliseconds of a steady
	 * clock).
	 */
	next(nowMs: number): LeasedDelivery | null;
	/** A call has ended; `isAnswered` null: it was not made. */
	ended(delivery: LeasedDelivery, how: { isAnswered: boolean | null; nowMs: number }): void;
	/** Webhooks with less room than `each`, or none. */
	shares(nowMs: number): { webhook_id: number; max: number }[];
	/** Removes and returns the deliveries not called yet. */
	drop(): LeasedDelivery[];
	readonly each: number;
	readonly underWay: number;
}

const idle = { underWay: 0, unanswered: 0, restsUntil: 0, hasMore: false };

/** For one run of the sender. Times are of a steady clock; each `next` is followed by an `ended`. */
export function createHosts(): Hosts {
	const hosts = new Map<string, Host>();
	let underWay = 0;
	const hostOf = ({ url }: LeasedDelivery): Host => {
		const name = new URL(url).host;
		const known = hosts.get(name);
		if (known !== undefined) return known;
		const fresh: Host = { ...idle, waiting: [], hooks: new Set() };
		hosts.set(name, fresh);
		return fresh;
	};
	const take = (name: string, host: Host): LeasedDelivery | null => {
		const delivery = host.waiting.shift();
		if (delivery === undefined) return null;
		host.underWay += 1;
		underWay += 1;
		// To the end: hosts take turns.
		hosts.delete(name);
		hosts.set(name, host);
		return delivery;
	};
	return {
		each: heldPerHost,
		get underWay() {
			return underWay;
		},
		add: (deliveries) => {
			for (const host of hosts.values()) host.hasMore = false;
			for (const delivery of deliveries) {
				const host = hostOf(delivery);
				host.hooks.add(delivery.webhook_id);
				host.waiting.push(delivery);
				host.hasMore = true;
			}
		},
		isLow: (nowMs) =>
			[...hosts.values()].some(
				(host) => host.hasMore && host.waiting.length < perHost && roomOf(host, nowMs) > 0,
			),
		next: (nowMs) => {
			if (underWay >= inAll) return null;
			for (const [name, host] of hosts) {
				if (host.waiting.length > 0 && mayCall(host, nowMs)) return take(name, host);
			}
			return null;
		},
		ended: (delivery, { isAnswered, nowMs }) => {
			const host = hostOf(delivery);
			host.underWay -= 1;
			underWay -= 1;
			if (isAnswered === null) return;
			host.unanswered = isAnswered ? 0 : host.unanswered + 1;
			host.restsUntil = isSilent(host) ? nowMs + restOf(host) : 0;
		},
		shares: (nowMs) =>
			[...hosts.values()].flatMap((host) => {
				const max = Math.max(0, roomOf(host, nowMs));
				return [...host.hooks].map((webhook_id) => ({ webhook_id, max }));
			}),
		drop: () => [...hosts.values()].flatMap((host) => host.waiting.splice(0)),
	};
}

function isSilent({ unanswered }: Host): boolean {
	return unanswered >= silentAfter;
}

function mayCall(host: Host, nowMs: number): boolean {
	return nowMs >= host.restsUntil && host.underWay < (isSilent(host) ? perSilentHost : perHost);
}

/** Nothing is leased for a host that pauses: the leases would only grow old. */
function roomOf(host: Host, nowMs: number): number {
	if (nowMs < host.restsUntil) return 0;
	const held = host.waiting.length + host.underWay;
	return (isSilent(host) ? perSilentHost : heldPerHost) - held;
}

function restOf({ unanswered }: Host): number {
	return backoff(rests, unanswered - silentAfter + 1);
}
