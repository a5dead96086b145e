/** One line a mail that is brought to the server for bounces, and one a refusal: what it was, how it went. No address. */
import { type Clock, formatDateTime, type Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { Ingested } from './ingest.js';

/**
 * Whom a mail is for: a `return_path` of ours; below our domain and `unsigned`, as made up or of a key that is gone;
 * `elsewhere`, where a relay is looked for. Null before that is said.
 */
export type RecipientKind = 'return_path' | 'unsigned' | 'elsewhere';

/** What is known when an answer is given. */
export interface Answered {
	/** What became of the mail; `refused` for one that was not taken at all, `failed` where the database or we did. */
	verdict: Ingested | 'refused' | 'failed';
	recipient: RecipientKind | null;
	/** Whose return path it was brought to; null for any other. */
	message: Uuid | null;
	/** The reply's code. */
	status: number;
	/** When its text began to come; null where none came. */
	began: Micros | null;
	bytes: number;
	/** Who brought it. */
	ip: string;
}

/** As the lines of requests are, with `bounce_smtp` for what a request has of its own. */
export function mailLine(clock: Clock, answered: Answered): object {
	const { verdict, recipient, message, status, began, bytes, ip } = answered;
	const now = clock.now();
	return {
		time: `${formatDateTime(now)}Z`,
		bounce_smtp: verdict,
		recipient,
		message,
		status,
		ms: began === null ? 0 : Math.round((now - began) / 100) / 10,
		bytes,
		ip,
	};
}

/** What the operator is told, too: the sender keeps the mail and comes again. */
export function failureLine(
	clock: Clock,
	{ message, error }: { message: Uuid | null; error: unknown },
): object {
	const why = error instanceof Error ? error.message : String(error);
	return { time: `${formatDateTime(clock.now())}Z`, event: 'bounce_not_taken', message, error: why };
}
