/** Accepts a send call: all of it or nothing, with its idempotency key and each recipient, in one operation. */

import { type EmailKey, parseMailbox } from '../../api/address.js';
import type { Envelope } from '../../api/content.js';
import type { Micros } from '../../api/datetime.js';
import type { SendResult, Uuid } from '../../api/records.js';
import { noSuch, unverifiedSender } from '../../engine/rules/errors.js';
import { type Person, personVariables } from '../../engine/rules/meta.js';
import { isWanted } from '../../engine/rules/subscription.js';
import type { Operations } from '../operations.js';
import type { Acceptance, IdempotencyKey, Submission } from '../submissions.js';
import { attachmentErrors, nameAttachments } from './attachments.js';
import { findEarlier, rememberKey } from './idempotency.js';
import { findList } from './lists.js';
import { flag, parseRecord } from './rows.js';
import { findSender } from './senders.js';
import type { Sql } from './sql.js';
import { findSuppressions, isWantedBy } from './suppressions.js';
import { createTally } from './tally.js';

/** Lanes of messages without a campaign. A person waits for a transactional message, so it is leased first. */
export const lanes = { transactional: 0, bulk: -1 } as const;

/** Every lane in which a message may wait: these, and those of unfinished campaigns. */
export async function openLanes(sql: Sql): Promise<number[]> {
	const campaigns = await sql.all<{ seq: number }>(
		'SELECT seq FROM campaigns WHERE has_open_work = 1 ORDER BY seq',
	);
	return [lanes.transactional, lanes.bulk, ...campaigns.map(({ seq }) => seq)];
}

/**
 * Runs in one transaction of the caller. A key used within 24 hours gets its answer first, whatever happened to sender
 * and list.
 */
export function createSubmissions(sql: Sql) {
	return {
		acceptSubmission: async ({ key, ...submission }) => {
			const earlier = key === null ? null : await findEarlier(sql, key, submission.now);
			if (earlier !== null) return earlier;
			const errors = {
				...((await findSender(sql, submission.from_key)) === null && unverifiedSender),
				...(submission.list_id !== null &&
					(await findList(sql, submission.list_id)) === null &&
					noSuch('list_id', submission.list_id)),
				...(await attachmentErrors(sql, submission.content.attachments)),
			};
			if (Object.keys(errors).length > 0) return { kind: 'refused', errors };
			return await accept(sql, submission, key);
		},
	} satisfies Partial<Operations>;
}

/**
 * Stores content (once for each body) and submission, whose owner is that of its campaign; returns its number within the
 * database.
 */
export async function insertSubmission(
	sql: Sql,
	submission: Omit<Submission, 'recipients'>,
	campaign: { seq: number; owner: string | null } | null,
): Promise<number> {
	const { content, content_sha256 } = submission;
	const { changes } = await sql.run(
		`INSERT INTO contents (sha256, subject, text, html, disable_inline)
		VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`,
		content_sha256,
		content.subject,
		content.text,
		content.html,
		flag(content.disable_inline),
	);
	if (changes === 1) await nameAttachments(sql, content_sha256, content.attachments);
	return await sql.number(
		`INSERT INTO submissions
			(id, type, envelope, tag, campaign, content_sha256, context, variables, list_id, campaign_seq, owner, request, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		RETURNING seq`,
		submission.id,
		submission.type,
		JSON.stringify(await deliverableEnvelope(sql, submission.envelope, submission.now)),
		submission.tag,
		submission.campaign,
		content_sha256,
		JSON.stringify(submission.context),
		JSON.stringify(submission.variables),
		submission.list_id,
		campaign?.seq ?? null,
		campaign === null ? (submission.owner ?? null) : campaign.owner,
		submission.request === undefined ? null : JSON.stringify(submission.request),
		submission.now,
	);
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

/** Returns its number within the database; `null` when a message with this uuid exists. */
export async function insertMessage(sql: Sql, message: NewMessage): Promise<number | null> {
	return await sql.insert(
		'id',
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
}

async function accept(sql: Sql, submission: Submission, key: IdempotencyKey | null): Promise<Acceptance> {
	const { id, type, now, recipients } = submission;
	// Every bulk call is a campaign of its own, unless it joins one.
	const campaign = submission.campaign ?? (type === 'BULK' ? id : null);
	const submission_seq = await insertSubmission(sql, { ...submission, campaign }, null);
	const messages: SendResult['messages'] = [];
	for (const recipient of recipients) {
		const isMade = await insertRecipient(sql, submission, submission_seq, recipient);
		if (isMade) messages.push({ to: recipient.to, id: recipient.id });
	}
	const tally = await createTally(sql);
	tally.add({ at: now, campaign, type: 'CREATED', audience: 'all', by: messages.length });
	await tally.write();
	const answer: SendResult = {
		messages,
		result: true,
		messages_created: messages.length,
	};
	if (key !== null) await rememberKey(sql, key, { submission: id, campaign, answer, now });
	return { kind: 'accepted', answer, submission: id, campaign };
}

async function insertRecipient(
	sql: Sql,
	submission: Submission,
	submission_seq: number,
	{ id, to, to_key }: Submission['recipients'][number],
): Promise<boolean> {
	const { type, now, variables, context } = submission;
	const person = await findPerson(sql, to_key, submission.list_id);
	const list_id = person?.list_id ?? submission.list_id;
	if (!(await isWantedBy(sql, { to_key, list_id, is_active: person?.is_active ?? null }, type, now)))
		return false;
	const email_reason = person?.email_reason ?? (await reasonOf(sql, list_id));
	const known = { email: to, name: person?.name ?? '', email_reason, meta: person?.meta ?? {} };
	const inserted = await insertMessage(sql, {
		uuid: id,
		submission_seq,
		lane: type === 'BULK' ? lanes.bulk : lanes.transactional,
		to,
		to_key,
		list_id,
		subscriber_id: person?.subscriber_id ?? null,
		variables: personVariables(known, variables, context),
		state: 'queued',
		now,
	});
	return inserted !== null;
}

async function reasonOf(sql: Sql, list_id: number | null): Promise<string> {
	return list_id === null ? '' : ((await findList(sql, list_id))?.email_reason ?? '');
}

export interface KnownPerson extends Person {
	subscriber_id: number;
	list_id: number;
	is_active: boolean;
}

interface PersonRow {
	id: number;
	list_id: number;
	email: string;
	name: string;
	is_active: number;
	meta: string;
	email_reason: string;
}

/**
 * The subscriber of the given list; without a list, the only one with the address. An address in several lists has no
 * single subscriber: unsubscribing then acts on all of them.
 */
export async function findPerson(
	sql: Sql,
	address: EmailKey,
	list_id: number | null,
): Promise<KnownPerson | null> {
	const [row, another] = await sql.all<PersonRow>(
		// subscribers_by_key (email_key, list_id)
		`SELECT s.id, s.list_id, s.email, s.name, s.is_active, s.meta, l.email_reason
		FROM subscribers s
		JOIN lists l ON l.id = s.list_id
		WHERE s.email_key = ? AND s.list_id = coalesce(?, s.list_id)
		LIMIT 2`,
		address,
		list_id,
	);
	if (row === undefined || another !== undefined) return null;
	const { id, name, email, email_reason } = row;
	const is_active = row.is_active === 1;
	const meta = parseRecord(row.meta);
	return { subscriber_id: id, list_id: row.list_id, email, name, email_reason, is_active, meta };
}

/** The accepted envelope, without copies that may not be sent. */
export async function deliverableEnvelope(sql: Sql, envelope: Envelope, now: Micros): Promise<Envelope> {
	const stopped = new Set(await stoppedCopies(sql, envelope, now));
	const isDeliverable = (text: string) => !stopped.has(parseMailbox(text)?.key ?? '');
	return { ...envelope, cc: envelope.cc.filter(isDeliverable), bcc: envelope.bcc.filter(isDeliverable) };
}

/** Addresses of copies that may not be sent at this moment; nearly always none. */
export async function stoppedCopies(
	sql: Sql,
	{ cc, bcc }: Pick<Envelope, 'cc' | 'bcc'>,
	now: Micros,
): Promise<EmailKey[]> {
	const keys = new Set([...cc, ...bcc].flatMap((text) => parseMailbox(text)?.key ?? []));
	const stopped: EmailKey[] = [];
	for (const address of keys) {
		const reasons = await findSuppressions(sql, { address, list_id: null }, now);
		if (!isWanted('TRANSACTIONAL', { reasons, is_active: null })) stopped.push(address);
	}
	return stopped;
}
