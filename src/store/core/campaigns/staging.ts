/** Makes staged messages of a campaign's recipients; some are suppressed or rejected instead. */

import type { AcceptCounts } from '../../../api/campaigns.js';
import type { Reject } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import type { Uuid } from '../../../api/records.js';
import { noValueText } from '../../../api/refusals.js';
import type { SuppressionReason } from '../../../api/suppressions.js';
import type { RecipientRow } from '../../../engine/rules/campaign-rows.js';
import { messageUuid } from '../../../engine/rules/ids.js';
import {
	missingVariables,
	overlayVariables,
	type Person,
	personVariables,
} from '../../../engine/rules/meta.js';
import { isWanted, stopping } from '../../../engine/rules/subscription.js';
import type { RequestedRow } from '../../campaigns.js';
import { parseStored } from '../../errors.js';
import { parseTexts, parseUsed } from '../rows.js';
import { each, type Sql } from '../sql.js';
import { findPerson, insertMessages, type KnownPerson, type NewMessage } from '../submissions.js';
import { openSuppressions, type ReasonsAgainst } from '../suppressions.js';
import type { CampaignRow } from './rows.js';

export interface Terms {
	type: 'TRANSACTIONAL' | 'BULK';
	/** The variables of the content; null: only the service knows them. */
	used: string[] | null;
	context: Record<string, string>;
	is_strict: boolean;
	reasonsAgainst: ReasonsAgainst;
	now: Micros;
}

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
			}>('SELECT seq, type, list_id, variables, context FROM submissions WHERE campaign_seq = ?', [
				campaign.seq,
			]),
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
	return { kind: 'rejected', code: 'missing_variable', error: noValueText(missing, person.email) };
}

export interface Staged {
	staging: Staging;
	candidate: Candidate;
}

/**
 * One outcome for each, in their order. Runs in the transaction of the caller, which counts them. What `judge` says goes
 * before a duplicate.
 */
export async function stageMessages(sql: Sql, all: readonly Staged[]): Promise<RowOutcome[]> {
	const verdicts = await each(sql, all, ({ staging, candidate }) => judge(staging, candidate));
	const wanted = new Map<Uuid, NewMessage>();
	const uuids = all.map(({ staging, candidate }, at) => {
		const verdict = verdicts[at];
		if (verdict?.kind !== 'wanted') return null;
		const message = messageOf(staging, candidate, verdict.variables);
		if (wanted.has(message.uuid)) return null;
		wanted.set(message.uuid, message);
		return message.uuid;
	});
	const made = await insertMessages(sql, [...wanted.values()]);
	const ids = new Map([...wanted.keys()].map((uuid, at) => [uuid, made[at] ?? null]));
	return all.map(({ candidate: { person } }, at): RowOutcome => {
		const verdict = verdicts[at];
		if (verdict !== undefined && verdict.kind !== 'wanted') return verdict;
		const message = ids.get(uuids[at] ?? '') ?? null;
		if (message !== null) return { kind: 'staged', message };
		const error = `${person.email} is in this campaign already.`;
		return { kind: 'rejected', code: 'duplicate', error };
	});
}

/** The messages of recipients that nothing speaks against, by their numbers; null: the address has one already. */
export async function putMessages(
	sql: Sql,
	staging: Staging,
	wanted: readonly { candidate: Candidate; variables: Record<string, string> }[],
): Promise<(number | null)[]> {
	return await insertMessages(
		sql,
		wanted.map(({ candidate, variables }) => messageOf(staging, candidate, variables)),
	);
}

function messageOf(
	{ campaign, scope, submission, now }: Staging,
	{ person, to_key, list_id, subscriber_id }: Candidate,
	variables: Record<string, string>,
): NewMessage {
	return {
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
	};
}

export function addToCounts(
	sql: Sql,
	campaign_seq: number,
	{ staged, suppressed, rejected, left_out = 0 }: AcceptCounts,
): void {
	sql.write(
		`UPDATE campaigns
		SET staged = staged + ?, suppressed = suppressed + ?, rejected = rejected + ?, left_out = left_out + ?
		WHERE seq = ?`,
		[staged, suppressed, rejected, left_out, campaign_seq],
	);
}

export interface StagedRecipient {
	to: string;
	outcome: RowOutcome;
}

export interface Recipient {
	to: string;
	to_key: string;
	context: Readonly<Record<string, string>>;
	/** For an address that is not in the campaign's list; null: unknown here. */
	email_reason: string | null;
}

/** The stored subscriber decides whether the address gets the campaign, and fills in what the row leaves open. */
export function candidateOf(
	staging: Staging,
	{ to, to_key, context, email_reason }: Recipient,
	known: KnownPerson | null,
): Candidate {
	return {
		person: {
			email: to,
			// Only the service knows its subscribers' details.
			name: known?.name ?? (staging.campaign.courier === 'api' ? null : ''),
			email_reason: known?.email_reason ?? email_reason,
			meta: known?.meta ?? {},
		},
		to_key,
		list_id: known?.list_id ?? staging.submission.list_id,
		subscriber_id: known?.subscriber_id ?? null,
		is_active: known?.is_active ?? null,
		given: context,
	};
}

export async function findPeople(
	sql: Sql,
	addresses: readonly { to_key: string; list_id: number | null }[],
): Promise<(KnownPerson | null)[]> {
	return await each(sql, addresses, ({ to_key, list_id }) => findPerson(sql, to_key, list_id));
}

/** What became of a row: of its recipients, or of the row where it was rejected. */
export function stagedOf(
	row: RecipientRow | RequestedRow,
	outcomes: readonly (RowOutcome | undefined)[],
): StagedRecipient[] {
	if (row.kind === 'rejected') return [{ to: row.to ?? '', outcome: row }];
	const recipients = row.kind === 'request' ? row.recipients : [row];
	return recipients.flatMap(({ to }, at) => {
		const outcome = outcomes[at];
		return outcome === undefined ? [] : [{ to, outcome }];
	});
}

export async function keptRejects(sql: Sql, campaign_seq: number, list_id: number): Promise<Reject[]> {
	const row = await sql.get<{ ack: string }>(
		'SELECT ack FROM campaign_acks WHERE campaign_seq = ? AND first = ?',
		[campaign_seq, placeOf(list_id)],
	);
	// Written by keepRejects and by nothing else.
	return row === undefined ? [] : (parseStored(row.ack) as Reject[]);
}

export function keepRejects(
	sql: Sql,
	{ campaign_seq, list_id }: { campaign_seq: number; list_id: number },
	rejects: readonly Reject[],
): void {
	sql.write(
		`INSERT INTO campaign_acks (campaign_seq, first, ack)
		VALUES (?, ?, ?)
		ON CONFLICT (campaign_seq, first) DO UPDATE SET ack = excluded.ack`,
		[campaign_seq, placeOf(list_id), JSON.stringify(rejects)],
	);
}

/** Batches begin at row 0, so rows below 0 are free for lists. */
function placeOf(list_id: number): number {
	return -list_id;
}
