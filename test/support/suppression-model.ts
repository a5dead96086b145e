/**
 * A simple model of who gets mail: maps of addresses and explicit rules. Tests compare the stores with it; it uses
 * none of their code.
 */

export type Reason = 'COMPLAINED' | 'HARDBOUNCED' | 'UNSUBSCRIBED' | 'SOFTBOUNCED' | 'MANUAL';

const order: readonly Reason[] = ['COMPLAINED', 'HARDBOUNCED', 'UNSUBSCRIBED', 'SOFTBOUNCED', 'MANUAL'];
const stopsAll: readonly Reason[] = ['COMPLAINED', 'HARDBOUNCED'];
const byNameOnly: readonly Reason[] = ['COMPLAINED', 'HARDBOUNCED', 'MANUAL'];
const imposing: readonly Reason[] = ['COMPLAINED', 'HARDBOUNCED', 'UNSUBSCRIBED'];
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
	isErased: boolean;
}

interface Suppression {
	address: string;
	reason: Reason;
	list: number | null;
	end: number | null;
}

export class SuppressionModel {
	rows: ModelRow[] = [];
	messages: ModelMessage[] = [];
	scope: 'list' | 'all' = 'list';
	readonly lists = new Set<number>();
	readonly #erased = new Set<string>();
	#suppressions: Suppression[] = [];

	all(address: string, now: number): string[] {
		return this.#suppressions
			.filter((one) => one.address === address && (one.end === null || one.end > now))
			.map(({ reason, list }) => `${reason} ${list}`);
	}

	#about(address: string, list: number | null): Suppression[] {
		return this.#suppressions.filter(
			(one) => one.address === address && (list === null || one.list === null || one.list === list),
		);
	}

	#standing(address: string, list: number | null, now: number): Reason[] {
		const ends = this.#about(address, list).filter(({ end }) => end === null || end > now);
		return order.filter((reason) => ends.some((one) => one.reason === reason));
	}

	#lasting(address: string, list: number): Reason[] {
		const ends = this.#about(address, list).filter(({ end }) => end === null);
		return order.filter((reason) => ends.some((one) => one.reason === reason));
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

	add(suppression: Suppression, now: number): void {
		const { address, reason, list, end } = suppression;
		const before = this.#suppressions.find(
			(one) => one.address === address && one.reason === reason && one.list === list,
		);
		const isOver = before === undefined || (before.end !== null && before.end <= now);
		if (isOver || (before.end !== null && (end === null || end > before.end))) {
			this.#suppressions = [...this.#suppressions.filter((one) => one !== before), { ...suppression }];
		}
		const rows = this.#ofAddress(address);
		if (end === null) this.#stop(list === null ? rows : rows.filter((row) => row.list === list), reason);
	}

	addByName(suppression: Suppression, now: number): void {
		if (!this.#erased.has(suppression.address)) this.add(suppression, now);
	}

	remove(address: string, reason: Reason | null, list: number | null, now: number): void {
		this.#suppressions = this.#suppressions.filter(
			(one) =>
				one.address !== address ||
				(reason !== null && one.reason !== reason) ||
				(list !== null && one.list !== list) ||
				(one.end !== null && one.end <= now),
		);
	}

	#lift(address: string, list: number, now: number): void {
		const reasons = this.#standing(address, list, now).filter((reason) => !byNameOnly.includes(reason));
		const lifted = this.#about(address, list).filter(({ reason }) => reasons.includes(reason));
		this.#suppressions = this.#suppressions.filter((one) => !lifted.includes(one));
		for (const { reason, list: of, end } of lifted) {
			if (reason !== 'UNSUBSCRIBED' || of !== null || (end !== null && end <= now)) continue;
			for (const row of this.#ofAddress(address))
				if (row.list !== list) this.add({ address, reason, list: row.list, end }, now);
		}
	}

	#isBound(address: string, list: number): boolean {
		return this.#lasting(address, list).some((reason) => byNameOnly.includes(reason));
	}

	create(list: number, address: string): void {
		if (this.rowIn(list, address) !== null || this.#erased.has(address)) return;
		const [reason = null] = this.#lasting(address, list);
		this.rows.push({ list, address, isActive: reason === null, reason, softBounces: 0, since: null });
	}

	import(
		list: number,
		address: string,
		{ reactivate, reason: text }: { reactivate: boolean; reason: string | null },
		now: number,
	): void {
		if (this.#erased.has(address)) return;
		const isFree = reactivate && text === null && !this.#isBound(address, list);
		if (isFree) this.#lift(address, list, now);
		const before = this.rowIn(list, address);
		if (before === null) this.create(list, address);
		const row = this.rowIn(list, address);
		if (row === null) return;
		if (isFree && !row.isActive) Object.assign(row, { isActive: true, reason: null });
		if (text === null) return;
		const imposed = imposing.find((one) => one === text.toUpperCase());
		const standing = this.#lasting(address, list);
		const [strongest = text] = order.filter((one) => one === imposed || standing.includes(one));
		Object.assign(row, { isActive: false, reason: strongest });
		const of = imposed === 'UNSUBSCRIBED' && this.scope === 'list' ? list : null;
		if (imposed !== undefined) this.add({ address, reason: imposed, list: of, end: null }, now);
	}

	delete(row: ModelRow): void {
		this.rows = this.rows.filter((one) => one !== row);
		for (const message of this.messages) {
			const isForRow = message.row === row && message.address === row.address;
			if (isForRow && message.type === 'BULK' && message.state === 'queued') message.state = 'canceled';
		}
	}

	deleteList(list: number, now: number): void {
		this.rows = this.rows.filter((row) => row.list !== list);
		this.lists.delete(list);
		for (const message of this.messages)
			if (message.list === list && message.type === 'BULK' && message.state === 'queued')
				message.state = 'canceled';
		const ofList = this.#suppressions.filter((one) => one.list === list);
		this.#suppressions = this.#suppressions.filter((one) => one.list !== list);
		for (const one of ofList) if (one.end === null || one.end > now) this.add({ ...one, list: null }, now);
	}

	erase(address: string): void {
		this.rows = this.rows.filter((row) => row.address !== address);
		this.#suppressions = this.#suppressions.filter((one) => one.address !== address);
		for (const message of this.messages.filter((one) => one.address === address)) {
			Object.assign(message, { address: '', row: null, isErased: true });
			if (message.state === 'queued') message.state = 'canceled';
		}
		this.#erased.add(address);
	}

	takeAgain(address: string): void {
		this.#erased.delete(address);
	}

	activate(row: ModelRow, now: number): boolean {
		if (this.#isBound(row.address, row.list)) return false;
		this.#lift(row.address, row.list, now);
		Object.assign(row, { isActive: true, reason: null });
		return true;
	}

	deactivate(row: ModelRow): void {
		if (row.isActive) Object.assign(row, { isActive: false, reason: null });
	}

	move(row: ModelRow, address: string, now: number): boolean {
		if (row.address === address) return true;
		if (this.rowIn(row.list, address) !== null || this.#erased.has(address)) return false;
		const hasLeft = this.#lasting(row.address, row.list).includes('UNSUBSCRIBED');
		const [reason = null] = this.#lasting(address, row.list);
		if (row.isActive) Object.assign(row, { isActive: reason === null, reason });
		else row.reason ??= reason;
		Object.assign(row, { address, softBounces: 0, since: null });
		if (hasLeft) this.add({ address, reason: 'UNSUBSCRIBED', list: row.list, end: null }, now);
		return true;
	}

	#mayGet(address: string, list: number | null, type: ModelMessage['type'], now: number): boolean {
		const standing = this.#standing(address, list, now);
		if (type === 'BULK') return standing.length === 0 && !this.#erased.has(address);
		return !standing.some((one) => stopsAll.includes(one));
	}

	send(address: string, type: ModelMessage['type'], list: number | null, now: number): ModelMessage | null {
		const everywhere = this.#ofAddress(address);
		const only = everywhere.length === 1 ? (everywhere[0] ?? null) : null;
		const row = list === null ? only : this.rowIn(list, address);
		const of = row?.list ?? list;
		if (!this.#mayGet(address, of, type, now)) return null;
		if (type === 'BULK' && row?.isActive === false) return null;
		const message: ModelMessage = {
			...{ address, type, row, list: of, state: 'queued' },
			...{ hasComplained: false, hasBouncedHard: false, isErased: false },
		};
		this.messages.push(message);
		return message;
	}

	lease(message: ModelMessage, now: number): boolean {
		const isPersonActive = message.row === null || (this.rows.includes(message.row) && message.row.isActive);
		const isFree = this.#mayGet(message.address, message.list, message.type, now);
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
		if (isOver) this.#stopEverywhere(message.address, 'SOFTBOUNCED', now);
	}

	#stopEverywhere(address: string, reason: Reason, now: number): void {
		this.add({ address, reason, list: null, end: null }, now);
	}

	unsubscribe({ address, list, row, isErased }: ModelMessage, isFromAll: boolean, now: number): void {
		if (isErased) return;
		const isOfList = list !== null && this.lists.has(list) && !isFromAll && this.scope === 'list';
		const addresses = [address, ...(row !== null && this.rows.includes(row) ? [row.address] : [])];
		for (const one of new Set(addresses))
			this.add({ address: one, reason: 'UNSUBSCRIBED', list: isOfList ? list : null, end: null }, now);
	}

	bounceHard(message: ModelMessage, now: number): void {
		if (message.hasBouncedHard || message.isErased) return;
		message.hasBouncedHard = true;
		message.state = 'bounced';
		this.#stopEverywhere(message.address, 'HARDBOUNCED', now);
	}

	complain(message: ModelMessage, now: number): void {
		if (message.hasComplained || message.isErased) return;
		message.hasComplained = true;
		this.#stopEverywhere(message.address, 'COMPLAINED', now);
	}
}
