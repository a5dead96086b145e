import { type EmailKey, parseMailbox } from '../../api/address.js';
import { type Micros, microsPerDay } from '../../api/datetime.js';
import type { FieldErrors } from '../../api/errors.js';
import type { Envelope } from '../../api/messages.js';
import type { SendResult, Uuid } from '../../api/records.js';
import {
	isWanted,
	noSuch,
	type Person,
	personVariables,
	stopping,
	unverifiedSender,
} from '../../engine/rules/subscribers.js';
import type { Submission } from '../campaigns.js';
import type { Operations } from '../operations.js';
import type { Seen } from '../store.js';
import { attachmentErrors, nameAttachments } from './attachments.js';
import { intoLeftOut } from './campaigns/rows.js';
import { addTo, createTally } from './figures/tally.js';
import { findKey, rememberKey } from './idempotency.js';
import { findList, type ListRow } from './lists.js';
import { findSender } from './senders.js';
import {
	column,
	each,
	emailColumn,
	flag,
	type NumberedInsertion,
	parseRecord,
	type Sql,
	type SqlValue,
} from './sql.js';
import { findSuppressions, openSuppressions } from './suppressions.js';

/** Lanes of messages outside campaigns. Transactional messages are leased first, because a person waits for them. */
export const lanes = { transactional: 0, bulk: -1 } as const;

export async function openLanes(sql: Sql): Promise<number[]> {
	const open = 'SELECT seq FROM campaigns WHERE has_open_work = 1 ORDER BY seq';
	return [lanes.transactional, lanes.bulk, ...(await column<number>(sql, open))];
}

export function createSubmissions(sql: Sql) {
	return {
		acceptSubmission: async ({ key, only_of, ...submission }) => {
			const { id, type, variables, context, now } = submission;
			const [earlier, { errors, list }, envelope, people, tally] = await sql.together([
				async () => (key === null ? null : await findKey<SendResult>(sql, key, now)),
				() => checkParts(sql, submission, only_of === undefined ? {} : { only_of }),
				() => deliverableEnvelope(sql, submission.envelope, now),
				() => findRecipients(sql, submission),
				() => createTally(sql),
			]);
			if (earlier?.kind === 'key_conflict') return earlier;
			if (earlier !== null) return { ...earlier, kind: 'replayed' };
			if (Object.keys(errors).length > 0) return { kind: 'refused', errors };
			const campaign = submission.campaign ?? (type === 'BULK' ? id : null);
			const submission_seq = await writeSubmission(sql, { ...submission, envelope, campaign }, null);
			const unwanted = people.flatMap(({ placed: { to, to_key, list_id }, unwanted }) =>
				unwanted === null ? [] : [[null, submission_seq, campaign, list_id, to, to_key, ...unwanted]],
			);
			const wanted = people.flatMap(({ id: uuid, placed, person, unwanted }): NewMessage[] => {
				if (unwanted !== null) return [];
				const { name = '', meta = {}, email_reason = list?.email_reason ?? '' } = person ?? {};
				const known = { email: placed.to, name, email_reason, meta };
				return [
					{
						...{ uuid, submission_seq, lane: type === 'BULK' ? lanes.bulk : lanes.transactional },
						...{ ...placed, subscriber_id: person?.subscriber_id ?? null },
						...{ variables: personVariables(known, variables, context), state: 'queued', now },
					},
				];
			});
			const messages = wanted.map(({ to, uuid }) => ({ to, id: uuid }));
			tally.add({ at: now, campaign, type: 'CREATED', audience: 'all', by: messages.length });
			const answer: SendResult = { messages, result: true, messages_created: messages.length };
			sql.writeAll(intoMessages, wanted.map(messageValues));
			tally.write();
			countMessages(sql, wanted.length);
			if (campaign !== null) sql.writeAll(intoLeftOut, unwanted);
			if (key !== null) rememberKey(sql, key, { submission: id, campaign, answer, now });
			return { kind: 'accepted', answer, submission: id, campaign };
		},
	} satisfies Partial<Operations>;
}

export async function checkParts(
	sql: Sql,
	{ from_key, list_id, content }: Pick<Submission, 'from_key' | 'list_id' | 'content'>,
	seen: Seen,
): Promise<{ errors: FieldErrors; list: ListRow | null }> {
	const [sender, list, attachments] = await sql.together([
		() => findSender(sql, from_key),
		async () => (list_id === null ? null : await findList(sql, list_id)),
		() => attachmentErrors(sql, content.attachments, seen),
	]);
	const errors = {
		...(sender === null && unverifiedSender),
		...(list_id !== null && list === null && noSuch('list_id', list_id)),
		...attachments,
	};
	return { errors, list };
}

interface OfCampaign {
	seq: number;
	owner: string | null;
}

export async function insertSubmission(
	sql: Sql,
	submission: Omit<Submission, 'recipients'>,
	campaign: OfCampaign,
): Promise<number> {
	const envelope = await deliverableEnvelope(sql, submission.envelope, submission.now);
	return await writeSubmission(sql, { ...submission, envelope }, campaign);
}

async function writeSubmission(
	sql: Sql,
	submission: Omit<Submission, 'recipients'>,
	campaign: OfCampaign | null,
): Promise<number> {
	const { id, type, tag, list_id, content, content_sha256, now } = submission;
	const { subject, text, html, disable_inline, attachments } = content;
	sql.write(
		`INSERT INTO contents (sha256, subject, text, html, disable_inline, used_at)
		VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`,
		[content_sha256, subject, text, html, flag(disable_inline), now],
	);
	// Update the content at most once a day, except to restore a body that retention has deleted.
	sql.write(
		`UPDATE contents
		SET text = ?, html = ?, used_at = ?, dropped_at = NULL
		WHERE sha256 = ? AND (used_at <= ? OR dropped_at IS NOT NULL)`,
		[text, html, now, content_sha256, now - microsPerDay],
	);
	nameAttachments(sql, content_sha256, attachments);
	const { envelope, context, variables, request } = submission;
	return await sql.number(
		`INSERT INTO submissions
			(id, type, envelope, tag, tracking, campaign, content_sha256, context, variables, list_id, campaign_seq, owner, request, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		RETURNING seq`,
		[
			...[id, type, JSON.stringify(envelope), tag, submission.tracking ?? 'on', submission.campaign],
			...[content_sha256, JSON.stringify(context), JSON.stringify(variables), list_id],
			...[campaign?.seq ?? null, campaign === null ? (submission.owner ?? null) : campaign.owner],
			...[request === undefined ? null : JSON.stringify(request), now],
		],
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

const intoMessages: NumberedInsertion = {
	table: 'messages',
	columns: {
		...{ uuid: 'TEXT', submission_seq: 'BIGINT', lane: 'BIGINT', to_email: 'TEXT', to_key: 'TEXT' },
		...{ list_id: 'BIGINT', subscriber_id: 'BIGINT', variables: 'TEXT', state: 'TEXT' },
		...{ due_at: 'BIGINT', wake_at: 'BIGINT', created_at: 'BIGINT' },
	},
	key: 'uuid',
	id: 'id',
	conflict: 'ON CONFLICT (uuid) DO NOTHING',
};

export async function insertMessages(sql: Sql, messages: readonly NewMessage[]): Promise<(number | null)[]> {
	const made = await sql.insertAll(intoMessages, messages.map(messageValues));
	countMessages(sql, made.filter((id) => id !== null).length);
	return made;
}

const addToCounters = addTo('counters', ['name']);

export function countMessages(sql: Sql, by: number): void {
	if (by !== 0) sql.write(addToCounters, ['messages', sql.shard, by]);
}

export async function messageCount(sql: Sql): Promise<number> {
	return await sql.number("SELECT coalesce(sum(count), 0) FROM counters WHERE name = 'messages'");
}

function messageValues(message: NewMessage): SqlValue[] {
	const { uuid, submission_seq, lane, to, to_key, list_id, subscriber_id, variables, state, now } = message;
	const text = JSON.stringify(variables);
	return [uuid, submission_seq, lane, to, to_key, list_id, subscriber_id, text, state, now, now, now];
}

async function findRecipients(sql: Sql, { type, recipients, list_id, now }: Submission) {
	const [reasonsAgainst, people] = await sql.together([
		() => openSuppressions(sql, now),
		() => each(sql, recipients, ({ to_key }) => findPerson(sql, to_key, list_id)),
	]);
	return await each(sql, recipients, async ({ id, to, to_key }, at) => {
		const person = people[at] ?? null;
		const { is_active = null, disable_reason = null } = person ?? {};
		const placed = { to, to_key, list_id: person?.list_id ?? list_id };
		const reasons = await reasonsAgainst({ address: to_key, list_id: placed.list_id });
		const reason = stopping(type, reasons);
		const why = reason === null ? ['inactive', disable_reason] : ['suppressed', reason];
		return { id, placed, person, unwanted: isWanted(type, { reasons, is_active }) ? null : why };
	});
}

export interface KnownPerson extends Person {
	subscriber_id: number;
	list_id: number;
	is_active: boolean;
	disable_reason: string | null;
}

/** Without `list_id`, returns null for an address that is in several lists. */
export async function findPerson(
	sql: Sql,
	address: EmailKey,
	list_id: number | null,
): Promise<KnownPerson | null> {
	const [row, another] = await sql.all<
		Omit<KnownPerson, 'is_active' | 'meta'> & { is_active: number; meta: string }
	>(
		`SELECT s.id AS subscriber_id, s.list_id, ${emailColumn}, s.name, s.is_active, s.disable_reason, s.meta, l.email_reason
		FROM subscribers s
		JOIN lists l ON l.id = s.list_id
		WHERE s.email_key = ? AND s.list_id = coalesce(?, s.list_id)
		LIMIT 2`,
		[address, list_id],
	);
	if (row === undefined || another !== undefined) return null;
	const { is_active, meta, ...person } = row;
	return { ...person, is_active: is_active === 1, meta: parseRecord(meta) };
}

async function deliverableEnvelope(sql: Sql, envelope: Envelope, now: Micros): Promise<Envelope> {
	const stopped = new Set(await stoppedCopies(sql, envelope, now));
	const isDeliverable = (text: string) => !stopped.has(parseMailbox(text)?.key ?? '');
	return { ...envelope, cc: envelope.cc.filter(isDeliverable), bcc: envelope.bcc.filter(isDeliverable) };
}

export async function stoppedCopies(
	sql: Sql,
	{ cc, bcc }: Pick<Envelope, 'cc' | 'bcc'>,
	now: Micros,
): Promise<EmailKey[]> {
	const addresses = [...new Set([...cc, ...bcc].flatMap((text) => parseMailbox(text)?.key ?? []))];
	if (addresses.length === 0) return [];
	const reasons = await each(sql, addresses, (address) =>
		findSuppressions(sql, { address, list_id: null }, now),
	);
	return addresses.filter(
		(_, at) => !isWanted('TRANSACTIONAL', { reasons: reasons[at] ?? [], is_active: null }),
	);
}
