/** Accepting a send call: all of it or nothing, with its idempotency key, in one operation. */
import { type Micros, microsPerDay } from '../../api/datetime.js';
import type { SendResult, Uuid } from '../../api/records.js';
import { noSuch, unverifiedSender } from '../../engine/rules/errors.js';
import { personVariables } from '../../engine/rules/meta.js';
import { mayReceive } from '../../engine/rules/subscription.js';
import type { Acceptance, IdempotencyKey, Submission } from '../submissions.js';
import { deliverableEnvelope } from './copies.js';
import { createTally } from './figures.js';
import { findList } from './lists.js';
import { findPerson } from './recipients.js';
import { flag } from './rows.js';
import { findSender } from './senders.js';
import type { Sql } from './sql.js';
import { findSuppressions } from './suppressions.js';
import type { Operations } from './sync.js';

/** Lanes of messages without a mailing: a person waits for the first kind, so it is leased first. */
export const lanes = { transactional: 0, bulk: -1 } as const;

/** Every lane in which something may wait: these, and those of mailings that are not through. */
export function openLanes(sql: Sql): number[] {
	const mailings = sql.all<{ seq: number }>('SELECT seq FROM mailings WHERE has_open_work = 1 ORDER BY seq');
	return [lanes.transactional, lanes.bulk, ...mailings.map(({ seq }) => seq)];
}

/**
 * In one transaction of the caller. A key used within 24 hours is answered first, whatever became of sender and list.
 */
export function createSubmissions(sql: Sql): Pick<Operations, 'acceptSubmission'> {
	return {
		acceptSubmission: ({ key, ...submission }) => {
			const earlier = key === null ? null : findEarlier(sql, key, submission.now);
			if (earlier !== null) return earlier;
			const errors = {
				...(findSender(sql, submission.from_key) === null && unverifiedSender),
				...(submission.list_id !== null &&
					findList(sql, submission.list_id) === null &&
					noSuch('list_id', submission.list_id)),
			};
			if (Object.keys(errors).length > 0) return { kind: 'refused', errors };
			return accept(sql, submission, key);
		},
	};
}

/** Stores content (once a body) and submission; its number within the database. */
export function insertSubmission(
	sql: Sql,
	submission: Omit<Submission, 'recipients'>,
	mailing_seq: number | null,
): number {
	const { content, content_sha256 } = submission;
	sql.run(
		`INSERT INTO contents (sha256, subject, text, html, disable_inline)
		VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`,
		content_sha256,
		content.subject,
		content.text,
		content.html,
		flag(content.disable_inline),
	);
	const { lastInsertRowid } = sql.run(
		`INSERT INTO submissions
			(id, type, envelope, tag, campaign, content_sha256, context, variables, list_id, mailing_seq, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		submission.id,
		submission.type,
		JSON.stringify(deliverableEnvelope(sql, submission.envelope, submission.now)),
		submission.tag,
		submission.campaign,
		content_sha256,
		JSON.stringify(submission.context),
		JSON.stringify(submission.variables),
		submission.list_id,
		mailing_seq,
		submission.now,
	);
	return Number(lastInsertRowid);
}

export interface NewMessage {
	uuid: Uuid;
	submission_seq: number;
	lane: number;
	to: string;
	to_key: string;
	list_id: number | null;
	subscriber_id: number | null;
	variables: Record<string, string>;
	state: 'staged' | 'queued';
	now: Micros;
}

/** Its number within the database; `null` when a message with this uuid is there already. */
export function insertMessage(sql: Sql, message: NewMessage): number | null {
	const { changes, lastInsertRowid } = sql.run(
		`INSERT INTO messages
			(uuid, submission_seq, lane, to_email, to_key, list_id, subscriber_id, variables, state, due_at, wake_at, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (uuid) DO NOTHING`,
		message.uuid,
		message.submission_seq,
		message.lane,
		message.to,
		message.to_key,
		message.list_id,
		message.subscriber_id,
		JSON.stringify(message.variables),
		message.state,
		message.now,
		message.now,
		message.now,
	);
	return changes === 1 ? Number(lastInsertRowid) : null;
}

function accept(sql: Sql, submission: Submission, key: IdempotencyKey | null): Acceptance {
	const { id, type, now, recipients } = submission;
	// Every bulk call is a mailing of its own, unless it joins one.
	const campaign = submission.campaign ?? (type === 'BULK' ? id : null);
	const submission_seq = insertSubmission(sql, { ...submission, campaign }, null);
	const messages = recipients.filter((recipient) =>
		insertRecipient(sql, submission, submission_seq, recipient),
	);
	const tally = createTally(sql);
	tally.add({ at: now, campaign, type: 'CREATED', audience: 'all', by: messages.length });
	tally.write();
	const answer: SendResult = {
		messages: messages.map((message) => ({ to: message.to, id: message.id })),
		result: true,
		messages_created: messages.length,
	};
	if (key !== null) rememberKey(sql, key, { submission: id, campaign, answer, now });
	return { kind: 'accepted', answer, submission: id, campaign };
}

function insertRecipient(
	sql: Sql,
	submission: Submission,
	submission_seq: number,
	{ id, to, to_key }: Submission['recipients'][number],
): boolean {
	const { type, list_id, now, variables, context } = submission;
	if (!mayReceive(type, findSuppressions(sql, to_key, now))) return false;
	const person = findPerson(sql, to_key, list_id);
	// Somebody made inactive by hand has no suppression, but is not to get the bulk mail of that list either.
	if (type === 'BULK' && list_id !== null && person?.is_active === false) return false;
	const email_reason = person?.email_reason ?? reasonOf(sql, list_id);
	const known = { email: to, name: person?.name ?? '', email_reason, meta: person?.meta ?? {} };
	const inserted = insertMessage(sql, {
		uuid: id,
		submission_seq,
		lane: type === 'BULK' ? lanes.bulk : lanes.transactional,
		to,
		to_key,
		list_id: person?.list_id ?? list_id,
		subscriber_id: person?.subscriber_id ?? null,
		variables: personVariables(known, variables, context),
		state: 'queued',
		now,
	});
	return inserted !== null;
}

function reasonOf(sql: Sql, list_id: number | null): string {
	return list_id === null ? '' : (findList(sql, list_id)?.email_reason ?? '');
}

interface KeyRow {
	fingerprint: string;
	submission_id: Uuid;
	campaign: Uuid | null;
	answer: string;
}

/** What the same key was answered within 24 hours; null for a new key. */
function findEarlier(sql: Sql, key: IdempotencyKey, now: Micros): Acceptance | null {
	const row = sql.get<KeyRow>(
		`SELECT fingerprint, submission_id, campaign, answer
		FROM idempotency_keys
		WHERE scope = ? AND key = ? AND created_at > ?`,
		key.scope,
		key.key,
		now - microsPerDay,
	);
	if (row === undefined) return null;
	if (row.fingerprint !== key.fingerprint) return { kind: 'key_conflict' };
	// Written by rememberKey and by nothing else.
	const answer = JSON.parse(row.answer) as SendResult;
	return { kind: 'replayed', answer, submission: row.submission_id, campaign: row.campaign };
}

function rememberKey(
	sql: Sql,
	key: IdempotencyKey,
	said: { submission: Uuid; campaign: Uuid | null; answer: SendResult; now: Micros },
): void {
	sql.run(
		`INSERT INTO idempotency_keys (scope, key, fingerprint, submission_id, campaign, answer, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (scope, key) DO UPDATE SET
			fingerprint = excluded.fingerprint,
			submission_id = excluded.submission_id,
			campaign = excluded.campaign,
			answer = excluded.answer,
			created_at = excluded.created_at`,
		key.scope,
		key.key,
		key.fingerprint,
		said.submission,
		said.campaign,
		JSON.stringify(said.answer),
		said.now,
	);
}
