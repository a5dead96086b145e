/** Sends suppressions in batches, without a session, because a second run leaves stored rows unchanged. */
import { emailKey } from '../api/address.js';
import { AddressSet } from '../api/address-set.js';
import type { Ack, ImportBatch, ImportCounts, Imports, Reject, Session } from '../api/capabilities.js';
import { addImportCounts, noImportCounts } from '../api/counts.js';
import { type SuppressionAck, type SuppressionRow, suppressionRowFields } from '../api/suppressions.js';
import { duplicateCode } from '../tables/finding.js';
import { toSuppressionRow } from '../tables/suppression-columns.js';

export type TakeSuppressions = (rows: readonly SuppressionRow[]) => Promise<SuppressionAck>;

export class SuppressionBatches implements Imports {
	readonly #take: TakeSuppressions;
	readonly #missing: Pick<SuppressionRow, 'reason' | 'expires_at'>;
	readonly #seen = new AddressSet();
	#counts: ImportCounts = noImportCounts;

	constructor(take: TakeSuppressions, missing: Pick<SuppressionRow, 'reason' | 'expires_at'>) {
		this.#take = take;
		this.#missing = missing;
	}

	async open(): Promise<Session> {
		return { id: '', position: 0 };
	}

	async put(_: string, { first, columns, cells }: ImportBatch): Promise<Ack<ImportCounts>> {
		const rows: SuppressionRow[] = [];
		const places: number[] = [];
		const duplicates: Reject[] = [];
		const position = first + cells.length / columns.length;
		for (let row = first; row < position; row += 1) {
			const from = (row - first) * columns.length;
			const one = toSuppressionRow(columns, cells.slice(from, from + columns.length), this.#missing);
			if (this.#isNew(one)) places[rows.push(one) - 1] = row;
			else
				duplicates.push({
					...{ row, code: duplicateCode },
					error: `email: ${one.email} is in this file already.`,
				});
		}
		const ack = rows.length === 0 ? nothing : await this.#take(rows);
		const refused = ack.rejects.map((reject) => ({ ...reject, row: places[reject.row] ?? -1 }));
		const counts = { ...ack.counts, duplicate: duplicates.length };
		this.#counts = addImportCounts(this.#counts, counts);
		return { position, counts, rejects: [...duplicates, ...refused] };
	}

	async finish(): Promise<ImportCounts> {
		return this.#counts;
	}

	/** An invalid row always counts as new, because the service must report it. */
	#isNew(row: SuppressionRow): boolean {
		if (suppressionRowFields.parse(row, 'create').kind === 'invalid') return true;
		const { email, reason, list_id, expires_at } = row;
		return this.#seen.add(JSON.stringify([emailKey(email), reason, list_id, expires_at]));
	}
}

const nothing: SuppressionAck = {
	counts: { created: 0, updated: 0, unchanged: 0, rejected: 0 },
	rejects: [],
};
