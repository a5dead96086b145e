import { specIdentity } from '../../../api/campaign-identity.js';
import type { CampaignSession, CampaignStatus, LeftOutPerson } from '../../../api/campaigns.js';
import { type Micros, microsPerDay } from '../../../api/datetime.js';
import type { FieldErrors } from '../../../api/errors.js';
import { canonicalJson } from '../../../api/json.js';
import type { Uuid } from '../../../api/records.js';
import type { CampaignOpened, OpenCampaign } from '../../campaigns.js';
import type { Operations } from '../../operations.js';
import type { Seen } from '../../store.js';
import { attachmentsOf, dropContent } from '../attachments.js';
import { commonReplies } from '../attempts.js';
import { figuresOf } from '../figures/report.js';
import { createTally } from '../figures/tally.js';
import { cancelLost } from '../messages/actions.js';
import { countByState } from '../messages/messages.js';
import { endLeasesOfLost } from '../processes.js';
import { loseLeases } from '../queue.js';
import { column, exists, flag, insertNumbered, type Sql, sliceOf } from '../sql.js';
import { checkParts, countMessages, insertSubmission } from '../submissions.js';
import { addPeople, dropAcks, findAck, putBatch } from './batches.js';
import { listCounts, stageList } from './lists.js';
import { callsStatus, countJoined, findCalls } from './results.js';
import {
	type CampaignRow,
	campaignColumns,
	countsOf,
	isSeen,
	isSending,
	openingOf,
	planOf,
	seenRows,
	specOf,
} from './rows.js';

export function createCampaigns(sql: Sql) {
	return {
		campaignStatus: async ({ id, now, ...seen }) => {
			const row = await findCampaign(sql, id, seen);
			return row === null ? await callsStatus(sql, id, seen) : await status(sql, row, now);
		},
		sliceLeftOut: async (command) => {
			const row = await findCampaign(sql, command.id, command);
			if (row === null && (await findCalls(sql, command.id, command)) === null) return null;
			const { id, after, limit, ...seen } = command;
			const own = seenRows('s.owner', seen);
			const select = 'SELECT o.id, o.to_email AS "to", o.list_id, o.code, o.detail FROM campaign_left_out o';
			const rows = await sql.all<LeftOutPerson & { id: number }>(
				// Skips people who have a message through another list.
				`SELECT *
				FROM (
					${select}
					WHERE o.campaign_seq = ? AND o.id > ?
						AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.to_key = o.to_key AND m.lane = o.campaign_seq)
					ORDER BY o.id
					LIMIT ?
				) l
				UNION ALL
				SELECT *
				FROM (
					${select}
					JOIN submissions s ON s.seq = o.submission_seq
					WHERE o.campaign = ? AND o.id > ? AND ${own.where}
					ORDER BY o.id
					LIMIT ?
				) c
				ORDER BY id`,
				[row?.seq ?? null, after, limit + 1, id, after, ...own.values, limit + 1],
			);
			const { shown, next } = sliceOf(rows, limit, (person) => person.id);
			return { results: shown.map(({ id: _, ...person }) => person), next };
		},
		openCampaign: (command) => openCampaign(sql, command),
		stageSlice: async (command) => {
			const row = await findCampaign(sql, command.campaign, command);
			// A campaign of send requests stores content per request, so it has none for the subscribers of a list.
			if (row === null || row.state !== 'staged' || row.requests === 1) return null;
			return await stageList(sql, row, command);
		},
		addPeopleToCampaign: async ({ campaign, ...command }) => {
			const row = await findCampaign(sql, campaign, {});
			if (row === null) return { kind: 'not_found' };
			return row.requests === 1 ? { kind: 'other_rows' } : await addPeople(sql, row, command);
		},
		putCampaignBatch: async ({ campaign, ...batch }) => {
			const [row, stored] = await sql.together([
				() => findCampaign(sql, campaign, batch),
				() => findAck(sql, campaign, batch.first),
			]);
			return row === null ? { kind: 'not_found' } : await putBatch(sql, row, { ...batch, stored });
		},
		completeCampaign: async ({ campaign, position, ...seen }) => {
			const row = await findCampaign(sql, campaign, seen);
			if (row === null) return { kind: 'not_found' };
			if (row.state !== 'staged') return { kind: 'closed', state: row.state };
			if (row.position !== position) return { kind: 'gap', position: row.position };
			sql.write('UPDATE campaigns SET is_complete = 1 WHERE seq = ?', [row.seq]);
			return { kind: 'complete' };
		},
		releaseCampaign: async ({ campaign, expect_count, now, ...seen }) => {
			const row = await findCampaign(sql, campaign, seen);
			if (row === null) return { kind: 'not_found' };
			if (row.state === 'canceled') return { kind: 'canceled' };
			const ofList = 'SELECT 1 FROM campaign_lists WHERE campaign_seq = ?';
			const isOpen = row.courier === 'api' && row.is_complete !== 1;
			if (isOpen && (await exists(sql, ofList, [row.seq]))) return { kind: 'incomplete' };
			if (row.staged !== expect_count) return { kind: 'count_differs', count: row.staged };
			if (row.state === 'released') return { kind: 'released' };
			sql.write(
				"UPDATE campaigns SET state = 'released', has_open_work = 1, released_at = ?, opens_at = ? WHERE seq = ?",
				[now, openingOf(row, now), row.seq],
			);
			dropAcks(sql, row.seq);
			// Staged messages count as created only at the release, because an unreleased campaign sends nothing.
			const tally = await createTally(sql);
			tally.add({ at: now, campaign: row.id, type: 'CREATED', audience: 'all', by: row.staged });
			tally.write();
			return { kind: 'released' };
		},
		cancelCampaign: async ({ campaign, forget: isForgotten, now, ...seen }) => {
			const row = await findCampaign(sql, campaign, seen);
			if (row === null) return { kind: 'not_found' };
			if (isForgotten && row.released_at !== null) return { kind: 'released' };
			sql.write(
				`UPDATE campaigns
				SET state = 'canceled', has_open_work = CASE WHEN released_at IS NULL THEN 0 ELSE 1 END, canceled_at = coalesce(canceled_at, ?)
				WHERE seq = ?`,
				[now, row.seq],
			);
			dropAcks(sql, row.seq);
			if (row.courier === 'api') await loseLeases(sql, { lane: row.seq, owner: null, now });
			await endLeasesOfLost(sql, row.seq, now);
			cancelLost(sql, row.seq, now);
			return { kind: 'canceled' };
		},
		keepCampaignRate: async ({ campaign, rate }) => {
			sql.write('UPDATE campaigns SET rate = ? WHERE id = ?', [rate, campaign]);
		},
		forgetCampaign: async ({ campaign }) => {
			const [seq] = await column<number>(sql, neverReleased, [campaign]);
			if (seq === undefined) return;
			sql.write('DELETE FROM campaign_lists WHERE campaign_seq = ?', [seq]);
			const contents = await column<string>(
				sql,
				`SELECT DISTINCT content_sha256
				FROM submissions
				WHERE campaign_seq = ? AND content_sha256 IN (SELECT content_sha256 FROM content_attachments)`,
				[seq],
			);
			sql.write('DELETE FROM submissions WHERE campaign_seq = ?', [seq]);
			sql.write('DELETE FROM campaigns WHERE seq = ?', [seq]);
			// Delete only contents with files. Other contents are small, and the same mail may be sent again.
			for (const sha256 of contents) await dropContent(sql, sha256, null);
		},
		dropStaged: async ({ campaign, limit }) => {
			let most = 0;
			for (const { table, key, of } of stagedTables) {
				const { changes } = await sql.run(
					`DELETE FROM ${table}
					WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${of} = (${neverReleased}) LIMIT ?)`,
					[campaign, limit],
				);
				if (table === 'messages') countMessages(sql, -changes);
				most = Math.max(most, changes);
			}
			return most;
		},
	} satisfies Partial<Operations>;
}

async function findCampaign(sql: Sql, id: Uuid, seen: Seen): Promise<CampaignRow | null> {
	const row = await sql.get<CampaignRow>(`SELECT ${campaignColumns} FROM campaigns WHERE id = ?`, [id]);
	return row !== undefined && isSeen(row, seen) ? row : null;
}

function opened({ id, key, position }: CampaignSession): CampaignOpened {
	return { kind: 'opened', session: { id, key, position } };
}

async function openCampaign(sql: Sql, command: OpenCampaign): Promise<CampaignOpened> {
	const { id, is_numbered = false, is_trial = false, only_of } = command;
	const seen: Seen = only_of === undefined ? {} : { only_of };
	const key = is_numbered ? await freeName(sql, command.key) : command.key;
	const known = await sql.get<CampaignRow>(`SELECT ${campaignColumns} FROM campaigns WHERE key = ?`, [key]);
	// A campaign canceled before its release sent nothing, so its name is free.
	const isFree = known === undefined || (known.state === 'canceled' && known.released_at === null);
	if (!isFree) {
		if (!isSeen(known, seen) || !isSame(known, command)) return { kind: 'conflict' };
		const { starts_at = null, window = null, time_zone = null } = command.timing ?? {};
		const plan = 'UPDATE campaigns SET starts_at = ?, send_window = ?, time_zone = ? WHERE seq = ?';
		if (!is_trial && known.state === 'staged') sql.write(plan, [starts_at, window, time_zone, known.seq]);
		return opened(known);
	}
	const same = await findSame(sql, command, seen);
	if (same !== undefined) return { kind: 'repeated', key: same.key };
	const errors = await errorsOf(sql, command, seen);
	if (Object.keys(errors).length > 0) return { kind: 'refused', errors };
	if (!is_trial) {
		if (known !== undefined)
			sql.write('UPDATE campaigns SET key = ? WHERE seq = ?', [`${key} (canceled ${known.seq})`, known.seq]);
		await insertCampaign(sql, { ...command, key });
	}
	return opened({ id, key, position: 0 });
}

/** Skips senders and lists of another service, and files of a dry run, because this database lacks them. */
async function errorsOf(
	sql: Sql,
	{ id, submission, courier = 'smtp', is_trial = false, only_of }: OpenCampaign,
	seen: Seen,
): Promise<FieldErrors> {
	if (courier === 'smtp' && submission !== null) {
		const { attachments, ...content } = submission.content;
		const parts = is_trial ? { ...submission, content } : submission;
		const { errors } = await checkParts(sql, parts, seen);
		if (Object.keys(errors).length > 0) return errors;
	}
	// A client may reuse the id of send calls only if it made all of these calls. The owner of the database may reuse
	// any.
	const ofOthers = 'SELECT 1 FROM submissions WHERE campaign = ? AND owner IS DISTINCT FROM ?';
	const hasOthers = only_of !== undefined && (await exists(sql, ofOthers, [id, only_of]));
	const isTaken = hasOthers || (await findCampaign(sql, id, {})) !== null;
	if (!isTaken) return {};
	return { campaign_unique_id: [{ code: 'unique', message: 'Another campaign already has this id.' }] };
}

async function insertCampaign(sql: Sql, command: OpenCampaign): Promise<void> {
	const { id, key, courier = 'smtp', submission, now, owner = null, unless, audience, timing } = command;
	const row = {
		...{ id, key, courier, owner, state: 'staged', created_at: now },
		spec: canonicalJson(command.spec),
		strict_vars: flag(command.strict_vars),
		requests: flag(submission === null),
		audience: audience === undefined ? null : JSON.stringify(audience),
		starts_at: timing?.starts_at ?? null,
		send_window: timing?.window ?? null,
		time_zone: timing?.time_zone ?? null,
		is_again: flag(unless === 'repeated' || unless === 'repeating'),
	};
	const seq = await insertNumbered(sql, 'campaigns', row, 'seq');
	if (submission !== null) await insertSubmission(sql, { ...submission, campaign: id }, { seq, owner });
}

function isSame(known: CampaignRow, { id, spec }: OpenCampaign): boolean {
	const isNamed = !('requests' in spec) && (spec.campaign_unique_id ?? null) !== null;
	const stored = specOf(known);
	const { campaign } = stored.identity ?? specIdentity(stored);
	return (!isNamed || id === known.id) && campaign === specIdentity(spec).campaign;
}

const repetition: Micros = microsPerDay;

/**
 * Finds a campaign with the same mail: an unfinished one, or else the newest released in the last day. `SameMail`
 * explains the values of `unless`.
 */
async function findSame(
	sql: Sql,
	{ spec, unless, now }: OpenCampaign,
	seen: Seen,
): Promise<CampaignRow | undefined> {
	if (unless === undefined) return undefined;
	const oldestOpen = `SELECT min(created_at) FROM campaigns g WHERE state = 'staged' OR ${isSending}`;
	const [oldest = null] = unless === 'sent' ? [] : await column<Micros | null>(sql, oldestOpen);
	const rows = await sql.all<CampaignRow & { is_open: number }>(
		`SELECT ${campaignColumns}, CASE WHEN state = 'staged' OR ${isSending} THEN 1 ELSE 0 END AS is_open
		FROM campaigns g
		WHERE state = 'staged' OR ${isSending}
			OR (released_at > ? AND EXISTS (
				SELECT 1
				FROM submissions s
				JOIN messages m ON m.submission_seq = s.seq
				WHERE s.campaign_seq = g.seq AND (g.state = 'released' OR m.attempts > 0)
			))
		ORDER BY is_open DESC, seq DESC`,
		[(oldest ?? now) - repetition],
	);
	const { mail } = specIdentity(spec);
	const same = rows.filter((row) => {
		const stored = specOf(row);
		return isSeen(row, seen) && (stored.identity ?? specIdentity(stored)).mail === mail;
	});
	if (unless === 'sent') return same[0];
	const isWithin = ({ is_open, released_at }: (typeof same)[number], at: Micros) =>
		is_open === 1 || (released_at ?? 0) > at - repetition;
	return same.find(
		(row) =>
			(unless === 'repeated' ? isWithin(row, now) : row.is_open === 1) &&
			(row.is_again === 1 || same.some((other) => other.seq < row.seq && isWithin(other, row.created_at))),
	);
}

async function freeName(sql: Sql, name: string): Promise<string> {
	for (let number = 1; ; number += 1) {
		const numbered = number === 1 ? name : `${name}-${number}`;
		if (!(await exists(sql, 'SELECT 1 FROM campaigns WHERE key = ?', [numbered]))) return numbered;
	}
}

async function status(sql: Sql, row: CampaignRow, now: Micros): Promise<CampaignStatus> {
	const { id, key, state, seq } = row;
	const counted = await countByState(sql, { campaign: id });
	const messages = row.courier === 'api' ? toldMessages(counted, state) : counted;
	const is_sending = (await sql.number(`SELECT ${isSending} FROM campaigns g WHERE seq = ?`, [seq])) === 1;
	const lists = await listCounts(sql, row);
	const contents = 'SELECT content_sha256 FROM submissions WHERE campaign_seq = ? LIMIT 1';
	const [content] = row.requests === 1 ? [] : await column<string>(sql, contents, [seq]);
	const attachments = content === undefined ? [] : await attachmentsOf(sql, content);
	const { created } = await figuresOf(sql, id);
	const hasJoined = created > (row.released_at === null ? 0 : row.staged);
	const replies = await commonReplies(sql, 'lane = ?', seq);
	return {
		...{ id, key, state, is_finished: state === 'released' && !is_sending, messages },
		...{ counts: countsOf(row), ...planOf(row, now) },
		...(hasJoined && { joined: await countJoined(sql, id, {}) }),
		...(replies.length > 0 && { replies }),
		...(lists.length > 0 && { lists }),
		...(attachments.length > 0 && { attachments }),
	};
}

function toldMessages(
	{ sent = 0, leased = 0, queued = 0, deferred = 0, ...others }: CampaignStatus['messages'],
	state: CampaignStatus['state'],
): CampaignStatus['messages'] {
	const waiting = leased + queued + deferred;
	return {
		...others,
		...(waiting > 0 && { queued: waiting }),
		...((sent > 0 || state !== 'staged') && { accepted: sent }),
	};
}

const neverReleased = "SELECT seq FROM campaigns WHERE id = ? AND state = 'canceled' AND released_at IS NULL";

/** The condition `wake_at IS NOT NULL` uses the index messages_due. */
const stagedTables = [
	{ table: 'messages', key: 'id', of: 'wake_at IS NOT NULL AND lane' },
	{ table: 'campaign_results', key: 'campaign_seq, n', of: 'campaign_seq' },
	{ table: 'campaign_left_out', key: 'id', of: 'campaign_seq' },
];
