import type { Campaign, CampaignResult, CampaignResults, CampaignState } from '../../../api/campaigns.js';
import type { CheckedAudience } from '../../../api/messages.js';
import type { MessageState, Uuid } from '../../../api/records.js';
import type { Courier } from '../../../engine/rules/campaign-rows.js';
import type { DeliveryOutcome } from '../../../engine/rules/outcomes.js';
import { parseStored } from '../../errors.js';
import type { Command, Operations } from '../../operations.js';
import { planOf, seenState } from '../campaign-windows.js';
import { figuresOf } from '../figures/daily.js';
import { selectPage, sliceOf, timeOf } from '../rows.js';
import { conditionsOf, each, type Insertion, type Sql } from '../sql.js';
import { callsCampaign, sliceCalls } from './calls.js';
import {
	type CampaignRow,
	campaignColumns,
	countsOf,
	isPlanned,
	isSeen,
	isSending,
	seenRows,
	specOf,
} from './rows.js';
import type { RowOutcome } from './staging.js';

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

export async function sliceResults(
	sql: Sql,
	{ id, after, limit, only, ...seen }: Command<'sliceCampaignResults'>,
): Promise<CampaignResults | null> {
	const campaign = await sql.get<{ seq: number; owner: string | null }>(
		'SELECT seq, owner FROM campaigns WHERE id = ?',
		[id],
	);
	if (campaign === undefined) return await sliceCalls(sql, { id, after, limit, only, ...seen });
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

export async function pageCampaigns(
	sql: Sql,
	command: Command<'pageCampaigns'>,
): ReturnType<Operations['pageCampaigns']> {
	const { id, key, state, since_at, page, page_size, ordering, now, ...seen } = command;
	const own = seenRows('g.owner', seen);
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
				[own.where, ...own.values],
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
}

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
