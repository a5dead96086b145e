import type { Micros } from '../api/datetime.js';
import type { FieldErrors } from '../api/errors.js';
import type { SendRequest } from '../api/inputs.js';
import type { Content, Envelope } from '../api/messages.js';
import type { SendResult, Tracking, Uuid } from '../api/records.js';

/** `scope` keeps one client's keys apart from another's; `fingerprint` is a hash of the body. */
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
	/** Compared with the verified senders again, inside the operation. */
	from_key: string;
	tag: string | null;
	tracking?: Tracking;
	content: Content;
	content_sha256: string;
	/**
	 * The variables of the content: of a subscriber's meta only these are kept with the message. Null: only the service
	 * that makes the messages knows them.
	 */
	variables: readonly string[] | null;
	/** The call of a send API, without recipients and context; absent: it goes by SMTP, made from the other parts. */
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

/** The parts of a submission from which the worker joins and addresses its messages. */
export interface StoredSubmission {
	id: Uuid;
	type: 'TRANSACTIONAL' | 'BULK';
	envelope: Envelope;
	tag: string | null;
	campaign: Uuid | null;
	tracking?: Tracking;
	content: Content;
	content_sha256: string;
	/** Retention has deleted its texts and files: of its HTML the links are left. Absent: it has them. */
	is_dropped?: true;
	call?: StoredCall;
}

/** The body of a call to a send API, without recipients and their variables. */
export interface StoredCall {
	request: Omit<SendRequest, 'to'>;
	/** `shared`: the same in every call of the campaign. `own`: a send request of its own. */
	content: 'shared' | 'own';
}

export interface OldMessage {
	submission: Uuid;
	list_id: number | null;
	to: string;
	from: string;
	variables: Record<string, string>;
}
