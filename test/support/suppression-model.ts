/**
 * Who gets mail, as simply as it can be said: maps of addresses, and rules spelled out one by one. What the stores do
 * is held against this; nothing of theirs is used here.
 */

export type Reason = 'COMPLAINED' | 'HARDBOUNCED' | 'UNSUBSCRIBED' | 'SOFTBOUNCED' | 'MANUAL';

/** Strongest first. */
const order: readonly Reason[] = ['COMPLAINED', 'HARDBOUNCED', 'UNSUBSCRIBED', 'SOFTBOUNCED', 'MANUAL'];
const stopsAll: readonly Reason[] = ['COMPLAINED', 'HARDBOUNCED'];
const byNameOnly: readonly Reason[] = ['COMPLAINED', 'HARDBOUNCED', 'MANUAL'];
const week = 7 * 86_400_000_000;

export interface ModelRow {
	list: number;
	address: string;
	isActive: boolean;
	reason: string | null;
	softBounces: number;
	since: number | null;
}

export interface ModelMessage {
	address: string;
	type: 'TRANSACTIONAL' | 'BULK';
	list: number | null;
	row: ModelRow | null;
	state: 'queued' | 'canceled' | 'sent' | 'failed' | 'bounced';
	hasComplained: boolean;
	hasBouncedHard: boolean;
}

export class SuppressionModel {
	rows: ModelRow[] = [];
	messages: ModelMessage[] = [];
	/** Address → reason → end, null = none. */
	readonly #ends = new Map<string, Map<Reason, number | null>>();

	standing(address: string, now: number): Reason[] {
		const ends = [...(this.#ends.get(address) ?? [])];
		const standing = ends.filter(([, end]) => end === null || end > now).map(([reason]) => reason);
		return order.filter((reason) => standing.includes(reason));
	}

	#lasting(address: string): Reason[] {
		const ends = this.#ends.get(address);
		return order.filter((reason) => ends?.get(reason) === null);
	}

	#ofAddress(address: string): ModelRow[] {
		return this.rows.filter((row) => row.address === address);
	}

	rowIn(list: number, address: string): ModelRow | null {
		return this.#ofAddress(address).find((row) => row.list === list) ?? null;
	}

	#stop(rows: readonly ModelRow[], reason: Reason): void {
		for (const row of rows) {
			row.reason = row.isActive ? reason : (row.reason ?? reason);
			row.isActive = false;
			row.softBounces = 0;
			row.since = null;
		}
	}

	/** By hand, with or without an end. */
	add(address: string, reason: Reason, end: number | null, now: number): void {
		this.#put(address, reason, end, now);
		if (end === null) this.#stop(this.#ofAddress(address), reason);
	}

	#put(address: string, reason: Reason, end: number | null, now: number): void {
		const ends = this.#ends.get(address) ?? new Map<Reason, number | null>();
		this.#ends.set(address, ends);
		const before = ends.get(reason);
		const isOver = before === undefined || (before !== null && before <= now);
		if (isOver || (before !== null && (end === null || end > before))) ends.set(reason, end);
	}

	remove(address: string, reason: Reason | null, now: number): void {
		for (const one of this.standing(address, now))
			if (reason === null || one === reason) this.#ends.get(address)?.delete(one);
	}

	#lift(address: string, now: number): void {
		for (const reason of this.standing(address, now))
			if (!byNameOnly.includes(reason)) this.#ends.get(address)?.delete(reason);
	}

	#isBound(address: string): boolean {
		return this.#lasting(address).some((reason) => byNameOnly.includes(reason));
	}

	create(list: number, address: string): void {
		if (this.rowIn(list, address) !== null) return;
		const [reason = null] = this.#lasting(address);
		this.rows.push({ list, address, isActive: reason === null, reason, softBounces: 0, since: null });
	}

	import(list: number, address: string, reactivate: boolean, now: number): void {
		const isFree = reactivate && !this.#isBound(address);
		if (isFree) this.#lift(address, now);
		const row = this.rowIn(list, address);
		if (row === null) this.create(list, address);
		else if (isFree && !row.isActive) Object.assign(row, { isActive: true, reason: null });
	}

	/** What waits for an address he had before is found at the lease, for there is no index by person. */
	delete(row: ModelRow): void {
		this.rows = this.rows.filter((one) => one !== row);
		for (const message of this.messages) {
			const isHis = message.row === row && message.address === row.address;
			if (isHis && message.type === 'BULK' && message.state === 'queued') message.state = 'canceled';
		}
	}

	deleteList(list: number): void {
		this.rows = this.rows.filter((row) => row.list !== list);
		for (const message of this.messages)
			if (message.list === list && message.type === 'BULK' && message.state === 'queued')
				message.state = 'canceled';
	}

	/** False: refused. */
	activate(row: ModelRow, now: number): boolean {
		if (this.#isBound(row.address)) return false;
		this.#lift(row.address, now);
		Object.assign(row, { isActive: true, reason: null });
		return true;
	}

	deactivate(row: ModelRow): void {
		if (row.isActive) Object.assign(row, { isActive: false, reason: null });
	}

	/** False: refused. */
	move(row: ModelRow, address: string): boolean {
		if (row.address === address) return true;
		if (this.rowIn(row.list, address) !== null) return false;
		const [reason = null] = this.#lasting(address);
		if (row.isActive) Object.assign(row, { isActive: reason === null, reason });
		else row.reason ??= reason;
		Object.assign(row, { address, softBounces: 0, since: null });
		return true;
	}

	#mayGet(address: string, type: ModelMessage['type'], now: number): boolean {
		const standing = this.standing(address, now);
		return type === 'BULK' ? standing.length === 0 : !standing.some((one) => stopsAll.includes(one));
	}

	/** Null: there is no message. */
	send(address: string, type: ModelMessage['type'], list: number | null, now: number): ModelMessage | null {
		if (!this.#mayGet(address, type, now)) return null;
		const everywhere = this.#ofAddress(address);
		const only = everywhere.length === 1 ? (everywhere[0] ?? null) : null;
		const row = list === null ? only : this.rowIn(list, address);
		if (type === 'BULK' && list !== null && row?.isActive === false) return null;
		const message: ModelMessage = {
			...{ address, type, row, list: row?.list ?? list },
			...{ state: 'queued', hasComplained: false, hasBouncedHard: false },
		};
		this.messages.push(message);
		return message;
	}

	/** Whether a worker is given it now; else it is canceled. */
	lease(message: ModelMessage, now: number): boolean {
		const isPersonActive = message.row === null || (this.rows.includes(message.row) && message.row.isActive);
		const isFree = this.#mayGet(message.address, message.type, now);
		if (isFree && (message.type !== 'BULK' || isPersonActive)) return true;
		message.state = 'canceled';
		return false;
	}

	settle(message: ModelMessage, state: 'sent' | 'failed' | 'bounced', now: number): void {
		message.state = state;
		if (state === 'bounced') this.bounceHard(message, now);
		const rows = this.#ofAddress(message.address);
		if (state === 'sent') for (const row of rows) Object.assign(row, { softBounces: 0, since: null });
		if (state !== 'failed') return;
		for (const row of rows.filter(({ isActive }) => isActive)) {
			row.softBounces += 1;
			row.since ??= now;
		}
		const isOver = rows.some(({ softBounces, since }) => softBounces >= 5 && now - (since ?? now) >= week);
		if (isOver) this.add(message.address, 'SOFTBOUNCED', null, now);
	}

	unsubscribe({ address, list, row }: ModelMessage, now: number): void {
		this.#put(address, 'UNSUBSCRIBED', null, now);
		const concerned = this.rows.filter((one) =>
			list === null ? one.address === address : one.list === list && (one.address === address || one === row),
		);
		this.#stop(concerned, 'UNSUBSCRIBED');
	}

	bounceHard(message: ModelMessage, now: number): void {
		if (message.hasBouncedHard) return;
		message.hasBouncedHard = true;
		message.state = 'bounced';
		this.add(message.address, 'HARDBOUNCED', null, now);
	}

	complain(message: ModelMessage, now: number): void {
		if (message.hasComplained) return;
		message.hasComplained = true;
		this.add(message.address, 'COMPLAINED', null, now);
	}
}
