/** Notifications made in the transaction of their event: one delivery a webhook of that type. */
import type { Micros } from '../../api/datetime.js';
import { formatNotification } from '../../api/notifications.js';
import type { EventType, Uuid } from '../../api/records.js';
import type { Sql } from './sql.js';
import { readEnvelope } from './stored-json.js';

/** What a notification tells of an event; absent = null. */
export interface NoticedEvent {
	type: EventType;
	at: Micros;
	machine: boolean;
	ip?: string | null;
	user_agent?: string | null;
	url?: string | null;
	smtp_code?: string | null;
	diagnostic?: string | null;
}

/** Those of one operation, which looks at the webhooks once, and mostly finds none. */
export interface Notices {
	/** `message`: its number within the database. */
	add(message: number, event: NoticedEvent): void;
}

/** For one operation, in its transaction: webhooks are read once, at the first `add`. */
export function createNotices(sql: Sql): Notices {
	let hooks: Hook[] | null = null;
	const submissions = new Map<number, SubmissionRow>();
	return {
		add: (message, event) => {
			hooks ??= sql.all<Hook>('SELECT id, type FROM webhooks WHERE stopped_at IS NULL ORDER BY id');
			const told = hooks.filter(({ type }) => type === event.type);
			if (told.length === 0) return;
			const about = readMessage(sql, submissions, message);
			for (const hook of told) insertDelivery(sql, hook, { message, about, event });
		},
	};
}

interface Hook {
	id: number;
	type: string;
}

interface SubmissionRow {
	envelope: string;
	subject: string;
	tag: string | null;
	campaign: Uuid | null;
}

type About = Parameters<typeof formatNotification>[0]['message'];

function readMessage(sql: Sql, submissions: Map<number, SubmissionRow>, id: number): About {
	const row = sql.get<{ uuid: Uuid; to_email: string; submission_seq: number }>(
		'SELECT uuid, to_email, submission_seq FROM messages WHERE id = ?',
		id,
	);
	if (row === undefined) throw new Error(`message ${id} of an event is missing`);
	const known = submissions.get(row.submission_seq) ?? readSubmission(sql, row.submission_seq);
	submissions.set(row.submission_seq, known);
	const { subject, tag, campaign } = known;
	const { from } = readEnvelope(known.envelope);
	return { id: row.uuid, to: row.to_email, from, subject, tag, campaign_unique_id: campaign };
}

function readSubmission(sql: Sql, seq: number): SubmissionRow {
	const row = sql.get<SubmissionRow>(
		`SELECT s.envelope, c.subject, s.tag, s.campaign
		FROM submissions s
		JOIN contents c ON c.sha256 = s.content_sha256
		WHERE s.seq = ?`,
		seq,
	);
	if (row === undefined) throw new Error(`submission ${seq} of a message is missing`);
	return row;
}

function insertDelivery(
	sql: Sql,
	hook: Hook,
	{ message, about, event }: { message: number; about: About; event: NoticedEvent },
): void {
	const { ip = null, user_agent = null, url = null, smtp_code = null, diagnostic = null } = event;
	const id = newUuid(sql);
	const payload = formatNotification({
		id,
		type: event.type,
		at: event.at,
		message: about,
		data: { url, ip, user_agent, machine: event.machine, smtp_code, diagnostic },
	});
	sql.run(
		`INSERT INTO webhook_deliveries (uuid, webhook_id, message_id, type, payload, state, due_at, created_at)
		VALUES (?, ?, ?, ?, ?, 'pending', ?, ?)`,
		id,
		hook.id,
		message,
		event.type,
		payload,
		event.at,
		event.at,
	);
}

/** Of SQLite's own random octets: an operation of the store has no other source. Version 4 (RFC 9562 s.5.4). */
function newUuid(sql: Sql): Uuid {
	const row = sql.get<{ hex: string }>('SELECT lower(hex(randomblob(16))) AS hex');
	const hex = row?.hex ?? '';
	const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
	return [
		hex.slice(0, 8),
		hex.slice(8, 12),
		`4${hex.slice(13, 16)}`,
		`${variant}${hex.slice(18, 20)}`,
		hex.slice(20, 32),
	].join('-');
}
