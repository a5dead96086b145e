/** A campaign of send calls alone: no row of `campaigns` has its UUID. A client sees its own calls. */
import type { Campaign, CampaignResult, CampaignResults, CampaignStatus } from '../../../api/campaigns.js';
import { formatDateTime, type Micros } from '../../../api/datetime.js';
import { maxRecipients } from '../../../api/messages.js';
import type { MessageState, Uuid } from '../../../api/records.js';
import type { Command } from '../../operations.js';
import type { Seen } from '../../store.js';
import { attachmentsOf } from '../attachments.js';
import { figuresOf } from '../figures/daily.js';
import { cancelUnlessSent } from '../messages/actions.js';
import { sumsOf } from '../messages/messages.js';
import { commonReplies } from '../replies.js';
import { deletedJoined } from '../retention/sums.js';
import { parseRecord } from '../rows.js';
import { exists, type Sql } from '../sql.js';
import { type CallsCanceled, type CancelCalls, seenRows } from './rows.js';

interface Calls {
	first_at: Micros;
	type: 'TRANSACTIONAL' | 'BULK';
	list_id: number | null;
	content_sha256: string;
	subject: string | null;
	envelope: string;
}

/** Null: no call names the UUID, or none that is seen, or a campaign has it. */
export async function findCalls(sql: Sql, id: Uuid, seen: Seen): Promise<Calls | null> {
	const own = seenRows('s.owner', seen);
	const calls = await sql.get<Calls>(
		`SELECT s.type, s.list_id, s.content_sha256, s.envelope, nullif(c.subject, '') AS subject, (
			SELECT s.created_at
			FROM submissions s
			WHERE s.campaign = ? AND ${own.where}
			ORDER BY s.seq
			LIMIT 1
		) AS first_at
		FROM submissions s
		JOIN contents c ON c.sha256 = s.content_sha256
		WHERE s.campaign = ? AND ${own.where} AND NOT EXISTS (SELECT 1 FROM campaigns WHERE id = s.campaign)
		ORDER BY s.seq DESC
		LIMIT 1`,
		[id, ...own.values, id, ...own.values],
	);
	return calls ?? null;
}

/** Whether a campaign with the UUID would take calls of others away from them. `client` undefined: it may. */
export async function hasCallsOfOthers(sql: Sql, id: Uuid, client: string | undefined): Promise<boolean> {
	if (client === undefined) return false;
	const ofOthers = 'SELECT 1 FROM submissions WHERE campaign = ? AND owner IS DISTINCT FROM ?';
	return await exists(sql, ofOthers, [id, client]);
}

export async function callsStatus(sql: Sql, id: Uuid, seen: Seen): Promise<CampaignStatus | null> {
	const calls = await findCalls(sql, id, seen);
	if (calls === null) return null;
	const attachments = await attachmentsOf(sql, calls.content_sha256);
	const ofCalls =
		'submission_seq IN (SELECT seq FROM submissions WHERE campaign = ? AND campaign_seq IS NULL)';
	const replies = await commonReplies(sql, ofCalls, id);
	return {
		...(await stand(sql, id, seen)),
		...(replies.length > 0 && { replies }),
		...(attachments.length > 0 && { attachments }),
	};
}

export async function callsCampaign(sql: Sql, id: Uuid, seen: Seen): Promise<Campaign | null> {
	const calls = await findCalls(sql, id, seen);
	if (calls === null) return null;
	const { messages: _, ...standing } = await stand(sql, id, seen);
	const { type, subject, list_id, first_at, envelope } = calls;
	const date = formatDateTime(first_at);
	return {
		...standing,
		...{ position: 0, is_complete: true, type, subject, list_id, source: null, requests: false },
		from: String(parseRecord(envelope)['from']),
		...{ date_created: date, date_released: date },
		figures: await figuresOf(sql, id),
	};
}

export async function countJoined(sql: Sql, id: Uuid, seen: Seen): Promise<CampaignStatus['messages']> {
	const own = seenRows('s.owner', seen);
	const rows = await sql.all<{ state: MessageState; count: number }>(
		`SELECT m.state, count(*) AS count
		FROM submissions s
		JOIN messages m ON m.submission_seq = s.seq
		WHERE s.campaign = ? AND s.campaign_seq IS NULL AND ${own.where}
		GROUP BY 1`,
		[id, ...own.values],
	);
	return sumsOf([...rows, ...(await deletedJoined(sql, id, seen))]);
}

const waitingStates: readonly MessageState[] = ['staged', 'queued', 'leased', 'deferred'];

async function stand(sql: Sql, id: Uuid, seen: Seen) {
	const own = seenRows('s.owner', seen);
	const messages = await countJoined(sql, id, seen);
	const suppressed = await sql.number(
		`SELECT count(*)
		FROM campaign_left_out o
		JOIN submissions s ON s.seq = o.submission_seq
		WHERE o.campaign = ? AND ${own.where}`,
		[id, ...own.values],
	);
	const staged = Object.values(messages).reduce((sum, count) => sum + count, 0);
	const is_finished = waitingStates.every((state) => messages[state] === undefined);
	const counts = { staged, suppressed, rejected: 0 };
	return { id, key: id, state: 'released' as const, is_finished, messages, counts };
}

/** A place among the messages of all calls, as one number: the call, and how many of its messages are before the place. */
const width = maxRecipients + 1;

type SlicedRow = Pick<CampaignResult, 'to' | 'state' | 'text' | 'attempts'> & {
	seq: number;
	number: number;
	id: Uuid;
};

async function slice(
	sql: Sql,
	{ id, after, limit, ...seen }: { id: Uuid; after: number; limit: number } & Seen,
): Promise<{ rows: SlicedRow[]; next: number | null }> {
	const own = seenRows('s.owner', seen);
	const from = { seq: Math.floor(after / width), before: after % width };
	const rows = await sql.all<SlicedRow>(
		`SELECT s.seq, m.id AS number, m.to_email AS "to", m.uuid AS id, m.state, m.last_reply AS text, m.attempts
		FROM submissions s
		CROSS JOIN messages m
		WHERE s.campaign = ? AND s.seq >= ? AND m.submission_seq = s.seq AND ${own.where}
		ORDER BY s.seq, m.id
		LIMIT ? OFFSET ?`,
		[id, from.seq, ...own.values, Math.min(limit, Number.MAX_SAFE_INTEGER - 1) + 1, from.before],
	);
	const shown = rows.slice(0, limit);
	const last = shown.at(-1);
	if (last === undefined || rows.length <= limit) return { rows: shown, next: null };
	const ofLast = shown.filter(({ seq }) => seq === last.seq).length;
	const before = ofLast + (last.seq === from.seq ? from.before : 0);
	return { rows: shown, next: last.seq * width + before };
}

export async function sliceCalls(
	sql: Sql,
	{ only, ...command }: Command<'sliceCampaignResults'>,
): Promise<CampaignResults | null> {
	if ((await findCalls(sql, command.id, command)) === null) return null;
	if (only === 'findings') return { results: [], next: null };
	const { rows, next } = await slice(sql, command);
	const results = rows.map(({ to, id, state, text, attempts }) => ({
		...{ line: null, to, id, state, code: null, text, attempts },
	}));
	return { results, next };
}

export async function cancelCalls(
	sql: Sql,
	{ campaign: id, forget: isForgotten = false, now, ...command }: CancelCalls,
): Promise<CallsCanceled> {
	if ((await findCalls(sql, id, command)) === null) return { kind: 'not_found' };
	if (isForgotten) return { kind: 'released' };
	const { rows, next } = await slice(sql, { id, ...command });
	const ids = rows.map(({ number }) => number);
	cancelUnlessSent(sql, ids, now);
	return { kind: 'canceled', next };
}
