/** One send call as a store takes and keeps it. */
import type { Content, Envelope } from '../api/content.js';
import type { Micros } from '../api/datetime.js';
import type { FieldErrors } from '../api/errors.js';
import type { SendResult, Uuid } from '../api/records.js';

/** `scope` keeps one client's keys apart from another's; `fingerprint` is a hash of the body. */
export interface IdempotencyKey {
	scope: string;
	key: string;
	fingerprint: string;
}

/** One send call, its shape checked, its template already read. */
export interface Submission {
	id: Uuid;
	type: 'TRANSACTIONAL' | 'BULK';
	envelope: Envelope;
	/** Compared with the verified senders once more, inside the operation. */
	from_key: string;
	tag: string | null;
	content: Content;
	content_sha256: string;
	/** The variables the content uses: of a subscriber's meta only these are kept with the message. */
	variables: readonly string[];
	context: Readonly<Record<string, string>>;
	list_id: number | null;
	campaign: Uuid | null;
	recipients: readonly { id: Uuid; to: string; to_key: string }[];
	now: Micros;
}

export type Acceptance =
	| { kind: 'accepted' | 'replayed'; answer: SendResult; submission: Uuid; campaign: Uuid | null }
	| { kind: 'key_conflict' }
	| { kind: 'refused'; errors: FieldErrors };

/** What the worker needs of a submission to join and address its messages. */
export interface StoredSubmission {
	id: Uuid;
	type: 'TRANSACTIONAL' | 'BULK';
	envelope: Envelope;
	tag: string | null;
	campaign: Uuid | null;
	content: Content;
	content_sha256: string;
}
