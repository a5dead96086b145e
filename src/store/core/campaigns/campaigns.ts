import type { AttachedFile } from '../../../api/attachments.js';
import { campaignIdentity, specIdentity } from '../../../api/campaign-identity.js';
import type { CampaignSession, CampaignStatus } from '../../../api/campaigns.js';
import type { Micros } from '../../../api/datetime.js';
import type { FieldErrors } from '../../../api/errors.js';
import { canonicalJson } from '../../../api/json.js';
import type { CheckedAudience } from '../../../api/messages.js';
import type { Uuid } from '../../../api/records.js';
import { noSuch, unverifiedSender } from '../../../engine/rules/errors.js';
import type { CampaignOpened, OpenCampaign } from '../../campaigns.js';
import { parseStored } from '../../errors.js';
import type { Command, Operations } from '../../operations.js';
import type { Seen } from '../../store.js';
import { attachmentErrors, attachmentsOf } from '../attachments.js';
import { openingOf, planOf } from '../campaign-windows.js';
import { figuresOf } from '../figures/daily.js';
import { createTally } from '../figures/tally.js';
import { hasList } from '../lists.js';
import { cancelLost } from '../messages/actions.js';
import { countByState } from '../messages/messages.js';
import { endLeasesOfLost } from '../processes.js';
import { loseLeases } from '../queue-lanes.js';
import { commonReplies } from '../replies.js';
import { flag } from '../rows.js';
import { findSender } from '../senders.js';
import { exists, type Sql } from '../sql.js';
import { insertSubmission } from '../submissions.js';
import { addPeople, dropAcks, findAck, isListOpen, putBatch } from './batches.js';
import { callsStatus, cancelCalls, countJoined, findCalls, hasCallsOfOthers } from './calls.js';
import { dropStaged, forget } from './dropping.js';
import { sliceLeftOut } from './left-out.js';
import { foreseeList, listCounts, stageList } from './lists.js';
import { pageCampaigns, sliceResults } from './results.js';
import {
	type CampaignRow,
	campaignColumns,
	countsOf,
	isSeen,
	isSending,
	type Slices,
	specOf,
} from './rows.js';
import { findSame } from './same-mail.js';

export function createCampaigns(sql: Sql) {
	return {
		campaignStatus: async ({ id, now, ...seen }) => {
			const row = await findCampaign(sql, id, seen);
			return row === null ? await callsStatus(sql, id, seen) : await status(sql, row, now);
		},
		foreseeAudience: (command) => foreseeList(sql, command),
		sliceLeftOut: async (command) => {
			const row = await findCampaign(sql, command.id, command);
			if (row === null && (await findCalls(sql, command.id, command)) === null) return null;
			return await sliceLeftOut(sql, row?.seq ?? null, command);
		},
		openCampaign: (command) => openCampaign(sql, command),
		stageSlice: async (command) => {
			const row = await findCampaign(sql, command.campaign, command);
			return row === null || !takesLists(row)
				? null
				: await stageList(sql, row, { ...command, audience: audienceOf(row) });
		},
		addListToCampaign: async ({ campaign, list_id, now, ...seen }) => {
			const row = await findCampaign(sql, campaign, seen);
			if (row === null || !takesLists(row)) return null;
			const limit = Number.MAX_SAFE_INTEGER;
			return await stageList(sql, row, { list_id, now, limit, audience: audienceOf(row) });
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
		completeCampaign: (command) => complete(sql, command),
		pageCampaigns: (command) => pageCampaigns(sql, command),
		sliceCampaignResults: (command) => sliceResults(sql, command),
		releaseCampaign: (command) => release(sql, command),
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
		cancelCalls: (command) => cancelCalls(sql, command),
		keepCampaignRate: async ({ campaign, rate }) => {
			sql.write('UPDATE campaigns SET rate = ? WHERE id = ?', [rate, campaign]);
		},
		forgetCampaign: ({ campaign }) => forget(sql, campaign),
		dropStaged: (command) => dropStaged(sql, command),
	} satisfies Partial<Operations & Slices>;
}

async function findCampaign(sql: Sql, id: Uuid, seen: Seen): Promise<CampaignRow | null> {
	const row = await sql.get<CampaignRow>(`SELECT ${campaignColumns} FROM campaigns WHERE id = ?`, [id]);
	return row !== undefined && isSeen(row, seen) ? row : null;
}

function session({ id, key, position }: CampaignRow): { kind: 'opened'; session: CampaignSession } {
	return { kind: 'opened', session: { id, key, position } };
}

async function openCampaign(sql: Sql, command: OpenCampaign): Promise<CampaignOpened> {
	const { id, spec, is_numbered = false, unless, is_trial = false, now } = command;
	const seen: Seen = command.only_of === undefined ? {} : { only_of: command.only_of };
	const key = is_numbered ? await freeName(sql, command.key) : command.key;
	const known = await sql.get<CampaignRow>(`SELECT ${campaignColumns} FROM campaigns WHERE key = ?`, [key]);
	if (known !== undefined && !(is_trial ? isFree(known) : await freeKey(sql, known))) {
		if (!isSeen(known, seen) || !isSame(known, command)) return { kind: 'conflict' };
		if (!is_trial && known.state === 'staged') planAnew(sql, known, command);
		return session(known);
	}
	const same = unless === undefined ? undefined : await findSame(sql, spec, { unless, now, ...seen });
	if (same !== undefined) return { kind: 'repeated', key: same.key };
	const errors = await errorsOf(sql, command);
	if (errors !== null) return { kind: 'refused', errors };
	if (!is_trial) await insertCampaign(sql, { ...command, key });
	return { kind: 'opened', session: { id, key, position: 0 } };
}

/** Senders and lists of a service are not in this database. */
async function errorsOf(
	sql: Sql,
	{ id, submission, courier = 'smtp', is_trial = false, only_of }: OpenCampaign,
): Promise<FieldErrors | null> {
	const isOurs = courier === 'smtp';
	if (isOurs && submission !== null && (await findSender(sql, submission.from_key)) === null)
		return unverifiedSender;
	const list_id = isOurs ? (submission?.list_id ?? null) : null;
	if (list_id !== null && !(await hasList(sql, list_id))) return noSuch('list_id', list_id);
	const seen: Seen = only_of === undefined ? {} : { only_of };
	const lacking = is_trial ? null : await attachmentErrors(sql, submission?.content.attachments, seen);
	if (lacking !== null) return lacking;
	const isTaken = (await findCampaign(sql, id, {})) !== null || (await hasCallsOfOthers(sql, id, only_of));
	if (!isTaken) return null;
	return { campaign_unique_id: [{ code: 'unique', message: 'Another job is this campaign already.' }] };
}

async function insertCampaign(
	sql: Sql,
	{ id, key, spec, strict_vars, courier = 'smtp', submission, now, owner, unless, ...command }: OpenCampaign,
): Promise<void> {
	const { audience, timing } = command;
	const seq = await sql.number(
		`INSERT INTO campaigns (id, key, spec, strict_vars, requests, courier, audience, starts_at, send_window,
			time_zone, state, created_at, owner, is_again)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'staged', ?, ?, ?)
		RETURNING seq`,
		[
			id,
			key,
			canonicalJson(spec),
			flag(strict_vars),
			flag(submission === null),
			courier,
			audience === undefined ? null : JSON.stringify(audience),
			timing?.starts_at ?? null,
			timing?.window ?? null,
			timing?.time_zone ?? null,
			now,
			owner ?? null,
			flag(unless === 'repeated' || unless === 'repeating'),
		],
	);
	if (submission === null) return;
	await insertSubmission(sql, { ...submission, campaign: id }, { seq, owner: owner ?? null });
}

function planAnew(sql: Sql, { seq }: CampaignRow, { timing }: OpenCampaign): void {
	sql.write('UPDATE campaigns SET starts_at = ?, send_window = ?, time_zone = ? WHERE seq = ?', [
		timing?.starts_at ?? null,
		timing?.window ?? null,
		timing?.time_zone ?? null,
		seq,
	]);
}

/** `id` is that of the spec, in its one form, or a new one. */
function isSame(known: CampaignRow, { id, spec }: OpenCampaign): boolean {
	const isNamed = !('requests' in spec) && (spec.campaign_unique_id ?? null) !== null;
	const stored = specOf(known);
	const isOfSpec =
		stored.identity === undefined
			? campaignIdentity(stored) === campaignIdentity(spec)
			: stored.identity.campaign === specIdentity(spec).campaign;
	return (!isNamed || id === known.id) && isOfSpec;
}

/** The name, with the first number that makes it one of no campaign. */
async function freeName(sql: Sql, name: string): Promise<string> {
	for (let number = 1; ; number += 1) {
		const numbered = number === 1 ? name : `${name}-${number}`;
		if (!(await exists(sql, 'SELECT 1 FROM campaigns WHERE key = ?', [numbered]))) return numbered;
	}
}

function isFree({ state, released_at }: CampaignRow): boolean {
	return state === 'canceled' && released_at === null;
}

/** A campaign canceled before its release reached no recipient: its name may stand for another. */
async function freeKey(sql: Sql, { seq }: CampaignRow): Promise<boolean> {
	const freed = await sql.run(
		`UPDATE campaigns
		SET key = key || ' (canceled ' || seq || ')'
		WHERE seq = ? AND state = 'canceled' AND released_at IS NULL`,
		[seq],
	);
	return freed.changes > 0;
}

/** A list has no content of its own, so a campaign of requests takes none. */
function takesLists({ state, requests }: CampaignRow): boolean {
	return state === 'staged' && requests === 0;
}

function audienceOf({ audience }: CampaignRow): CheckedAudience {
	const none = { lists: [], exclude_lists: [], where: [], where_opened: [], where_not_opened: [] };
	return audience === null ? none : (parseStored(audience) as CheckedAudience);
}

async function complete(
	sql: Sql,
	{ campaign, position, ...seen }: Command<'completeCampaign'>,
): ReturnType<Operations['completeCampaign']> {
	const row = await findCampaign(sql, campaign, seen);
	if (row === null) return { kind: 'not_found' };
	if (row.state !== 'staged') return { kind: 'closed', state: row.state };
	if (row.position !== position) return { kind: 'gap', position: row.position };
	sql.write('UPDATE campaigns SET is_complete = 1 WHERE seq = ?', [row.seq]);
	return { kind: 'complete' };
}

async function release(
	sql: Sql,
	{ campaign, expect_count, now, ...seen }: Command<'releaseCampaign'>,
): ReturnType<Operations['releaseCampaign']> {
	const row = await findCampaign(sql, campaign, seen);
	if (row === null) return { kind: 'not_found' };
	if (row.state === 'canceled') return { kind: 'canceled' };
	if (await isListOpen(sql, row)) return { kind: 'incomplete' };
	if (row.staged !== expect_count) return { kind: 'count_differs', count: row.staged };
	// The client repeats a release whose answer was lost.
	if (row.state === 'released') return { kind: 'released' };
	sql.write(
		"UPDATE campaigns SET state = 'released', has_open_work = 1, released_at = ?, opens_at = ? WHERE seq = ?",
		[now, openingOf(row, now), row.seq],
	);
	dropAcks(sql, row.seq);
	// Until now nothing that a recipient could get was created.
	const tally = await createTally(sql);
	tally.add({ at: now, campaign: row.id, type: 'CREATED', audience: 'all', by: row.staged });
	tally.write();
	return { kind: 'released' };
}

async function status(sql: Sql, row: CampaignRow, now: Micros): Promise<CampaignStatus> {
	const { id, key, state } = row;
	const counted = await countByState(sql, { campaign: id });
	const messages = row.courier === 'api' ? toldMessages(counted, state) : counted;
	const is_sending =
		(await sql.number(`SELECT ${isSending} FROM campaigns g WHERE seq = ?`, [row.seq])) === 1;
	const is_finished = state === 'released' && !is_sending;
	const lists = await listCounts(sql, row, audienceOf(row).lists);
	const attachments = await filesOf(sql, row);
	const joined = await joinedTo(sql, row);
	const replies = await commonReplies(sql, 'lane = ?', row.seq);
	return {
		...{ id, key, state, is_finished, messages, counts: countsOf(row), ...planOf(row, now) },
		...(joined !== null && { joined }),
		...(replies.length > 0 && { replies }),
		...(lists.length > 0 && { lists }),
		...(attachments.length > 0 && { attachments }),
	};
}

async function joinedTo(
	sql: Sql,
	{ id, released_at, staged }: CampaignRow,
): Promise<CampaignStatus['messages'] | null> {
	const { created } = await figuresOf(sql, id);
	return created > (released_at === null ? 0 : staged) ? await countJoined(sql, id, {}) : null;
}

async function filesOf(sql: Sql, { seq, requests }: CampaignRow): Promise<AttachedFile[]> {
	if (requests === 1) return [];
	const content = await sql.get<{ sha256: string }>(
		// submissions_of_campaign_seq
		'SELECT content_sha256 AS sha256 FROM submissions WHERE campaign_seq = ? LIMIT 1',
		[seq],
	);
	return content === undefined ? [] : await attachmentsOf(sql, content.sha256);
}

/**
 * The messages of a campaign that a service makes. `accepted` counts what the service took; the service does not report
 * their outcome. A message that is being sent counts as waiting.
 */
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
