/** What became of each row, in the order of the ledger: rows and outcomes stand apart in it and are joined here. */
import type { MailingResult } from '../../../api/mailings.js';
import type { Uuid } from '../../../api/records.js';
import type { MailingBook } from './book.js';
import { type Item, type MailingEntry, type OutcomeEntry, seatsOf } from './entries.js';

/** Every row and recipient, rejected ones too, once. Reads the ledger twice; memory: 16 bytes a recipient, and complaints. */
export async function* resultsOf(
	entries: () => AsyncIterable<MailingEntry>,
	book: MailingBook,
): AsyncGenerator<MailingResult, void, undefined> {
	const told = new Told();
	for await (const entry of entries()) {
		if (entry.kind === 'anew') told.clear();
		if (entry.kind === 'outcome') told.add(entry);
	}
	for await (const { seat, item } of seatedItems(entries)) {
		if (seatsOf(item) === 0) yield rejectedResult(item);
		else yield* peopleOf(item).map((to, index) => resultOf(book, told, { to, item, seat: seat + index }));
	}
}

/** Items that count, each with the number of its first seat. */
export async function* seatedItems(
	entries: () => AsyncIterable<MailingEntry>,
): AsyncGenerator<{ seat: number; item: Item }, void, undefined> {
	let voided = 0;
	for await (const { kind } of entries()) if (kind === 'anew') voided += 1;
	let seat = 0;
	for await (const entry of entries()) {
		if (entry.kind === 'anew') voided -= 1;
		if (voided > 0 || (entry.kind !== 'batch' && entry.kind !== 'list')) continue;
		for (const item of entry.items) {
			yield { seat, item };
			seat += seatsOf(item);
		}
	}
}

function rejectedResult(item: Item): MailingResult {
	const { code, error } = 'code' in item ? item : { code: 'invalid', error: '' };
	const to = typeof item.to === 'string' ? item.to : item.to.join(', ');
	return { line: item.line ?? null, to, id: null, state: 'rejected', code, text: error, attempts: 0 };
}

function resultOf(
	{ seats, state }: MailingBook,
	told: Told,
	{ to, item, seat }: { to: string; item: Item; seat: number },
): MailingResult {
	const stands = seats.get(seat);
	const complaint = stands === 'failed' || stands === 'unknown' ? told.complaint(seat) : null;
	const open = state === 'staged' ? 'staged' : state === 'released' ? 'queued' : 'canceled';
	const states = {
		waiting: open,
		intent: 'uncertain',
		accepted: 'sent',
		suppressed: 'suppressed',
		failed: 'failed',
		unknown: 'uncertain',
	} as const;
	return {
		line: item.line ?? null,
		to,
		id: stands === 'accepted' ? told.id(seat) : null,
		state: states[stands],
		code: complaint?.code ?? null,
		text: complaint?.error ?? null,
		attempts: stands === 'waiting' ? 0 : 1,
	};
}

function peopleOf(item: Item): readonly string[] {
	return typeof item.to === 'string' ? [item.to] : item.to;
}

const idBytes = 16;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** What the last outcome of each seat said. UUIDs as bytes; a service that names messages otherwise costs more. */
class Told {
	#ids = new Uint8Array(idBytes * 1_024);
	readonly #oddIds = new Map<number, string>();
	readonly #complaints = new Map<number, { code: string; error: string }>();

	add(outcome: OutcomeEntry): void {
		for (const [index, seat] of outcome.seats.entries()) {
			if (outcome.as === 'accepted') this.#keepId(seat, outcome.ids[index] ?? null);
			if (outcome.as === 'failed' || outcome.as === 'unknown') this.#complaints.set(seat, outcome);
			else this.#complaints.delete(seat);
		}
	}

	clear(): void {
		this.#ids.fill(0);
		this.#oddIds.clear();
		this.#complaints.clear();
	}

	id(seat: number): Uuid | null {
		const odd = this.#oddIds.get(seat);
		if (odd !== undefined) return odd;
		const bytes = this.#ids.subarray(seat * idBytes, (seat + 1) * idBytes);
		if (bytes.length === 0 || bytes.every((byte) => byte === 0)) return null;
		return Buffer.from(bytes)
			.toString('hex')
			.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
	}

	complaint(seat: number): { code: string; error: string } | null {
		return this.#complaints.get(seat) ?? null;
	}

	#keepId(seat: number, id: Uuid | null): void {
		this.#oddIds.delete(seat);
		if (id === null) return;
		if (!uuid.test(id)) {
			this.#oddIds.set(seat, id);
			return;
		}
		const end = (seat + 1) * idBytes;
		if (end > this.#ids.length) {
			const wider = new Uint8Array(Math.max(end, 2 * this.#ids.length));
			wider.set(this.#ids);
			this.#ids = wider;
		}
		this.#ids.set(Buffer.from(id.replaceAll('-', ''), 'hex'), seat * idBytes);
	}
}
