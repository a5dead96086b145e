import type { Campaign, CampaignResult, CampaignResults, CampaignState } from '../../../api/campaigns.js';
import { formatDateTime, type Micros } from '../../../api/datetime.js';
import type { CheckedAudience } from '../../../api/messages.js';
import type { MessageState, Uuid } from '../../../api/records.js';
import type { Courier } from '../../../engine/rules/campaign-rows.js';
import type { DeliveryOutcome } from '../../../engine/rules/outcomes.js';
import { parseStored } from '../../errors.js';
import type { Command, Operations } from '../../operations.js';
import { planOf, seenState } from '../campaign-windows.js';
import { figuresOf } from '../figures/daily.js';
import { selectPage } from '../rows.js';
import { each, type Insertion, type Sql, type SqlValue } from '../sql.js';
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

export interface ResultLog {
	add(row: { line: number | null; to: string; outcome: RowOutcome }): void;
	write(): void;
}

const intoResults: Insertion = {
	table: 'campaign_results',
	columns: {
		...{ campaign_seq: 'BIGINT', n: 'BIGINT', line: 'BIGINT', message_id: 'BIGINT' },
		...{ to_email: 'TEXT', code: 'TEXT', error: 'TEXT' },
	},
	key: 'n',
	id: 'n',
	conflict: '',
};

/** Numbers continue after all counted rows: recipients of a list leave a gap. */
export function createResultLog(sql: Sql, campaign: CampaignRow): ResultLog {
	let n = campaign.staged + campaign.suppressed + campaign.rejected;
	const rows: SqlValue[][] = [];
	return {
		add: ({ line, to, outcome }) => {
			n += 1;
			const isStaged = outcome.kind === 'staged';
			rows.push([
				campaign.seq,
				n,
				line,
				isStaged ? outcome.message : null,
				isStaged ? null : to,
				isStaged ? null : outcome.kind === 'rejected' ? outcome.code : 'suppressed',
				outcome.kind === 'rejected' ? outcome.error : null,
			]);
		},
		write: () => sql.writeAll(intoResults, rows),
	};
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
	const shown = rows.slice(0, limit);
	return {
		results: shown.map((row) =>
			row.courier === 'api' && row.uuid !== null ? toldResult(row) : toResult(row),
		),
		next: rows.length > limit ? (shown.at(-1)?.n ?? null) : null,
	};
}

function toResult({ line, to_email, uuid, state, code, text, attempts }: ResultRow): CampaignResult {
	const without = code === 'suppressed' ? 'suppressed' : 'rejected';
	return {
		line,
		to: to_email,
		id: uuid,
		// A message that is gone was staged and never released.
		state: state ?? (code === null ? 'canceled' : without),
		code,
		text,
		attempts: attempts ?? 0,
	};
}

const complained: ReadonlySet<unknown> = new Set(['failed', 'uncertain']);

function toldResult(row: ResultRow): CampaignResult {
	const { line, to_email, attempts, text, said, said_code } = row;
	const state = toldState(row);
	const complaint = complained.has(state);
	return {
		line,
		to: to_email,
		// Empty: the service gave none.
		id: state === 'accepted' ? text || null : null,
		state,
		code: complaint ? said_code : null,
		text: complaint ? said : null,
		attempts: attempts ?? 0,
	};
}

function toldState({ state, outcome, is_calling }: ResultRow): CampaignResult['state'] {
	if (state === 'sent') return 'accepted';
	if (state === 'leased') return is_calling === 1 ? 'uncertain' : 'queued';
	if (state === 'canceled' && outcome === 'suppressed') return 'suppressed';
	return state === 'deferred' ? 'queued' : (state ?? 'canceled');
}

interface ListedRow extends CampaignRow {
	created_at: Micros;
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

function conditions({ key, id, state, since_at, only_of, now }: Command<'pageCampaigns'>) {
	const own = seenRows('g.owner', only_of === undefined ? {} : { only_of });
	const parts = [own.where, ...(state === undefined ? [] : [inState[state]])];
	const isTimed = state === 'planned' || state === 'sending';
	const values: (string | number)[] = [...own.values, ...(isTimed ? [now] : [])];
	const add = (condition: string, value: string | number | undefined) => {
		if (value === undefined) return;
		parts.push(condition);
		values.push(value);
	};
	add('g.key = ?', key);
	add('g.id = ?', id);
	add('coalesce(g.released_at, g.created_at) >= ?', since_at);
	return { where: parts.join(' AND '), values };
}

/** Campaigns as they are listed; a UUID by itself may be that of send calls. */
export async function pageCampaigns(
	sql: Sql,
	command: Command<'pageCampaigns'>,
): ReturnType<Operations['pageCampaigns']> {
	const listed = await pageListed(sql, command);
	const { id, key, state, since_at, page, page_size, ordering: _, now: __, ...seen } = command;
	if (id === undefined || listed.count > 0) return listed;
	if (key !== undefined || state !== undefined || since_at !== undefined) return listed;
	const campaign = await callsCampaign(sql, id, seen);
	if (campaign === null) return listed;
	return { count: 1, results: page === 1 && page_size > 0 ? [campaign] : [] };
}

async function pageListed(
	sql: Sql,
	command: Command<'pageCampaigns'>,
): ReturnType<Operations['pageCampaigns']> {
	const { count, results: rows } = await selectPage(
		sql,
		{
			columns: `${campaignColumns}, created_at, ${isSending} AS is_sending,
				(SELECT nullif(c.subject, '')
				FROM submissions s
				JOIN contents c ON c.sha256 = s.content_sha256
				WHERE s.campaign_seq = g.seq AND g.requests = 0
				LIMIT 1) AS subject`,
			from: 'campaigns g',
			...conditions(command),
			order: `g.seq ${command.ordering === '-date_created' ? 'DESC' : ''}`,
		},
		command,
		(row: ListedRow) => row,
	);
	const figures = await each(sql, rows, async ({ courier, id }) =>
		courier === 'api' ? null : await figuresOf(sql, id),
	);
	return { count, results: rows.map((row, at) => toCampaign(row, figures[at] ?? null, command.now)) };
}

function toCampaign(row: ListedRow, figures: Campaign['figures'], now: Micros): Campaign {
	const { id, key, state, position, subject } = row;
	const spec = specOf(row);
	const { type = 'TRANSACTIONAL', list_id = null, from } = 'requests' in spec ? {} : spec;
	return {
		id,
		key,
		state,
		is_finished: state === 'released' && row.is_sending === 0,
		counts: countsOf(row),
		...planOf(row, now),
		...(row.audience !== null && { audience: parseStored(row.audience) as CheckedAudience }),
		position,
		is_complete: row.is_complete === 1,
		type,
		subject,
		...(from !== undefined && { from }),
		list_id,
		source: spec.source ?? null,
		requests: row.requests === 1,
		date_created: formatDateTime(row.created_at),
		date_released: row.released_at === null ? null : formatDateTime(row.released_at),
		...(row.dropped_at !== null && { date_dropped: formatDateTime(row.dropped_at) }),
		...(row.rate !== null && { rate: row.rate }),
		figures,
	};
}
