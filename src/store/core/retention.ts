import { specIdentity } from '../../api/campaign-identity.js';
import { type Micros, microsPerDay } from '../../api/datetime.js';
import { canonicalJson } from '../../api/json.js';
import type { Uuid } from '../../api/records.js';
import { usedVariables, variableNames } from '../../api/variables.js';
import { erasedAddress, joinVariables } from '../../engine/rules/subscribers.js';
import type { OldMessage } from '../campaigns.js';
import type { Operations } from '../operations.js';
import { dropContent, dropExpiredAttachments, dropUnnamed } from './attachments.js';
import { type CampaignRow, isSending, seenState, specOf } from './campaigns/rows.js';
import { cutoffs } from './disk-usage.js';
import { bouncedGroups, bouncedRows, clickedRows, countedRows } from './figures/tally.js';
import { onlyFrom } from './people.js';
import { column, exists, joinedMessages, parseTexts, parseUsed, readEnvelope, type Sql } from './sql.js';
import { countMessages } from './submissions.js';
import { dropDeliveries } from './webhooks.js';

export interface SliceOfExpired {
	now: Micros;
	limit: number;
	after: number;
	/** The caller passes this function of `src/content`, so that only retention loads the HTML parser. */
	onlyLinks: (html: string) => string | null;
}

type Dropped = Promise<{ next: number | null }>;

interface Expiry {
	drop(sql: Sql, command: SliceOfExpired): Dropped;
	slice: number;
}

export const expiries: readonly Expiry[] = [
	{
		drop: whileFull((sql, { now, limit }) =>
			sql.run(
				`DELETE FROM idempotency_keys
				WHERE (scope, key) IN (SELECT scope, key FROM idempotency_keys WHERE created_at <= ? LIMIT ?)`,
				[now - microsPerDay, limit],
			),
		),
		slice: 1_000,
	},
	{ drop: whileFull(dropExpiredAttachments), slice: 10 },
	{ drop: whileFull(dropDeliveries), slice: 1_000 },
	{
		drop: whileFull((sql, { now }) =>
			sql.run('DELETE FROM processes WHERE heartbeat_at <= ?', [now - microsPerDay]),
		),
		slice: 1_000,
	},
	{ drop: dropEvents, slice: 2_000 },
	{ drop: dropOfCampaigns, slice: 1_000 },
	{ drop: whileFull(dropLeftOut), slice: 1_000 },
	{ drop: dropMessages, slice: 200 },
	{ drop: dropBodies, slice: 20 },
];

export function whileFull(
	drop: (sql: Sql, command: { now: Micros; limit: number }) => Promise<{ changes: number }>,
): Expiry['drop'] {
	return async (sql, command) => ({
		next: (await drop(sql, command)).changes >= command.limit ? 0 : null,
	});
}

const isNeeded = `EXISTS (
	SELECT 1
	FROM submissions s
	LEFT JOIN campaigns g ON g.seq = s.campaign_seq
	WHERE s.content_sha256 = c.sha256 AND (
		g.state = 'staged' OR ${isSending}
		OR (s.campaign_seq IS NULL AND EXISTS (
			SELECT 1 FROM messages m WHERE m.submission_seq = s.seq AND m.wake_at IS NOT NULL
		))
	)
)`;

/**
 * Deletes bodies and files that were not sent during `keep_bodies`, but keeps the links of the HTML. A later send
 * restores the body. `after`: how many bodies the next slice skips, because unfinished messages need them.
 */
async function dropBodies(sql: Sql, { now, limit, after, onlyLinks }: SliceOfExpired): Dropped {
	const { bodies: before } = await cutoffs(sql, now);
	if (before === null) return { next: null };
	const found = await sql.all<{ sha256: string; html: string | null; is_needed: number }>(
		`SELECT sha256, html, CASE WHEN ${isNeeded} THEN 1 ELSE 0 END AS is_needed
		FROM contents c
		WHERE dropped_at IS NULL AND used_at <= ? AND sha256 <> 'erased'
		ORDER BY used_at, sha256
		LIMIT ? OFFSET ?`,
		[before, limit, after],
	);
	const leaving = found.filter(({ is_needed }) => is_needed === 0);
	for (const { sha256, html } of leaving) {
		const { changes } = await sql.run(
			'UPDATE contents SET text = NULL, html = ?, dropped_at = ? WHERE sha256 = ? AND used_at <= ?',
			[html === null ? null : onlyLinks(html), now, sha256, before],
		);
		if (changes === 0) continue;
		const files = 'DELETE FROM content_attachments WHERE content_sha256 = ? RETURNING sha256';
		for (const file of await column<string>(sql, files, [sha256])) dropUnnamed(sql, file, now);
		await dropSpecs(sql, sha256);
	}
	return { next: found.length < limit ? null : after + found.length - leaving.length };
}

/** Removes the bodies of stored content from campaign specs. Adds hashes, so that `findSame` still recognizes the mail. */
async function dropSpecs(sql: Sql, content_sha256: string): Promise<void> {
	const rows = await sql.all<Pick<CampaignRow, 'seq' | 'spec'>>(
		`SELECT seq, spec
		FROM campaigns
		WHERE seq IN (SELECT campaign_seq FROM submissions WHERE content_sha256 = ?)`,
		[content_sha256],
	);
	for (const row of rows) {
		const spec = specOf(row);
		if ('requests' in spec || spec.identity !== undefined) continue;
		const { text_body: _text, html_body: _html, ...kept } = spec;
		sql.write('UPDATE campaigns SET spec = ? WHERE seq = ?', [
			canonicalJson({ ...kept, identity: specIdentity(spec) }),
			row.seq,
		]);
	}
}

async function dropEvents(sql: Sql, { now, limit, after }: SliceOfExpired): Dropped {
	const { events: before } = await cutoffs(sql, now);
	if (before === null) return { next: null };
	const end = await sql.get<{ at: Micros }>(
		'SELECT at FROM events WHERE at >= ? AND at <= ? ORDER BY at LIMIT 1 OFFSET ?',
		[after, before, limit - 1],
	);
	const last = end?.at ?? before;
	const ids = await column<number>(
		sql,
		"SELECT id FROM events WHERE at >= ? AND at <= ? AND type NOT LIKE '%BOUNCED' ORDER BY at LIMIT ?",
		[after, last, limit],
	);
	sql.write(`DELETE FROM events WHERE ${sql.dialect.oneOf('id')}`, [JSON.stringify(ids)]);
	if (ids.length === limit) return { next: after };
	return { next: end === undefined ? null : last + 1 };
}

/** Marks finished, expired campaigns for `dropMessages`. Deletes their results and their records of people left out. */
async function dropOfCampaigns(sql: Sql, { now, limit }: SliceOfExpired): Dropped {
	const { messages: before } = await cutoffs(sql, now);
	if (before === null) return { next: null };
	sql.write(
		`UPDATE campaigns AS g
		SET dropped_at = ?
		WHERE dropped_at IS NULL AND state IN ('released', 'canceled') AND coalesce(released_at, created_at) <= ?
			AND NOT ${isSending}
			AND NOT EXISTS (SELECT 1 FROM messages WHERE lane = g.seq AND wake_at IS NOT NULL)`,
		[now, before],
	);
	for (const [table, key] of [
		['campaign_results', 'campaign_seq, n'],
		['campaign_left_out', 'id'],
	]) {
		const { changes } = await sql.run(
			`DELETE FROM ${table}
			WHERE (${key}) IN (
				SELECT ${key} FROM ${table}
				WHERE campaign_seq IN (SELECT seq FROM campaigns WHERE dropped_at IS NOT NULL)
				LIMIT ?
			)`,
			[limit],
		);
		if (changes > 0) return { next: 0 };
	}
	return { next: null };
}

async function dropLeftOut(
	sql: Sql,
	{ now, limit }: { now: Micros; limit: number },
): Promise<{ changes: number }> {
	const { messages: before } = await cutoffs(sql, now);
	if (before === null) return { changes: 0 };
	return await sql.run(
		`DELETE FROM campaign_left_out
		WHERE id IN (
			SELECT o.id
			FROM (
				SELECT id, submission_seq
				FROM campaign_left_out
				WHERE submission_seq IS NOT NULL
				ORDER BY submission_seq
				LIMIT ?
			) o
			JOIN submissions s ON s.seq = o.submission_seq
			WHERE s.created_at <= ?
		)`,
		[limit, before],
	);
}

/** Stops at a slice without an expired message, because later ids are usually newer. */
async function dropMessages(sql: Sql, command: SliceOfExpired): Dropped {
	const { now, limit, after } = command;
	const { messages: before } = await cutoffs(sql, now);
	if (before === null) return { next: null };
	const range = await sql.tuples<[id: number, created_at: Micros]>(
		'SELECT id, created_at FROM messages WHERE id > ? ORDER BY id LIMIT ?',
		[after, limit],
	);
	const last = range.at(-1)?.[0] ?? after;
	if (!range.some(([, created_at]) => created_at <= before)) return { next: null };
	const leaving = await sql.all<LeavingRow>(
		`SELECT m.id, m.uuid, m.to_key, m.fence, m.variables AS own, s.seq, s.type, s.envelope, s.campaign, s.campaign_seq,
			s.content_sha256, s.variables AS used, s.context, coalesce(g.courier, 'smtp') AS courier
		FROM ${joinedMessages}
		WHERE m.id > ? AND m.id <= ? AND m.wake_at IS NULL
			AND ((s.campaign_seq IS NULL AND m.created_at <= ?) OR g.dropped_at IS NOT NULL)
		ORDER BY m.id`,
		[after, last, before],
	);
	const next = range.length < limit ? null : last;
	if (leaving.length === 0) return { next };
	const ids = JSON.stringify(leaving.map(({ id }) => id));
	addToSums(sql, ids);
	const without = await keepLinks(sql, leaving, command);
	for (const table of ofMessage)
		sql.write(`DELETE FROM ${table} WHERE ${sql.dialect.oneOf('message_id')}`, [ids]);
	sql.write(`DELETE FROM messages WHERE ${sql.dialect.oneOf('id')}`, [ids]);
	countMessages(sql, -leaving.length);
	const submissions = new Map(leaving.map((row) => [row.seq, row]));
	for (const row of submissions.values()) await dropSubmission(sql, row, without.has(row.seq), now);
	return { next };
}

const ofMessage = ['message_firsts', 'events', 'attempts', 'bounce_reports', 'limit_holds', 'limit_waiting'];

/** These tables keep sums over deleted messages for reports. Each entry lists the key columns, then the counts. */
const sums = {
	deleted_links: ['campaign, content_sha256, link, audience', 'clicks', 'messages'],
	deleted_bounced: ['tag, campaign, sent, soft, hard', 'count'],
	deleted_figures: ['tag, campaign, type, audience, quarter', 'count'],
	deleted_bounces: ['campaign, quarter, domain, type, code', 'count'],
	deleted_states: ['campaign, state', 'count'],
	deleted_joined: ['campaign, state', 'count'],
} as const;

function addToSums(sql: Sql, ids: string): void {
	const only = (id: string) => `AND ${sql.dialect.oneOf(id)}`;
	const add = (table: keyof typeof sums, rows: string, values = [ids]) => {
		const [key, ...counts] = sums[table];
		sql.write(
			`INSERT INTO ${table} (${key}, ${counts.join(', ')})
			SELECT ${key}, ${counts.map((name) => `sum(${name})`).join(', ')}
			FROM (${rows}) d
			WHERE TRUE
			GROUP BY ${key}
			ON CONFLICT (${key}) DO UPDATE SET ${counts.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(', ')}`,
			values,
		);
	};
	add('deleted_links', clickedRows(only));
	add('deleted_bounced', bouncedGroups(only));
	const figures = `SELECT coalesce(tag, '') AS tag, coalesce(campaign, '') AS campaign, type, audience, quarter, count
		FROM (${countedRows(only)}) f`;
	add('deleted_figures', figures, [ids, ids, ids, ids]);
	const bounces = `SELECT coalesce(campaign, '') AS campaign, quarter, domain, type, code, count
		FROM (${bouncedRows(sql.dialect, only)}) b`;
	add('deleted_bounces', bounces);
	const states = (campaign: string) => `SELECT ${campaign} AS campaign, ${seenState} AS state, 1 AS count
		FROM ${joinedMessages}
		WHERE ${sql.dialect.oneOf('m.id')}`;
	add('deleted_states', `${states('g.id')} AND g.id IS NOT NULL`);
	// A send call may name a campaign by a UUID that no campaign of this database has.
	add('deleted_joined', `${states('s.campaign')} AND s.campaign IS NOT NULL AND g.id IS NULL`);
}

/**
 * Deletes a submission that has no messages left. Only empties it if it belongs to a campaign, or if its mails link to
 * pages of this server.
 */
async function dropSubmission(
	sql: Sql,
	{ seq, campaign, campaign_seq, content_sha256, envelope }: LeavingRow,
	isUnlinked: boolean,
	now: Micros,
): Promise<void> {
	if (await exists(sql, 'SELECT 1 FROM messages WHERE submission_seq = ?', [seq])) return;
	if (campaign === null && campaign_seq === null && isUnlinked) {
		sql.write('DELETE FROM submissions WHERE seq = ?', [seq]);
		await dropContent(sql, content_sha256, now);
		return;
	}
	const emptied = "UPDATE submissions SET envelope = ?, context = '{}', request = NULL WHERE seq = ?";
	sql.write(emptied, [onlyFrom(envelope), seq]);
}

interface LeavingRow {
	id: number;
	uuid: Uuid;
	to_key: string;
	fence: number;
	own: string;
	seq: number;
	type: 'TRANSACTIONAL' | 'BULK';
	envelope: string;
	campaign: Uuid | null;
	campaign_seq: number | null;
	content_sha256: string;
	used: string;
	context: string;
	courier: string;
}

export function createOldMessages(sql: Sql) {
	return {
		getOldMessage: async ({ id }) => {
			const row = await sql.get<
				Omit<OldMessage, 'from' | 'variables'> & { envelope: string; variables: string | null }
			>(
				`SELECT s.id AS submission, s.envelope, o.list_id, o.to_key AS "to", o.variables
				FROM old_messages o
				JOIN submissions s ON s.seq = o.submission_seq
				WHERE o.uuid = ${sql.dialect.uuidBytes('?')}`,
				[id],
			);
			if (row === undefined) return null;
			const { submission, list_id, to, envelope, variables } = row;
			const { from } = readEnvelope(envelope);
			return { submission, list_id, to, from, variables: variables === null ? {} : parseTexts(variables) };
		},
	} satisfies Partial<Operations>;
}

const pages = ['unsubscribe_url', 'view_url'];

/** Stores the data that web pages of sent mails need. Returns submissions whose mails do not link to these pages. */
async function keepLinks(
	sql: Sql,
	leaving: readonly LeavingRow[],
	{ onlyLinks }: Pick<SliceOfExpired, 'onlyLinks'>,
): Promise<Set<number>> {
	const named = new Map<string, string[] | null>();
	for (const { content_sha256 } of leaving)
		if (!named.has(content_sha256))
			named.set(content_sha256, await variablesInLinks(sql, content_sha256, onlyLinks));
	const without = new Set<number>();
	const kept: LeavingRow[] = [];
	for (const row of leaving) {
		const usesPage = variableNames(parseUsed(row.used) ?? []).some((name) => pages.includes(name));
		const hasPage = row.type === 'BULK' || named.get(row.content_sha256) !== null || usesPage;
		if (!hasPage) without.add(row.seq);
		// Nobody got a mail that was never leased (`fence` 0). A send API serves the pages of its mails itself.
		else if (row.fence > 0 && row.courier === 'smtp' && row.to_key !== erasedAddress) kept.push(row);
	}
	sql.write(
		`INSERT INTO old_messages (uuid, submission_seq, list_id, subscriber_id, to_key)
		SELECT ${sql.dialect.uuidBytes('m.uuid')}, m.submission_seq, m.list_id, m.subscriber_id, m.to_key
		FROM messages m
		WHERE ${sql.dialect.oneOf('m.id')}
		ON CONFLICT (uuid) DO NOTHING`,
		[JSON.stringify(kept.map(({ id }) => id))],
	);
	for (const { uuid, own, used, context, content_sha256 } of kept) {
		const names = named.get(content_sha256) ?? [];
		const all =
			names.length === 0 ? {} : joinVariables(parseTexts(own), parseUsed(used), parseTexts(context));
		const needed = Object.entries(all).filter(([name]) => names.includes(name));
		if (needed.length === 0) continue;
		sql.write(`UPDATE old_messages SET variables = ? WHERE uuid = ${sql.dialect.uuidBytes('?')}`, [
			JSON.stringify(Object.fromEntries(needed)),
			uuid,
		]);
	}
	return without;
}

async function variablesInLinks(
	sql: Sql,
	sha256: string,
	onlyLinks: SliceOfExpired['onlyLinks'],
): Promise<string[] | null> {
	const row = await sql.get<{ html: string | null }>('SELECT html FROM contents WHERE sha256 = ?', [sha256]);
	const html = onlyLinks(row?.html ?? '');
	if (html === null) return null;
	return variableNames(usedVariables({ subject: '', text: null, html }));
}
