import type { AcceptCounts } from '../../../api/campaigns.js';
import type { Reject } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import type { Uuid } from '../../../api/records.js';
import { noValueText } from '../../../api/refusals.js';
import type { SuppressionReason } from '../../../api/suppressions.js';
import { messageUuid } from '../../../engine/rules/ids.js';
import {
	missingVariables,
	overlayVariables,
	type Person,
	personVariables,
} from '../../../engine/rules/meta.js';
import { isWanted, stopping } from '../../../engine/rules/subscription.js';
import { parseStored } from '../../errors.js';
import { parseTexts, parseUsed } from '../rows.js';
import { each, insertInto, type Sql } from '../sql.js';
import { insertMessages, type NewMessage } from '../submissions.js';
import { openSuppressions, type ReasonsAgainst } from '../suppressions.js';
import type { CampaignRow } from './rows.js';

export interface Terms {
	type: 'TRANSACTIONAL' | 'BULK';
	used: string[] | null;
	context: Record<string, string>;
	is_strict: boolean;
	reasonsAgainst: ReasonsAgainst;
	now: Micros;
}

export interface Staging extends Terms {
	campaign: CampaignRow;
	scope: Uuid;
	submission: { seq: number; list_id: number | null };
}

export interface Candidate {
	person: Person;
	to_key: string;
	list_id: number | null;
	subscriber_id: number | null;
	is_active: boolean | null;
	given: Readonly<Record<string, string>>;
}

type Against =
	| { kind: 'suppressed'; reason: SuppressionReason | null }
	| { kind: 'rejected'; code: string; error: string };

export type Verdict = { kind: 'wanted'; variables: Record<string, string> } | Against;

export type RowOutcome = { kind: 'staged'; message: number } | Against;

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

/** One outcome for each of each group. The caller counts them. The verdict of `judge` goes before a duplicate. */
export async function stageMessages(
	sql: Sql,
	groups: readonly (readonly Staged[])[],
): Promise<RowOutcome[][]> {
	const all = groups.flat();
	const verdicts = await each(sql, all, ({ staging, candidate }) => judge(staging, candidate));
	const messages = await putMessages(
		sql,
		all.map((one, at) => ({ ...one, verdict: verdicts[at] })),
	);
	const outcomes = all.map(({ candidate: { person } }, at): RowOutcome => {
		const verdict = verdicts[at];
		if (verdict !== undefined && verdict.kind !== 'wanted') return verdict;
		const message = messages[at] ?? null;
		if (message !== null) return { kind: 'staged', message };
		return { kind: 'rejected', code: 'duplicate', error: `${person.email} is in this campaign already.` };
	});
	let next = 0;
	return groups.map(({ length }) => {
		next += length;
		return outcomes.slice(next - length, next);
	});
}

export async function putMessages(
	sql: Sql,
	all: readonly (Staged & { verdict: { kind: string; variables?: Record<string, string> } | undefined })[],
): Promise<(number | null)[]> {
	const wanted = new Map<Uuid, NewMessage & { at: number }>();
	for (const [at, { staging, candidate, verdict }] of all.entries()) {
		const variables = verdict?.variables;
		if (variables === undefined) continue;
		const { campaign, scope, submission, now } = staging;
		const { person, to_key, list_id, subscriber_id } = candidate;
		const uuid = messageUuid(scope, to_key);
		if (wanted.has(uuid)) continue;
		wanted.set(uuid, {
			at,
			uuid,
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
	}
	const fresh = [...wanted.values()];
	const made = await insertMessages(sql, fresh);
	const numbers: (number | null)[] = all.map(() => null);
	for (const [place, { at }] of fresh.entries()) numbers[at] = made[place] ?? null;
	return numbers;
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

/** The rejects of a list are kept beside the answers to batches: those begin at row 0, so rows below are free for lists. */
export async function keptRejects(sql: Sql, campaign_seq: number, list_id: number): Promise<Reject[]> {
	const row = await sql.get<{ ack: string }>(
		'SELECT ack FROM campaign_acks WHERE campaign_seq = ? AND first = ?',
		[campaign_seq, -list_id],
	);
	return row === undefined ? [] : (parseStored(row.ack) as Reject[]);
}

export function keepRejects(
	sql: Sql,
	campaign_seq: number,
	list_id: number,
	rejects: readonly Reject[],
): void {
	insertInto(
		sql,
		'campaign_acks',
		{ campaign_seq, first: -list_id, ack: JSON.stringify(rejects) },
		'ON CONFLICT (campaign_seq, first) DO UPDATE SET ack = excluded.ack',
	);
}
