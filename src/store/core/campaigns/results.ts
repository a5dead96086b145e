import type { Campaign, CampaignResult, CampaignState, CampaignStatus } from '../../../api/campaigns.js';
import { formatDateTime, type Micros } from '../../../api/datetime.js';
import { type CheckedAudience, maxRecipients } from '../../../api/messages.js';
import type { MessageState, Uuid } from '../../../api/records.js';
import type { Courier } from '../../../engine/rules/campaign-rows.js';
import type { DeliveryOutcome } from '../../../engine/rules/outcomes.js';
import type { Operations } from '../../operations.js';
import type { Seen } from '../../store.js';
import { attachmentsOf } from '../attachments.js';
import { commonReplies } from '../attempts.js';
import { figuresOf } from '../figures/report.js';
import { cancelUnlessSent } from '../messages/actions.js';
import { type StateCount, sumsOf } from '../messages/messages.js';
import {
	conditionsOf,
	each,
	type Insertion,
	parseRecord,
	parseStored,
	type Sql,
	selectPage,
	sliceOf,
	timeOf,
} from '../sql.js';
import type { RowOutcome } from './lists.js';
import {
	type CampaignRow,
	campaignColumns,
	countsOf,
	isPlanned,
	isSeen,
	isSending,
	planOf,
	seenRows,
	seenState,
	specOf,
} from './rows.js';

export function createCampaignResults(sql: Sql) {
	return {
		pageCampaigns: async (command) => {
			const { id, key, state, since_at, page, page_size, ordering, now, ...seen } = command;
			const isTimed = state === 'planned' || state === 'sending';
			const { count, results: rows } = await selectPage(
				sql,
				{
					columns: `${campaignColumns}, ${isSending} AS is_sending,
					(SELECT nullif(c.subject, '')
					FROM submissions s
					JOIN contents c ON c.sha256 = s.content_sha256
					WHERE s.campaign_seq = g.seq AND g.requests = 0
					LIMIT 1) AS subject`,
					from: 'campaigns g',
					...conditionsOf([
						['g.owner = ?', seen.only_of],
						state === undefined ? ['TRUE'] : [inState[state], ...(isTimed ? [now] : [])],
						['g.key = ?', key],
						['g.id = ?', id],
						['coalesce(g.released_at, g.created_at) >= ?', since_at],
					]),
					order: `g.seq ${ordering === '-date_created' ? 'DESC' : ''}`,
				},
				command,
				(row: ListedRow) => row,
			);
			const mayBeCalls = key === undefined && state === undefined && since_at === undefined && count === 0;
			const calls = id !== undefined && mayBeCalls ? await callsCampaign(sql, id, seen) : null;
			if (calls !== null) return { count: 1, results: page === 1 && page_size > 0 ? [calls] : [] };
			const figures = await each(sql, rows, async ({ courier, id }) =>
				courier === 'api' ? null : await figuresOf(sql, id),
			);
			return { count, results: rows.map((row, at) => toCampaign(row, figures[at] ?? null, now)) };
		},
		sliceCampaignResults: async ({ id, after, limit, only, ...seen }) => {
			const campaign = await sql.get<{ seq: number; owner: string | null }>(
				'SELECT seq, owner FROM campaigns WHERE id = ?',
				[id],
			);
			if (campaign === undefined) {
				if ((await findCalls(sql, id, seen)) === null) return null;
				if (only === 'findings') return { results: [], next: null };
				const { rows, next } = await slice(sql, { id, after, limit, ...seen });
				const results = rows.map(({ to, id, state, text, attempts }) => ({
					...{ line: null, to, id, state, code: null, text, attempts },
				}));
				return { results, next };
			}
			if (!isSeen(campaign, seen)) return null;
			const findings = only === 'findings' ? "AND r.code IS NOT NULL AND r.code <> 'suppressed'" : '';
			const rows = await sql.all<ResultRow>(
				`SELECT r.n, r.line, coalesce(r.to_email, m.to_email, '') AS to_email, m.uuid,
					CASE WHEN m.id IS NULL THEN NULL ELSE ${seenState} END AS state,
					r.code, coalesce(r.error, m.last_reply) AS text, m.attempts,
					g.courier, m.called = m.fence AS is_calling, a.outcome, a.enhanced AS said_code, a.text AS said
				FROM campaign_results r
				JOIN campaigns g ON g.seq = r.campaign_seq
				LEFT JOIN messages m ON m.id = r.message_id
				LEFT JOIN attempts a ON g.courier = 'api' AND a.message_id = m.id AND a.number = m.attempts
				WHERE r.campaign_seq = ? AND r.n > ? ${findings}
				ORDER BY r.n
				LIMIT ?`,
				[campaign.seq, after, limit + 1],
			);
			const { shown, next } = sliceOf(rows, limit, ({ n }) => n);
			return { results: shown.map(toResult), next };
		},
		cancelCalls: async ({ campaign: id, forget: isForgotten = false, now, ...command }) => {
			if ((await findCalls(sql, id, command)) === null) return { kind: 'not_found' };
			if (isForgotten) return { kind: 'released' };
			const { rows, next } = await slice(sql, { id, ...command });
			const ids = rows.map(({ number }) => number);
			cancelUnlessSent(sql, ids, now);
			return { kind: 'canceled', next };
		},
	} satisfies Partial<Operations>;
}

const intoResults: Insertion = {
	table: 'campaign_results',
	columns: {
		...{ campaign_seq: 'BIGINT', n: 'BIGINT', line: 'BIGINT', message_id: 'BIGINT' },
		...{ to_email: 'TEXT', code: 'TEXT', error: 'TEXT' },
	},
	conflict: '',
};

export interface StagedRow {
	row: number;
	line: number | null;
	to: string;
	outcome: RowOutcome;
}

export function logResults(sql: Sql, campaign: CampaignRow, staged: readonly StagedRow[]): void {
	const before = campaign.staged + campaign.suppressed + campaign.rejected;
	const rows = staged.map(({ line, to, outcome }, at) => {
		const place = [campaign.seq, before + at + 1, line];
		if (outcome.kind === 'staged') return [...place, outcome.message, null, null, null];
		if (outcome.kind === 'suppressed') return [...place, null, to, 'suppressed', null];
		return [...place, null, to, outcome.code, outcome.error];
	});
	sql.writeAll(intoResults, rows);
}

interface ResultRow {
	n: number;
	line: number | null;
	to_email: string;
	uuid: Uuid | null;
	state: MessageState | null;
	code: string | null;
	text: string | null;
	attempts: number | null;
	courier: Courier;
	is_calling: number | null;
	outcome: DeliveryOutcome['kind'] | null;
	said_code: string | null;
	said: string | null;
}

function toldOf(row: ResultRow): Pick<CampaignResult, 'id' | 'state' | 'code' | 'text'> {
	const { outcome, is_calling, text, said, said_code } = row;
	const seen = row.state ?? 'canceled';
	if (seen === 'sent') return { id: text || null, state: 'accepted', code: null, text: null };
	const silent = { id: null, code: null, text: null };
	if (seen === 'failed' || seen === 'uncertain' || (seen === 'leased' && is_calling === 1))
		return { id: null, state: seen === 'failed' ? seen : 'uncertain', code: said_code, text: said };
	if (seen === 'leased' || seen === 'deferred') return { ...silent, state: 'queued' };
	return { ...silent, state: seen === 'canceled' && outcome === 'suppressed' ? 'suppressed' : seen };
}

function toResult(row: ResultRow): CampaignResult {
	const { line, to_email: to, uuid, state, code, text } = row;
	const attempts = row.attempts ?? 0;
	if (row.courier === 'api' && uuid !== null) return { line, to, ...toldOf(row), attempts };
	const without = code === 'suppressed' ? 'suppressed' : 'rejected';
	return { line, to, id: uuid, state: state ?? (code === null ? 'canceled' : without), code, text, attempts };
}

interface ListedRow extends CampaignRow {
	is_sending: number;
	subject: string | null;
}

const inState: Readonly<Record<CampaignState, string>> = {
	planned: isPlanned,
	staged: "g.state = 'staged'",
	sending: `(${isSending} AND ${isPlanned} IS NOT TRUE)`,
	finished: `(g.state = 'released' AND NOT ${isSending})`,
	canceled: "g.state = 'canceled'",
};

function toCampaign(row: ListedRow, figures: Campaign['figures'], now: number): Campaign {
	const { id, key, state, position, subject } = row;
	const spec = specOf(row);
	const { type = 'TRANSACTIONAL', list_id = null, from } = 'requests' in spec ? {} : spec;
	return {
		...{ id, key, state, is_finished: state === 'released' && row.is_sending === 0, counts: countsOf(row) },
		...planOf(row, now),
		...(row.audience !== null && { audience: parseStored(row.audience) as CheckedAudience }),
		...{ position, is_complete: row.is_complete === 1, type, subject },
		...(from !== undefined && { from }),
		...{ list_id, source: spec.source ?? null, requests: row.requests === 1 },
		date_created: timeOf(row.created_at),
		date_released: timeOf(row.released_at),
		...(row.dropped_at !== null && { date_dropped: timeOf(row.dropped_at) }),
		...(row.rate !== null && { rate: row.rate }),
		figures,
	};
}

/** Send calls that name the same campaign id, for which `campaigns` has no row. */
interface Calls {
	first_at: Micros;
	type: 'TRANSACTIONAL' | 'BULK';
	list_id: number | null;
	content_sha256: string;
	subject: string | null;
	envelope: string;
}

/** Returns null if no visible call names the id, or if `campaigns` has a row with it. */
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

async function callsCampaign(sql: Sql, id: Uuid, seen: Seen): Promise<Campaign | null> {
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
	const rows = await sql.all<StateCount>(
		`SELECT m.state, count(*) AS count
		FROM submissions s
		JOIN messages m ON m.submission_seq = s.seq
		WHERE s.campaign = ? AND s.campaign_seq IS NULL AND ${own.where}
		GROUP BY 1`,
		[id, ...own.values],
	);
	const client = seen.only_of ?? null;
	// `deleted_joined` does not store clients, so a client gets these sums only if no other client sent.
	const deleted = await sql.all<StateCount>(
		`SELECT state, count
		FROM deleted_joined
		WHERE campaign = ? AND (CAST(? AS TEXT) IS NULL OR NOT EXISTS (
			SELECT 1 FROM submissions WHERE campaign = ? AND owner IS DISTINCT FROM ?
		))`,
		[id, client, id, client],
	);
	return sumsOf([...rows, ...deleted]);
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

/** `after` encodes a position: the `seq` of a call × `width` + how many messages of the call were returned before. */
const width = maxRecipients + 1;

async function slice(
	sql: Sql,
	{ id, after, limit, ...seen }: { id: Uuid; after: number; limit: number } & Seen,
) {
	const own = seenRows('s.owner', seen);
	const from = { seq: Math.floor(after / width), before: after % width };
	const rows = await sql.all<
		Pick<CampaignResult, 'to' | 'state' | 'text' | 'attempts'> & { seq: number; number: number; id: Uuid }
	>(
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
