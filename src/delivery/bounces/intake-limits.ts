import ipaddr from 'ipaddr.js';

/** IPv4 as it is, also mapped into IPv6; the first half of IPv6, which has one owner; anything else as it stands. */
export function networkOf(ip: string): string {
	if (!ipaddr.isValid(ip)) return ip;
	const address = ipaddr.process(ip);
	return address instanceof ipaddr.IPv6 ? address.parts.slice(0, 4).join(':') : address.toString();
}

const minuteMs = 60_000;

/** Connections of a network at once, and its refused recipients within a minute. */
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

	/** False: the network has too many connections, or too many refusals within this minute. */
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

	/** Whole minutes: an address that comes back later has no state here. */
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

/** Further keys of one minute are written together, as the last of them. */
const maxKeys = 1_000;
const others = 'others';

/** Lines that one client may cause in any number: each is written once, then with the number of repeats. */
export class SummedLog {
	readonly #log: (line: object) => void;
	readonly #again = new Map<string, { count: number; lineOf: () => object }>();
	#timer: NodeJS.Timeout | null = null;

	constructor(log: (line: object) => void) {
		this.#log = log;
	}

	/** Writes the first line of its key within a minute at once; the others after the minute, as one with `count`. */
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
