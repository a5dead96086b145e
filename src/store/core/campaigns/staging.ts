/** Makes staged messages of a campaign's recipients; some are suppressed or rejected instead. */
import type { AcceptCounts, Reject } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import type { Uuid } from '../../../api/records.js';
import type { SuppressionReason } from '../../../api/suppressions.js';
import { messageUuid } from '../../../engine/rules/ids.js';
import {
	missingVariables,
	overlayVariables,
	type Person,
	personVariables,
} from '../../../engine/rules/meta.js';
import { isWanted, stopping } from '../../../engine/rules/subscription.js';
import { parseStored, parseTexts, parseUsed } from '../rows.js';
import type { Sql } from '../sql.js';
import { findPerson, insertMessages } from '../submissions.js';
import { openSuppressions, type ReasonsAgainst } from '../suppressions.js';
import type { CampaignRow } from './rows.js';

/** What decides about a recipient, whichever row it comes from. */
export interface Terms {
	type: 'TRANSACTIONAL' | 'BULK';
	/** The variables of the content; null: only the service knows them. */
	used: string[] | null;
	context: Record<string, string>;
	/** A variable without a value rejects the row. */
	is_strict: boolean;
	reasonsAgainst: ReasonsAgainst;
	now: Micros;
}

/** State that all recipients of a campaign share. */
export interface Staging extends Terms {
	campaign: CampaignRow;
	/** Within this scope an address gets one message: the campaign's id, or that of one of its requests. */
	scope: Uuid;
	submission: { seq: number; list_id: number | null };
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
	| { kind: 'suppressed'; reason: SuppressionReason | null }
	| { kind: 'rejected'; code: string; error: string };

/**
 * Read once for many rows, for a campaign with one submission: a campaign of requests has many, and this would take any
 * of them.
 */
export async function readStaging(sql: Sql, campaign: CampaignRow, now: Micros): Promise<Staging> {
	const [row, reasonsAgainst] = await sql.together([
		() =>
			sql.get<{
				seq: number;
				type: 'TRANSACTIONAL' | 'BULK';
				list_id: number | null;
				variables: string;
				context: string;
			}>(
				'SELECT seq, type, list_id, variables, context FROM submissions WHERE campaign_seq = ?',
				campaign.seq,
			),
		() => openSuppressions(sql, now),
	]);
	if (row === undefined) throw new Error(`campaign ${campaign.seq} has no submission`);
	const { seq, type, list_id } = row;
	return {
		campaign,
		scope: campaign.id,
		submission: { seq, list_id },
		type,
		used: parseUsed(row.variables),
		context: parseTexts(row.context),
		is_strict: campaign.strict_vars === 1,
		reasonsAgainst,
		now,
	};
}

/** What speaks against a recipient; else the values of the message. */
export type Verdict =
	| { kind: 'wanted'; variables: Record<string, string> }
	/** Null: the subscriber is inactive without a suppression. */
	| { kind: 'suppressed'; reason: SuppressionReason | null }
	| { kind: 'rejected'; code: string; error: string };

/** Only reads. A suppression takes precedence over missing variables. */
export async function judge(
	{ type, used, context, is_strict, reasonsAgainst }: Terms,
	{ person, to_key, list_id, is_active, given }: Candidate,
): Promise<Verdict> {
	const reasons = await reasonsAgainst({ address: to_key, list_id });
	if (!isWanted(type, { reasons, is_active })) return { kind: 'suppressed', reason: stopping(type, reasons) };
	const variables = overlayVariables(personVariables(person, used, context), used, given);
	const missing = is_strict ? missingVariables(variables, used, context) : [];
	if (missing.length === 0) return { kind: 'wanted', variables };
	const names = missing.map((name) => `#${name}#`).join(', ');
	return { kind: 'rejected', code: 'missing_variable', error: `${person.email}: no value for ${names}.` };
}

/** Runs in the transaction of the caller, which counts the outcome. What `judge` says goes before a duplicate. */
export async function stageMessage(sql: Sql, staging: Staging, candidate: Candidate): Promise<RowOutcome> {
	const verdict = await judge(staging, candidate);
	if (verdict.kind !== 'wanted') return verdict;
	const [message = null] = await putMessages(sql, staging, [{ candidate, ...verdict }]);
	if (message !== null) return { kind: 'staged', message };
	const error = `${candidate.person.email} is in this campaign already.`;
	return { kind: 'rejected', code: 'duplicate', error };
}

/** The messages of recipients that nothing speaks against, by their numbers; null: the address has one already. */
export async function putMessages(
	sql: Sql,
	{ campaign, scope, submission, now }: Staging,
	wanted: readonly { candidate: Candidate; variables: Record<string, string> }[],
): Promise<(number | null)[]> {
	return await insertMessages(
		sql,
		wanted.map(({ candidate: { person, to_key, list_id, subscriber_id }, variables }) => ({
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
		})),
	);
}

/** Adds to the counts of a campaign's recipients. */
export function addToCounts(
	sql: Sql,
	campaign_seq: number,
	{ staged, suppressed, rejected, left_out = 0 }: AcceptCounts,
): void {
	sql.write(
		`UPDATE campaigns
		SET staged = staged + ?, suppressed = suppressed + ?, rejected = rejected + ?, left_out = left_out + ?
		WHERE seq = ?`,
		staged,
		suppressed,
		rejected,
		left_out,
		campaign_seq,
	);
}

/** One recipient of a row, and the outcome. */
export interface StagedRecipient {
	to: string;
	outcome: RowOutcome;
}

/** The stored subscriber decides whether the address gets the campaign, and fills in what the row leaves open. */
export async function stageRecipient(
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
): Promise<RowOutcome> {
	const { list_id } = staging.submission;
	const known = await findPerson(sql, to_key, list_id);
	return await stageMessage(sql, staging, {
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
export async function keptRejects(sql: Sql, campaign_seq: number, list_id: number): Promise<Reject[]> {
	const row = await sql.get<{ ack: string }>(
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
	sql.write(
		`INSERT INTO campaign_acks (campaign_seq, first, ack)
		VALUES (?, ?, ?)
		ON CONFLICT (campaign_seq, first) DO UPDATE SET ack = excluded.ack`,
		campaign_seq,
		placeOf(list_id),
		JSON.stringify(rejects),
	);
}

/** Batches begin at row 0, so rows below 0 are free for lists. */
function placeOf(list_id: number): number {
	return -list_id;
}
