/** Submissions kept between messages: several mailings at once take turns in the queue, and their links are clicked. */
import type { Uuid } from '../api/records.js';
import type { Reads } from '../store/store.js';
import type { StoredSubmission } from '../store/submissions.js';

export interface Submissions {
	/** Null: it is gone. A failure is not remembered. */
	get(id: Uuid): Promise<StoredSubmission | null>;
}

const kept = 200;

/** The oldest goes first; a submission never changes, so that none grows stale. */
export function createSubmissions(reads: Pick<Reads, 'getSubmission'>): Submissions {
	const submissions = new Map<Uuid, StoredSubmission>();
	return {
		async get(id) {
			const cached = submissions.get(id);
			if (cached !== undefined) return cached;
			const submission = await reads.getSubmission({ id });
			if (submission === null) return null;
			const oldest = submissions.keys().next().value;
			if (submissions.size >= kept && oldest !== undefined) submissions.delete(oldest);
			submissions.set(id, submission);
			return submission;
		},
	};
}
