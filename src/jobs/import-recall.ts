/** What earlier runs of an import were answered, and may have been killed before they could write down. */
import type { Ack, ImportCounts, Reject } from '../api/capabilities.js';

/** The answer to the batch that began with this row, asked for without its rows; null where no batch began. */
export type AskAgain = (first: number) => Promise<Ack<ImportCounts> | null>;

/**
 * Asks for the answers batch by batch as they were cut then, so that this run may cut them otherwise: where each ends,
 * the next began. Ranges are asked for in order.
 */
export class EarlierAnswers {
	readonly #ask: AskAgain;
	/** Rows acknowledged by earlier runs. */
	readonly #end: number;
	/** A batch began here, and those before it are answered or not needed. */
	#next = 0;
	/** Of answered batches, not handed out yet. */
	#kept: Reject[] = [];

	constructor(ask: AskAgain, end: number) {
		this.#ask = ask;
		this.#end = end;
	}

	/** Refused rows among `first` … `end` − 1, as far as the deployment still knows them. */
	async rejectsOf(first: number, end: number): Promise<Reject[]> {
		const last = Math.min(end, this.#end);
		// Mostly batches are cut as they were; else the way there begins at the first row.
		if (this.#next < first) await this.#take(first);
		while (this.#next < last && (await this.#take(this.#next)));
		const found = this.#kept.filter(({ row }) => row >= first && row < last);
		this.#kept = this.#kept.filter(({ row }) => row >= last);
		return found;
	}

	/** False: no batch began there. */
	async #take(first: number): Promise<boolean> {
		const ack = await this.#ask(first);
		if (ack === null || ack.position <= first) return false;
		this.#next = ack.position;
		for (const reject of ack.rejects) this.#kept.push(reject);
		return true;
	}
}
