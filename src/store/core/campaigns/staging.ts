/**
 * Makes staged messages of a campaign's recipients, in bounded slices; some are suppressed or rejected instead. Rejects
 * of a list are kept until the campaign is released or canceled, beside the answers to batches and not among the
 * results: a client that may send reads the results, and may not read a list.
 */
import type { AcceptCounts, Reject } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import type { Uuid } from '../../../api/records.js';
import { messageUuid } from '../../../engine/rules/ids.js';
import {
	missingVariables,
	overlayVariables,
	type Person,
	personVariables,
} from '../../../engine/rules/meta.js';
import { findList } from '../lists.js';
import {
	parseRecord,
	parseStored,
	parseTexts,
	parseUsed,
	type SubscriberRow,
	subscriberColumns,
} from '../rows.js';
import type { Sql } from '../sql.js';
import { findPerson, insertMessage } from '../submissions.js';
import { isWantedBy } from '../suppressions.js';
import { type CampaignRow, maxListedRejects, noCounts, readFromLists, type StagedSlice } from './rows.js';

interface Expansion extends Staging {
	list_id: number;
	email_reason: string;
}

/**
 * Continues after the last subscriber it has read, so adding a list again adds newer subscribers. Counts are those of
 * this slice; rejects are the first of the list, from any slice or call.
 */
export function stageList(
	sql: Sql,
	campaign: CampaignRow,
	{ list_id, now, limit }: { list_id: number; now: Micros; limit: number },
): StagedSlice | null {
	const list = findList(sql, list_id);
	if (list === null) return null;
	const expansion: Expansion = {
		...readStaging(sql, campaign, now),
		list_id,
		email_reason: list.email_reason,
	};
	const people = nextPeople(sql, expansion, limit);
	const counts = noCounts();
	const rejects: Reject[] = keptRejects(sql, campaign.seq, list_id);
	const before = rejects.length;
	const first = readFromLists(campaign);
	for (const [index, person] of people.entries()) {
		const outcome = stagePerson(sql, expansion, person);
		counts[outcome.kind] += 1;
		if (outcome.kind !== 'rejected' || rejects.length >= maxListedRejects) continue;
		rejects.push({ row: first + index, code: outcome.code, error: outcome.error });
	}
	if (rejects.length > before) keepRejects(sql, { campaign_seq: campaign.seq, list_id }, rejects);
	keepPlace(sql, expansion, people.at(-1)?.id ?? null, counts);
	return { position: first + people.length, counts, rejects, isDone: people.length < limit };
}

function nextPeople(sql: Sql, { campaign, list_id }: Expansion, limit: number): SubscriberRow[] {
	const after = sql.number(
		'SELECT coalesce(max(after_id), 0) FROM campaign_lists WHERE campaign_seq = ? AND list_id = ?',
		campaign.seq,
		list_id,
	);
	return sql.all<SubscriberRow>(
		`SELECT ${subscriberColumns}
		FROM subscribers
		WHERE list_id = ? AND id > ? AND is_active = 1
		ORDER BY id
		LIMIT ?`,
		list_id,
		after,
		limit,
	);
}

function stagePerson(sql: Sql, expansion: Expansion, row: SubscriberRow): RowOutcome {
	const { email_reason, list_id } = expansion;
	return stageMessage(sql, expansion, {
		person: { email: row.email, name: row.name, email_reason, meta: parseRecord(row.meta) },
		to_key: row.email_key,
		list_id,
		subscriber_id: row.id,
		is_active: row.is_active === 1,
		given: {},
	});
}

function keepPlace(
	sql: Sql,
	{ campaign, list_id }: Expansion,
	lastId: number | null,
	counts: AcceptCounts,
): void {
	if (lastId === null) return;
	sql.run(
		`INSERT INTO campaign_lists (campaign_seq, list_id, after_id)
		VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET after_id = excluded.after_id`,
		campaign.seq,
		list_id,
		lastId,
	);
	addToCounts(sql, campaign.seq, counts);
}

/** State that all recipients of a campaign share. */
export interface Staging {
	campaign: CampaignRow;
	/** Within this scope an address gets one message: the campaign's id, or that of one of its requests. */
	scope: Uuid;
	submission: { seq: number; type: 'TRANSACTIONAL' | 'BULK'; list_id: number | null };
	/** The variables of the content; null: only the service knows them. */
	used: string[] | null;
	context: Record<string, string>;
	now: Micros;
}

export interface Candidate {
	person: Person;
	to_key: string;
	list_id: number | null;
	subscriber_id: number | null;
	/** The subscriber's state; null without a subscriber. */
	is_active: boolean | null;
	/** Values that replace those of the campaign's own context. */
	given: Readonly<Record<string, string>>;
}

export type RowOutcome =
	| { kind: 'staged'; message: number }
	| { kind: 'suppressed' }
	| { kind: 'rejected'; code: string; error: string };

/**
 * Read once for many rows, for a campaign with one submission: a campaign of requests has many, and this would take any
 * of them.
 */
export function readStaging(sql: Sql, campaign: CampaignRow, now: Micros): Staging {
	const row = sql.get<{
		seq: number;
		type: 'TRANSACTIONAL' | 'BULK';
		list_id: number | null;
		variables: string;
		context: string;
	}>('SELECT seq, type, list_id, variables, context FROM submissions WHERE campaign_seq = ?', campaign.seq);
	if (row === undefined) throw new Error(`campaign ${campaign.seq} has no submission`);
	const { seq, type, list_id } = row;
	const submission = { seq, type, list_id };
	return {
		campaign,
		scope: campaign.id,
		submission,
		used: parseUsed(row.variables),
		context: parseTexts(row.context),
		now,
	};
}

/**
 * Runs in the transaction of the caller, which counts the outcome. A suppression takes precedence over missing
 * variables, both over a duplicate.
 */
export function stageMessage(sql: Sql, staging: Staging, candidate: Candidate): RowOutcome {
	const { campaign, scope, submission, used, context, now } = staging;
	const { person, to_key, list_id, subscriber_id, given } = candidate;
	if (!isWantedBy(sql, candidate, submission.type, now)) return { kind: 'suppressed' };
	const variables = overlayVariables(personVariables(person, used, context), used, given);
	const missing = campaign.strict_vars === 1 ? missingVariables(variables, used, context) : [];
	if (missing.length > 0) {
		const names = missing.map((name) => `#${name}#`).join(', ');
		return { kind: 'rejected', code: 'missing_variable', error: `${person.email}: no value for ${names}.` };
	}
	const message = insertMessage(sql, {
		uuid: messageUuid(scope, to_key),
		submission_seq: submission.seq,
		lane: campaign.seq,
		to: person.email,
		to_key,
		list_id,
		subscriber_id,
		variables,
		state: 'staged',
		now,
	});
	if (message !== null) return { kind: 'staged', message };
	return { kind: 'rejected', code: 'duplicate', error: `${person.email} is in this campaign already.` };
}

/** Adds to the counts of a campaign's recipients. */
export function addToCounts(
	sql: Sql,
	campaign_seq: number,
	{ staged, suppressed, rejected }: AcceptCounts,
): void {
	sql.run(
		`UPDATE campaigns
		SET staged = staged + ?, suppressed = suppressed + ?, rejected = rejected + ?
		WHERE seq = ?`,
		staged,
		suppressed,
		rejected,
		campaign_seq,
	);
}

/** One recipient of a row, and the outcome. */
export interface StagedRecipient {
	to: string;
	outcome: RowOutcome;
}

/** The stored subscriber decides whether the address gets the campaign, and fills in what the row leaves open. */
export function stageRecipient(
	sql: Sql,
	staging: Staging,
	{
		to,
		to_key,
		context,
		email_reason,
	}: {
		to: string;
		to_key: string;
		context: Readonly<Record<string, string>>;
		/** For an address that is not in the campaign's list; null: unknown here. */
		email_reason: string | null;
	},
): RowOutcome {
	const { list_id } = staging.submission;
	const known = findPerson(sql, to_key, list_id);
	return stageMessage(sql, staging, {
		person: {
			email: to,
			// Only the service knows its subscribers' details.
			name: known?.name ?? (staging.campaign.courier === 'api' ? null : ''),
			email_reason: known?.email_reason ?? email_reason,
			meta: known?.meta ?? {},
		},
		to_key,
		list_id: known?.list_id ?? list_id,
		subscriber_id: known?.subscriber_id ?? null,
		is_active: known?.is_active ?? null,
		given: context,
	});
}

/** The rejects kept by earlier slices or calls, in the order in which they were found. */
export function keptRejects(sql: Sql, campaign_seq: number, list_id: number): Reject[] {
	const row = sql.get<{ ack: string }>(
		'SELECT ack FROM campaign_acks WHERE campaign_seq = ? AND first = ?',
		campaign_seq,
		placeOf(list_id),
	);
	// Written by keepRejects and by nothing else.
	return row === undefined ? [] : (parseStored(row.ack) as Reject[]);
}

/** Replaces the rejects kept before. */
export function keepRejects(
	sql: Sql,
	{ campaign_seq, list_id }: { campaign_seq: number; list_id: number },
	rejects: readonly Reject[],
): void {
	sql.run(
		`INSERT INTO campaign_acks (campaign_seq, first, ack)
		VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET ack = excluded.ack`,
		campaign_seq,
		placeOf(list_id),
		JSON.stringify(rejects),
	);
}

/** Batches begin at row 0, so rows below 0 are free for lists. */
function placeOf(list_id: number): number {
	return -list_id;
}
