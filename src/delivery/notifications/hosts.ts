/** Limits the calls to each host, so that a host that is down or slow does not delay others. */
import { backoff } from '../../api/backoff.js';
import type { LeasedDelivery } from '../../store/queue.js';

const perHost = 8;
const perSilentHost = 1;
const inAll = 256;
const heldPerHost = 4 * perHost;
/** A host counts as down after this many consecutive calls without an answer. A busy host may miss a few. */
const silentAfter = 5;
const rests = { first: 250, longest: 30_000 };

interface Host {
	waiting: LeasedDelivery[];
	underWay: number;
	unanswered: number;
	restsUntil: number;
	hooks: Set<number>;
	hasMore: boolean;
}

export class Hosts {
	readonly each = heldPerHost;
	readonly #hosts = new Map<string, Host>();
	#underWay = 0;

	get underWay(): number {
		return this.#underWay;
	}

	add(deliveries: readonly LeasedDelivery[]): void {
		for (const host of this.#hosts.values()) host.hasMore = false;
		for (const delivery of deliveries) {
			const host = this.#hostOf(delivery);
			host.hooks.add(delivery.webhook_id);
			host.waiting.push(delivery);
			host.hasMore = true;
		}
	}

	isLow(nowMs: number): boolean {
		return [...this.#hosts.values()].some(
			(host) => host.hasMore && host.waiting.length < perHost && roomOf(host, nowMs) > 0,
		);
	}

	next(nowMs: number): LeasedDelivery | null {
		if (this.#underWay >= inAll) return null;
		for (const [name, host] of this.#hosts) {
			const delivery = mayCall(host, nowMs) ? host.waiting.shift() : undefined;
			if (delivery === undefined) continue;
			host.underWay += 1;
			this.#underWay += 1;
			// Move the host to the end, so that hosts take turns.
			this.#hosts.delete(name);
			this.#hosts.set(name, host);
			return delivery;
		}
		return null;
	}

	ended(
		delivery: LeasedDelivery,
		{ isAnswered, nowMs }: { isAnswered: boolean | null; nowMs: number },
	): void {
		const host = this.#hostOf(delivery);
		host.underWay -= 1;
		this.#underWay -= 1;
		if (isAnswered === null) return;
		host.unanswered = isAnswered ? 0 : host.unanswered + 1;
		host.restsUntil = isSilent(host) ? nowMs + backoff(rests, host.unanswered - silentAfter + 1) : 0;
	}

	shares(nowMs: number): { webhook_id: number; max: number }[] {
		return [...this.#hosts.values()].flatMap((host) => {
			const max = Math.max(0, roomOf(host, nowMs));
			return [...host.hooks].map((webhook_id) => ({ webhook_id, max }));
		});
	}

	drop(): LeasedDelivery[] {
		return [...this.#hosts.values()].flatMap((host) => host.waiting.splice(0));
	}

	#hostOf({ url }: LeasedDelivery): Host {
		const name = new URL(url).host;
		const known = this.#hosts.get(name);
		if (known !== undefined) return known;
		const counts = { underWay: 0, unanswered: 0, restsUntil: 0 };
		const fresh: Host = { ...counts, waiting: [], hooks: new Set(), hasMore: false };
		this.#hosts.set(name, fresh);
		return fresh;
	}
}

function isSilent({ unanswered }: Host): boolean {
	return unanswered >= silentAfter;
}

function mayCall(host: Host, nowMs: number): boolean {
	return nowMs >= host.restsUntil && host.underWay < (isSilent(host) ? perSilentHost : perHost);
}

/** Returns 0 for a pausing host, because leases would expire during the pause. */
function roomOf(host: Host, nowMs: number): number {
	if (nowMs < host.restsUntil) return 0;
	const held = host.waiting.length + host.underWay;
	return (isSilent(host) ? perSilentHost : heldPerHost) - held;
}
