/**
 * Calls a service for the seats of a released mailing. What is about to be asked is durable before it is asked, what
 * came of it right after: a process killed at any moment leaves at most the calls in flight unknown.
 */
import { ApiError } from '../../../api/errors.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { SendResult } from '../../../api/records.js';
import type { Sleep } from '../pace.js';
import { createTurns } from '../turns.js';
import type { MailingBook } from './book.js';
import type { Group } from './calls.js';
import type { MailingEntry } from './entries.js';
import { type Settled, settleAnswer, settleError } from './outcomes.js';

export interface DeliveryParts {
	book: MailingBook;
	/** Resolves when the entries are durable and count. */
	write: (entries: readonly MailingEntry[]) => Promise<void>;
	/** In the order they are begun. */
	groups: AsyncIterator<Group, unknown>;
	/** One call; tries again by itself what was certainly not processed. */
	send: (request: SendRequest) => Promise<SendResult>;
	/** Calls in flight, and so the most that may be left unknown. */
	concurrency: number;
	/** Recipients a second; null = as fast as it goes. */
	rate: number | null;
	sleep: Sleep;
	/** Begins nothing new; what is in flight is waited for. */
	signal?: AbortSignal;
	/** After each call. */
	onProgress?: () => void;
}

/** Unknown calls one after the other before the service is taken for gone. */
const maxUnknownInARow = 16;

/**
 * Resolves when nothing is in flight any more: with null when every group was called, else with why not. Rejects when
 * the ledger cannot be written; then what was in flight is unknown.
 */
export async function deliverGroups(parts: DeliveryParts): Promise<unknown> {
	const run = new DeliveryRun(parts);
	const lanes = Array.from({ length: parts.concurrency }, () => run.lane());
	const ends = await Promise.allSettled(lanes);
	await parts.groups.return?.();
	const broken = ends.find((end) => end.status === 'rejected');
	if (broken !== undefined) {
		parts.book.closeEarlierRuns();
		throw broken.reason;
	}
	return run.whyOver;
}

class DeliveryRun {
	/** Null = it goes on. */
	whyOver: unknown = null;
	readonly #parts: DeliveryParts;
	readonly #turns: ReturnType<typeof createTurns> | null;
	#unknownInARow = 0;

	constructor(parts: DeliveryParts) {
		this.#parts = parts;
		this.#turns = parts.rate === null ? null : createTurns(parts.rate);
	}

	/** One call after the other; several lanes share the groups. */
	async lane(): Promise<void> {
		// The outcome of a call and the intent of the next one are written together.
		let written = Promise.resolve();
		let ahead = this.#next();
		const again: Group[] = [];
		const take = async () => {
			const smaller = again.shift();
			if (smaller !== undefined) return smaller;
			const group = await ahead;
			if (group === null) return null;
			// Read while the call is under way; what goes wrong is met with the next one.
			ahead = this.#next();
			ahead.catch(() => {});
			return group;
		};
		try {
			for (;;) {
				const group = await take();
				if (group === null || this.#isOver()) break;
				await this.#takeTurn(group, written);
				if (this.#isOver()) break;
				await Promise.all([written, this.#parts.write([intentOf(group)])]);
				const { outcomes, again: smaller } = await this.#call(group);
				again.unshift(...smaller);
				written = this.#parts.write(outcomes);
				written.catch(() => {});
				this.#parts.onProgress?.();
			}
			await written;
		} catch (error) {
			this.whyOver ??= error;
			await written.catch(() => {});
			throw error;
		}
	}

	async #next(): Promise<Group | null> {
		const next = await this.#parts.groups.next();
		return next.done === true ? null : next.value;
	}

	#isOver(): boolean {
		const { signal } = this.#parts;
		if (signal?.aborted === true) this.whyOver ??= signal.reason;
		return this.whyOver !== null;
	}

	/** A wait may be long: what is known by then is durable before it. */
	async #takeTurn(group: Group, written: Promise<void>): Promise<void> {
		const waitMs = this.#turns?.take(group.people.length) ?? 0;
		if (waitMs === 0) return;
		await written;
		const { sleep, signal } = this.#parts;
		await sleep(waitMs, signal).catch((error: unknown) => {
			if (signal?.aborted !== true) throw error;
		});
	}

	async #call(group: Group): Promise<Settled> {
		const { people, request } = group;
		const settled = await this.#parts.send({ ...request, to: people.map(({ to }) => to) }).then(
			(answer) => settleAnswer(group, answer),
			(error: unknown) => this.#settleFailure(group, error),
		);
		const isUnknown = settled.outcomes.some(({ as }) => as === 'unknown');
		this.#unknownInARow = isUnknown ? this.#unknownInARow + 1 : 0;
		if (settled.stop !== null) this.whyOver ??= settled.stop;
		if (this.#unknownInARow > maxUnknownInARow) this.whyOver ??= gone();
		return settled;
	}

	/** Only a pause is cut short by the signal, and what is paused was not processed. */
	#settleFailure(group: Group, error: unknown): Settled {
		if (error instanceof ApiError) return settleError(group, error);
		const { signal } = this.#parts;
		if (signal?.aborted !== true || error !== signal.reason) throw error;
		const seats = group.people.map(({ seat }) => seat);
		return { outcomes: [{ kind: 'outcome', as: 'waiting', seats }], again: [], stop: null };
	}
}

function intentOf({ people }: Group): MailingEntry {
	return { kind: 'intent', seats: people.map(({ seat }) => seat) };
}

function gone(): ApiError {
	return new ApiError('network', 'The service has stopped answering.', { unanswered: true });
}
