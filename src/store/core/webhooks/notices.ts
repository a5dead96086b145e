/** Webhook deliveries, made in the transaction of their event: one for each webhook of that type. */
import { randomUUID } from 'node:crypto';
import type { Micros } from '../../../api/datetime.js';
import { formatNotification } from '../../../api/notifications.js';
import type { EventType, Uuid } from '../../../api/records.js';
import { readEnvelope, subjectOf } from '../rows.js';
import type { Insertion, Sql, SqlValue } from '../sql.js';

/** The facts about an event in a webhook delivery; absent = null. */
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

/** The webhook deliveries of one operation. */
export interface Notices {
	/** `message`: its number within the database. */
	add(message: number, event: NoticedEvent): void;
	/** Makes a delivery for each webhook that is told of an event; reads what it says about the message. */
	write(): Promise<void>;
}

export const noNotices: Notices = { add: () => undefined, write: async () => undefined };

/** For one operation, in its transaction: reads the webhooks once, and mostly finds none. */
export async function openNotices(sql: Sql): Promise<Notices> {
	const hooks = await sql.all<Hook>('SELECT id, type FROM webhooks WHERE stopped_at IS NULL ORDER BY id');
	const told: Told[] = [];
	return {
		add: (message, event) => {
			for (const hook of hooks) if (hook.type === event.type) told.push({ hook, message, event });
		},
		write: async () => {
			if (told.length === 0) return;
			const all = told.splice(0);
			const about = await readMessages(sql, [...new Set(all.map(({ message }) => message))]);
			sql.writeAll(
				intoDeliveries,
				all.map((one) => deliveryOf(one, about)),
			);
		},
	};
}

interface Hook {
	id: number;
	type: string;
}

/** An event of which a webhook is told. */
interface Told {
	hook: Hook;
	/** Its number within the database. */
	message: number;
	event: NoticedEvent;
}

interface SubmissionRow {
	seq: number;
	envelope: string;
	subject: string;
	context: string;
	tag: string | null;
	campaign: Uuid | null;
}

interface MessageRow {
	id: number;
	uuid: Uuid;
	to_email: string;
	submission_seq: number;
	variables: string;
}

type About = Parameters<typeof formatNotification>[0]['message'];

async function readMessages(sql: Sql, ids: readonly number[]): Promise<ReadonlyMap<number, About>> {
	const wanted = JSON.stringify(ids);
	const [messages, submissions] = await sql.together([
		() =>
			sql.all<MessageRow>(
				`SELECT id, uuid, to_email, submission_seq, variables FROM messages WHERE ${sql.dialect.oneOf('id')}`,
				wanted,
			),
		() =>
			sql.all<SubmissionRow>(
				`SELECT s.seq, s.envelope, c.subject, s.context, s.tag, s.campaign
				FROM submissions s
				JOIN contents c ON c.sha256 = s.content_sha256
				WHERE s.seq IN (SELECT submission_seq FROM messages WHERE ${sql.dialect.oneOf('id')})`,
				wanted,
			),
	]);
	const known = new Map(
		submissions.map(({ seq, envelope, subject, context, tag, campaign }) => [
			seq,
			{ subject, context, about: { from: readEnvelope(envelope).from, tag, campaign_unique_id: campaign } },
		]),
	);
	return new Map(
		messages.map(({ id, uuid, to_email: to, submission_seq: seq, variables: own }) => {
			const submission = known.get(seq);
			if (submission === undefined) throw new Error(`submission ${seq} of a message is missing`);
			const { context: shared, about } = submission;
			return [id, { id: uuid, to, subject: subjectOf(submission.subject, { to, own, shared }), ...about }];
		}),
	);
}

const intoDeliveries: Insertion = {
	table: 'webhook_deliveries',
	columns: {
		...{ uuid: 'TEXT', webhook_id: 'BIGINT', message_id: 'BIGINT', type: 'TEXT' },
		...{ payload: 'TEXT', state: 'TEXT', due_at: 'BIGINT', created_at: 'BIGINT' },
	},
	key: 'uuid',
	id: 'id',
	conflict: '',
};

/** In the order of the columns. */
function deliveryOf({ hook, message, event }: Told, messages: ReadonlyMap<number, About>): SqlValue[] {
	const about = messages.get(message);
	if (about === undefined) throw new Error(`message ${message} of an event is missing`);
	const { ip = null, user_agent = null, url = null, smtp_code = null, diagnostic = null } = event;
	const id = randomUUID();
	const payload = formatNotification({
		id,
		type: event.type,
		at: event.at,
		message: about,
		data: { url, ip, user_agent, machine: event.machine, smtp_code, diagnostic },
	});
	return [id, hook.id, message, event.type, payload, 'pending', event.at, event.at];
}
