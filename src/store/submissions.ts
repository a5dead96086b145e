import type { Micros } from '../api/datetime.js';
import type { FieldErrors } from '../api/errors.js';
import type { SendRequest } from '../api/inputs.js';
import type { Content, Envelope } from '../api/messages.js';
import type { SendResult, Tracking, Uuid } from '../api/records.js';

export interface IdempotencyKey {
	scope: string;
	key: string;
	fingerprint: string;
}

export interface Submission {
	id: Uuid;
	owner?: string;
	type: 'TRANSACTIONAL' | 'BULK';
	envelope: Envelope;
	from_key: string;
	tag: string | null;
	tracking?: Tracking;
	content: Content;
	content_sha256: string;
	/**
	 * The variables of the content: only these of a subscriber's meta are kept with the message. Null: only the service
	 * that makes the messages knows them.
	 */
	variables: readonly string[] | null;
	request?: Omit<SendRequest, 'to'>;
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

export interface StoredSubmission {
	id: Uuid;
	type: 'TRANSACTIONAL' | 'BULK';
	envelope: Envelope;
	tag: string | null;
	campaign: Uuid | null;
	tracking?: Tracking;
	content: Content;
	content_sha256: string;
	/** Retention has deleted its texts and files, but for the links of its HTML. */
	is_dropped?: true;
	call?: StoredCall;
}

export interface StoredCall {
	request: Omit<SendRequest, 'to'>;
	content: 'shared' | 'own';
}

export interface OldMessage {
	submission: Uuid;
	list_id: number | null;
	to: string;
	from: string;
	variables: Record<string, string>;
}
