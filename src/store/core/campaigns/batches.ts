/**
 * A campaign's rows in numbered batches: recipients, send requests, or subscribers of a list on another deployment. The
 * position, the answer and the results commit with the rows.
 */

import type { AcceptCounts, Ack, Reject } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import { listFieldErrors } from '../../../api/errors.js';
import { builtInVariables } from '../../../api/fields.js';
import { texts } from '../../../api/schema/texts.js';
import { noSuch, unverifiedSender } from '../../../engine/rules/errors.js';
import { missingVariables } from '../../../engine/rules/meta.js';
import type { RecipientRow } from '../../../engine/rules/recipient-rows.js';
import type { CampaignAck, ListedPeople, ListedPerson, PeopleAck, RequestedRow } from '../../campaigns.js';
import { attachmentErrors } from '../attachments.js';
import { findList } from '../lists.js';
import { parseStored } from '../rows.js';
import { findSender } from '../senders.js';
import type { Sql } from '../sql.js';
import { countMessages, insertSubmission } from '../submissions.js';
import { openSuppressions } from '../suppressions.js';
import { createResultLog } from './results.js';
import { type CampaignRow, maxListedRejects, noCounts } from './rows.js';
import {
	addToCounts,
	keepRejects,
	keptRejects,
	type RowOutcome,
	readStaging,
	type StagedRecipient,
	type Staging,
	stageMessage,
	stageRecipient,
} from './staging.js';

interface Batch {
	first: number;
	rows: readonly (RecipientRow | RequestedRow)[];
	now: Micros;
}

/**
 * Runs in one transaction of the caller. A repeated batch gets its first answer, without reading its rows; `closed`
 * once the campaign is released or canceled.
 */
export async function putBatch(
	sql: Sql,
	campaign: CampaignRow,
	{ first, rows, now }: Batch,
): Promise<CampaignAck> {
	if (campaign.state !== 'staged') return { kind: 'closed', state: campaign.state };
	const stored = await findAck(sql, campaign.seq, first);
	if (stored !== null) return { kind: 'acknowledged', ack: stored };
	if (first !== campaign.position) return { kind: 'gap', position: campaign.position };
	if (campaign.is_complete === 1 && rows.length > 0) return { kind: 'closed', state: 'complete' };
	const wanted = campaign.requests === 1 ? 'request' : 'recipient';
	if (rows.some(({ kind }) => kind !== 'rejected' && kind !== wanted)) return { kind: 'other_rows' };
	const ack = await stageRows(sql, campaign, { first, rows, now });
	// An empty batch does not move the position: the next batch has the same number and must not get its answer.
	if (rows.length > 0) keepAck(sql, campaign, ack);
	return { kind: 'acknowledged', ack };
}

/** Once the campaign takes no rows, its answers are never read again. */
export function dropAcks(sql: Sql, campaign_seq: number): void {
	sql.write('DELETE FROM campaign_acks WHERE campaign_seq = ?', campaign_seq);
}

async function findAck(sql: Sql, campaign_seq: number, first: number): Promise<Ack<AcceptCounts> | null> {
	const row = await sql.get<{ ack: string }>(
		'SELECT ack FROM campaign_acks WHERE campaign_seq = ? AND first = ?',
		campaign_seq,
		first,
	);
	// Written by keepAck and by nothing else.
	return row === undefined ? null : (parseStored(row.ack) as Ack<AcceptCounts>);
}

async function stageRows(
	sql: Sql,
	campaign: CampaignRow,
	{ first, rows, now }: Batch,
): Promise<Ack<AcceptCounts>> {
	const stage = await stagerOf(sql, campaign, now);
	const counts = noCounts();
	const rejects: Reject[] = [];
	const log = createResultLog(sql, campaign);
	const staged: StagedRecipient[][] = [];
	// Requests that are alike share a submission, which the first of them makes.
	if (campaign.requests === 1) for (const row of rows) staged.push(await stage(row));
	else staged.push(...(await sql.together(rows.map((row) => async () => await stage(row)))));
	for (const [index, recipients] of staged.entries()) {
		for (const { to, outcome } of recipients) {
			counts[outcome.kind] += 1;
			log.add({ line: rows[index]?.line ?? null, to, outcome });
			if (outcome.kind !== 'rejected') continue;
			rejects.push({ row: first + index, code: outcome.code, error: outcome.error });
		}
	}
	log.write();
	return { position: first + rows.length, counts, rejects };
}

/** Returns what stages a row: all its recipients, or its error. Made once for each batch. */
async function stagerOf(
	sql: Sql,
	campaign: CampaignRow,
	now: Micros,
): Promise<(row: RecipientRow | RequestedRow) => Promise<StagedRecipient[]>> {
	// A campaign of requests has no content of its own to read.
	const staging = campaign.requests === 1 ? null : await readStaging(sql, campaign, now);
	const list_id = staging?.submission.list_id ?? null;
	const email_reason = await reasonOf(sql, campaign, list_id);
	return async (row) => {
		switch (row.kind) {
			case 'rejected':
				return [{ to: row.to ?? '', outcome: row }];
			case 'request':
				return await stageRequest(sql, campaign, row);
			case 'recipient':
				if (staging === null) throw new Error(`campaign ${campaign.seq} takes requests`);
				return [{ to: row.to, outcome: await stageRecipient(sql, staging, { ...row, email_reason }) }];
		}
	};
}

/** Why an address that is not in the list is skipped; null: the service decides. */
async function reasonOf(sql: Sql, { courier }: CampaignRow, list_id: number | null): Promise<string | null> {
	if (courier === 'api') return null;
	return list_id === null ? '' : ((await findList(sql, list_id))?.email_reason ?? '');
}

function keepAck(sql: Sql, campaign: CampaignRow, ack: Ack<AcceptCounts>): void {
	addToCounts(sql, campaign.seq, ack.counts);
	sql.write('UPDATE campaigns SET position = ? WHERE seq = ?', ack.position, campaign.seq);
	sql.write(
		'INSERT INTO campaign_acks (campaign_seq, first, ack) VALUES (?, ?, ?)',
		campaign.seq,
		campaign.position,
		JSON.stringify(ack),
	);
}

type Request = Extract<RequestedRow, { kind: 'request' }>;

/** Stages each recipient; a refused request is one rejected row with all its addresses. */
export async function stageRequest(
	sql: Sql,
	campaign: CampaignRow,
	row: Request,
): Promise<StagedRecipient[]> {
	const { submission, recipients, alike } = row;
	const refusal = campaign.courier === 'api' ? lackOf(campaign, row) : await refusalOf(sql, row);
	if (refusal !== null) {
		const to = recipients.map((recipient) => recipient.to).join(', ');
		return [{ to, outcome: { kind: 'rejected', ...refusal } }];
	}
	const { list_id, type, context, variables, now } = submission;
	const staging: Staging = {
		campaign,
		scope: alike,
		submission: { seq: await submissionSeq(sql, campaign, row), list_id },
		type,
		// A service fills in what it knows of its subscribers.
		used: campaign.courier === 'api' ? [] : [...(variables ?? [])],
		context,
		is_strict: campaign.strict_vars === 1,
		reasonsAgainst: await openSuppressions(sql, now),
		now,
	};
	const email_reason = list_id === null ? '' : ((await findList(sql, list_id))?.email_reason ?? '');
	const staged: StagedRecipient[] = [];
	for (const { to, to_key } of recipients) {
		const outcome = await stageRecipient(sql, staging, { to, to_key, context: {}, email_reason });
		staged.push({ to, outcome });
	}
	return staged;
}

/** The refusal by stored state, in the words of a send call. */
async function refusalOf(
	sql: Sql,
	{ submission: { from_key, list_id, content } }: Request,
): Promise<{ code: string; error: string } | null> {
	const errors = {
		...((await findSender(sql, from_key)) === null && unverifiedSender),
		...(list_id !== null && (await findList(sql, list_id)) === null && noSuch('list_id', list_id)),
		...(await attachmentErrors(sql, content.attachments)),
	};
	const [first] = listFieldErrors(errors);
	return first === undefined ? null : { code: 'invalid', error: `${first.path}: ${first.message}` };
}

/** For a request that goes to a service: the service fills in its own fields, so they are not looked up. */
function lackOf(
	{ strict_vars }: CampaignRow,
	{ submission: { variables, context } }: Request,
): { code: string; error: string } | null {
	const builtIn: readonly string[] = builtInVariables;
	const missing = missingVariables({}, variables, context).filter((name) => !builtIn.includes(name));
	if (strict_vars === 0 || missing.length === 0) return null;
	return {
		code: 'missing_variable',
		error: `No value for ${missing.map((name) => `#${name}#`).join(', ')}.`,
	};
}

async function submissionSeq(sql: Sql, campaign: CampaignRow, { submission }: Request): Promise<number> {
	const known = await sql.get<{ seq: number }>('SELECT seq FROM submissions WHERE id = ?', submission.id);
	return known?.seq ?? (await insertSubmission(sql, { ...submission, campaign: campaign.id }, campaign));
}

/** Runs in one transaction of the caller. An address gets one message, however often it is listed. */
export async function addPeople(
	sql: Sql,
	campaign: CampaignRow,
	c: Omit<ListedPeople, 'campaign'>,
): Promise<PeopleAck> {
	const { list_id, part, people, now } = c;
	if (campaign.state !== 'staged') return { kind: 'closed', state: campaign.state };
	if (campaign.position > 0 || (await isOfOther(sql, campaign, list_id))) return { kind: 'other_rows' };
	const place = { campaign_seq: campaign.seq, list_id };
	const answer = async (row: CampaignRow, isWhole: boolean): Promise<PeopleAck> => {
		const { position, staged, suppressed, rejected } = row;
		const rejects = await keptRejects(sql, campaign.seq, list_id);
		return {
			kind: 'acknowledged',
			ack: { position, counts: { staged, suppressed, rejected }, rejects },
			isWhole,
		};
	};
	if (campaign.is_complete === 1) return await answer(campaign, true);
	const begun = part === 'first' ? await begin(sql, campaign, place) : campaign;
	const { counts, rejects } = await stagePeople(sql, begun, {
		people,
		now,
		kept: await keptRejects(sql, campaign.seq, list_id),
	});
	addToCounts(sql, campaign.seq, counts);
	keepRejects(sql, place, rejects);
	if (part === 'last') sql.write('UPDATE campaigns SET is_complete = 1 WHERE seq = ?', campaign.seq);
	return await answer({ ...begun, ...sumOf(begun, counts) }, part === 'last');
}

/** Whether its list was begun and not read to its end. */
export async function isListOpen(sql: Sql, { seq, is_complete, courier }: CampaignRow): Promise<boolean> {
	if (courier !== 'api' || is_complete === 1) return false;
	return (await sql.number('SELECT EXISTS (SELECT 1 FROM campaign_lists WHERE campaign_seq = ?)', seq)) === 1;
}

async function isOfOther(sql: Sql, { seq }: CampaignRow, list_id: number): Promise<boolean> {
	const others = 'SELECT EXISTS (SELECT 1 FROM campaign_lists WHERE campaign_seq = ? AND list_id <> ?)';
	return (await sql.number(others, seq, list_id)) === 1;
}

/** Nothing was released: what an earlier walk staged is deleted with its results. */
async function begin(
	sql: Sql,
	campaign: CampaignRow,
	{ campaign_seq, list_id }: { campaign_seq: number; list_id: number },
): Promise<CampaignRow> {
	sql.write('DELETE FROM campaign_results WHERE campaign_seq = ?', campaign_seq);
	const dropped = await sql.run('DELETE FROM messages WHERE lane = ? AND wake_at IS NOT NULL', campaign_seq);
	countMessages(sql, -dropped.changes);
	sql.write('UPDATE campaigns SET staged = 0, suppressed = 0, rejected = 0 WHERE seq = ?', campaign_seq);
	sql.write(
		'INSERT INTO campaign_lists (campaign_seq, list_id, after_id) VALUES (?, ?, 0) ON CONFLICT DO NOTHING',
		campaign_seq,
		list_id,
	);
	keepRejects(sql, { campaign_seq, list_id }, []);
	return { ...campaign, ...noCounts() };
}

async function stagePeople(
	sql: Sql,
	campaign: CampaignRow,
	{ people, now, kept }: Pick<ListedPeople, 'people' | 'now'> & { kept: readonly Reject[] },
): Promise<{ counts: AcceptCounts; rejects: Reject[] }> {
	const staging = await readStaging(sql, campaign, now);
	const log = createResultLog(sql, campaign);
	const counts = noCounts();
	const rejects = [...kept];
	const staged = await sql.together(
		people.map((person) => async () => await stagePerson(sql, staging, person)),
	);
	for (const [row, person] of people.entries()) {
		const outcome = staged[row] ?? null;
		if (outcome === null) continue;
		counts[outcome.kind] += 1;
		log.add({ line: null, to: person.email, outcome });
		if (outcome.kind === 'rejected' && rejects.length < maxListedRejects)
			rejects.push({ row, code: outcome.code, error: outcome.error });
	}
	log.write();
	return { counts, rejects };
}

/** Null: it was staged before. */
async function stagePerson(
	sql: Sql,
	staging: Staging,
	{ to_key, ...person }: ListedPerson,
): Promise<RowOutcome | null> {
	if (to_key === null) {
		return { kind: 'rejected', code: 'invalid', error: `${person.email}: ${texts.email}` };
	}
	const nobodyHere = { list_id: null, subscriber_id: null, is_active: null, given: {} };
	const outcome = await stageMessage(sql, staging, { person, to_key, ...nobodyHere });
	return outcome.kind === 'rejected' && outcome.code === 'duplicate' ? null : outcome;
}

function sumOf(a: AcceptCounts, b: AcceptCounts): AcceptCounts {
	return {
		staged: a.staged + b.staged,
		suppressed: a.suppressed + b.suppressed,
		rejected: a.rejected + b.rejected,
	};
}
