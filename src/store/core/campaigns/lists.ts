/**
 * Adds the subscribers of lists to a campaign. `campaign_left_out` stores the people who get no message. This
 * table is separate, because clients without access to lists may read `campaign_results`.
 */
import type { AcceptCounts, LeavingOut, ListCounts } from '../../../api/campaigns.js';
import type { Reject } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import type { CheckedAudience } from '../../../api/messages.js';
import type { Uuid } from '../../../api/records.js';
import { noValueText, withoutValueOf, withoutValueText } from '../../../api/refusals.js';
import { type Condition, isCondition, parseCondition } from '../../../api/schema/conditions.js';
import type { SuppressionReason } from '../../../api/suppressions.js';
import { messageUuid } from '../../../engine/rules/campaign-rows.js';
import { meets } from '../../../engine/rules/conditions.js';
import {
	isWanted,
	missingVariables,
	overlayVariables,
	type Person,
	personVariables,
	stopping,
} from '../../../engine/rules/subscribers.js';
import type { Operations } from '../../operations.js';
import { findList, hasList } from '../lists.js';
import {
	column,
	each,
	emailColumn,
	insertInto,
	parseRecord,
	parseStored,
	parseTexts,
	parseUsed,
	type Sql,
	type SubscriberRow,
} from '../sql.js';
import { insertMessages, type NewMessage } from '../submissions.js';
import { openSuppressions, type ReasonsAgainst } from '../suppressions.js';
import { type CampaignRow, intoLeftOut, maxListedRejects } from './rows.js';

type ListedRow = Pick<
	SubscriberRow,
	'id' | 'list_id' | 'email' | 'email_key' | 'name' | 'is_active' | 'disable_reason' | 'meta' | 'created_at'
>;

const personColumns = `id, list_id, ${emailColumn}, email_key, name, is_active, disable_reason, meta, created_at`;

interface Expansion {
	terms: Terms;
	lists: readonly { id: number; email_reason: string }[];
	audience: CheckedAudience;
	conditions: readonly Condition[];
	timeZone: string;
}

/** Returns the counts of this slice, and the first rejects of the whole list. */
export async function stageList(
	sql: Sql,
	campaign: CampaignRow,
	{ list_id, now, limit }: { list_id: number; now: Micros; limit: number },
): ReturnType<Operations['stageSlice']> {
	if (!(await hasList(sql, list_id))) return null;
	const { seq: campaign_seq } = campaign;
	const staging = await readStaging(sql, campaign, now);
	const expansion = await expand(sql, staging, audienceOf(campaign), list_id, campaign.time_zone ?? 'UTC');
	const row = await sql.get<{ after_id: number; counts: string | null }>(
		'SELECT after_id, counts FROM campaign_lists WHERE campaign_seq = ? AND list_id = ?',
		[campaign_seq, list_id],
	);
	const place = row === undefined ? null : { after_id: row.after_id, counts: readCounts(row.counts) };
	const people = await nextPeople(sql, { list_id, after: place?.after_id ?? 0, limit });
	const outcomes = await each(sql, people, (person) => outcomeOf(sql, expansion, person));
	const messages = await putMessages(
		sql,
		people.map((person, at) => ({
			staging,
			candidate: candidateOf(expansion, person),
			verdict: outcomes[at],
		})),
	);
	const decided = outcomes.map((outcome, at) =>
		outcome.kind === 'wanted' && messages[at] === null ? duplicate : outcome,
	);
	const sum = countOutcomes(list_id, decided);
	const rejects = await keptRejects(sql, campaign_seq, list_id);
	const before = rejects.length;
	const { staged, suppressed, rejected, left_out, position } = campaign;
	const first = staged + suppressed + rejected + left_out - position;
	for (const [at, outcome] of decided.entries())
		if (outcome.kind === 'rejected' && rejects.length < maxListedRejects)
			rejects.push({ row: first + at, code: outcome.code, error: outcome.error });
	const leftOut = people.flatMap(({ email, email_key }, at) => {
		const why = leavingOut(decided[at]);
		// A duplicate is not left out: the person gets a message through another row.
		if (why === null || why.code === 'duplicate') return [];
		return [[campaign_seq, null, null, list_id, email, email_key, why.code, why.detail]];
	});
	sql.writeAll(intoLeftOut, leftOut);
	if (rejects.length > before) keepRejects(sql, campaign_seq, list_id, rejects);
	insertInto(
		sql,
		'campaign_lists',
		{
			...{ campaign_seq, list_id, after_id: people.at(-1)?.id ?? place?.after_id ?? 0 },
			counts: JSON.stringify(sumOf(place?.counts ?? null, sum)),
		},
		'ON CONFLICT (campaign_seq, list_id) DO UPDATE SET after_id = excluded.after_id, counts = excluded.counts',
	);
	addToCounts(sql, campaign_seq, sum);
	const { list_id: _, reasons: __, ...accepted } = sum;
	return { position: first + people.length, counts: accepted, rejects, isDone: people.length < limit };
}

const mostFindings = 100;

export function createForecasts(sql: Sql) {
	return {
		foreseeAudience: async ({ audience, list_id, after, limit, time_zone, ...terms }) => {
			if (!(await hasList(sql, list_id))) return null;
			const reasonsAgainst = await openSuppressions(sql, terms.now);
			const expansion = await expand(sql, { ...terms, reasonsAgainst }, audience, list_id, time_zone);
			const people = await nextPeople(sql, { list_id, after, limit });
			const outcomes = await each(sql, people, (person) => outcomeOf(sql, expansion, person));
			const findings = outcomes.flatMap((outcome) => (outcome.kind === 'rejected' ? [outcome.error] : []));
			return {
				counts: countOutcomes(list_id, outcomes),
				first: people[outcomes.findIndex(({ kind }) => kind === 'wanted')]?.id ?? null,
				findings: findings.slice(0, mostFindings),
				next: people.length < limit ? null : (people.at(-1)?.id ?? null),
			};
		},
	} satisfies Partial<Operations>;
}

function audienceOf({ audience }: CampaignRow): CheckedAudience {
	const none = { lists: [], exclude_lists: [], where: [], where_opened: [], where_not_opened: [] };
	return audience === null ? none : (parseStored(audience) as CheckedAudience);
}

async function expand(
	sql: Sql,
	terms: Terms,
	audience: CheckedAudience,
	list_id: number,
	timeZone: string,
): Promise<Expansion> {
	const ids = audience.lists.includes(list_id) ? audience.lists : [list_id];
	const found = await each(sql, ids, (id) => findList(sql, id));
	const lists = ids.map((id, at) => ({ id, email_reason: found[at]?.email_reason ?? '' }));
	const conditions = audience.where.map(parseCondition).filter(isCondition);
	return { terms, lists, audience, conditions, timeZone };
}

type ListedTuple = [number, number, string, string, string, number, string | null, string, number];

async function nextPeople(
	sql: Sql,
	{ list_id, after, limit }: { list_id: number; after: number; limit: number },
): Promise<ListedRow[]> {
	const tuples = await sql.tuples<ListedTuple>(
		`SELECT ${personColumns}
		FROM subscribers
		WHERE list_id = ? AND id > ?
		ORDER BY id
		LIMIT ?`,
		[list_id, after, limit],
	);
	return tuples.map((tuple) => {
		const [id, list_id, email, email_key, name, is_active, disable_reason, meta, created_at] = tuple;
		return { id, list_id, email, email_key, name, is_active, disable_reason, meta, created_at };
	});
}

type Outcome = Verdict | ({ kind: 'left_out' } & LeavingOut);

const duplicate: Outcome = { kind: 'left_out', code: 'duplicate', detail: null };

async function outcomeOf(sql: Sql, expansion: Expansion, person: ListedRow): Promise<Outcome> {
	const { lists, terms } = expansion;
	const why = await whyLeftOut(sql, expansion, person);
	if (why !== null) return { kind: 'left_out', ...why };
	for (const { id } of lists) {
		if (id === person.list_id) break;
		const other = await findInList(sql, person.email_key, id);
		if (other !== undefined && (await outcomeOf(sql, expansion, other)).kind === 'wanted') return duplicate;
	}
	return await judge(terms, candidateOf(expansion, person));
}

async function findInList(sql: Sql, email_key: string, list_id: number): Promise<ListedRow | undefined> {
	return await sql.get<ListedRow>(
		`SELECT ${personColumns} FROM subscribers WHERE email_key = ? AND list_id = ?`,
		[email_key, list_id],
	);
}

function candidateOf({ lists }: Expansion, row: ListedRow): Candidate {
	const { email, name, list_id } = row;
	const email_reason = lists.find(({ id }) => id === list_id)?.email_reason ?? '';
	return {
		person: { email, name, email_reason, meta: parseRecord(row.meta) },
		to_key: row.email_key,
		list_id,
		subscriber_id: row.id,
		is_active: row.is_active === 1,
		given: {},
	};
}

async function whyLeftOut(
	sql: Sql,
	{ audience, conditions, timeZone }: Expansion,
	row: ListedRow,
): Promise<LeavingOut | null> {
	if (row.is_active === 0) return { code: 'inactive', detail: row.disable_reason };
	for (const list of audience.exclude_lists)
		if ((await findInList(sql, row.email_key, list)) !== undefined)
			return { code: 'excluded', detail: String(list) };
	if (conditions.length > 0) {
		const { email, name, created_at } = row;
		const person = { email, name, meta: parseRecord(row.meta), created_at };
		const unmet = conditions.find((condition) => !meets(person, condition, timeZone));
		if (unmet !== undefined) return { code: 'condition', detail: unmet.text };
	}
	for (const campaign of audience.where_opened)
		if ((await hasOpened(sql, row.email_key, campaign)) !== true) return { code: 'opened', detail: campaign };
	for (const campaign of audience.where_not_opened)
		if ((await hasOpened(sql, row.email_key, campaign)) !== false)
			return { code: 'not_opened', detail: campaign };
	return null;
}

async function hasOpened(sql: Sql, to_key: string, campaign: string): Promise<boolean | null> {
	const row = await sql.get<{ opened: number | null }>(
		`SELECT max(CASE WHEN EXISTS (
			SELECT 1 FROM message_firsts f
			WHERE f.message_id = m.id AND f.type = 'OPENED' AND f.machine = 0
		) THEN 1 ELSE 0 END) AS opened
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		WHERE m.to_key = ? AND s.campaign = ? AND m.state = 'sent'`,
		[to_key, campaign],
	);
	const opened = row?.opened ?? null;
	return opened === null ? null : opened === 1;
}

function leavingOut(outcome: Outcome | undefined): LeavingOut | null {
	switch (outcome?.kind) {
		case 'left_out':
			return { code: outcome.code, detail: outcome.detail };
		case 'suppressed':
			return { code: 'suppressed', detail: outcome.reason };
		case 'rejected':
			return { code: outcome.code, detail: outcome.error };
		default:
			return null;
	}
}

function countOutcomes(list_id: number, outcomes: readonly Outcome[]): ListCounts {
	const counts = { staged: 0, suppressed: 0, rejected: 0, left_out: 0 };
	for (const { kind } of outcomes) counts[kind === 'wanted' ? 'staged' : kind] += 1;
	const { left_out, ...others } = counts;
	const reasons = outcomes.flatMap((outcome) => {
		const why = leavingOut(outcome);
		if (outcome.kind !== 'rejected') return why === null ? [] : [{ ...why, count: 1 }];
		const names = withoutValueOf(outcome.error);
		return [{ code: outcome.code, detail: names.length === 0 ? null : withoutValueText(names), count: 1 }];
	});
	const sums = sumReasons(reasons, Number.POSITIVE_INFINITY);
	return { list_id, ...others, ...(left_out > 0 && { left_out }), reasons: sums };
}

/** Each subscriber may lack different variables. Beyond this number, new reasons are counted without their detail. */
const mostReasons = 100;

function sumReasons(reasons: ListCounts['reasons'], most: number): ListCounts['reasons'] {
	const sums = new Map<string, ListCounts['reasons'][number]>();
	for (const { code, detail, count } of reasons) {
		const isKept = sums.size < most || [...sums.values()].some((one) => one.detail === detail);
		const shown = isKept ? detail : null;
		const key = `${code} ${shown}`;
		sums.set(key, { code, detail: shown, count: count + (sums.get(key)?.count ?? 0) });
	}
	return [...sums.values()];
}

function sumOf(before: ListCounts | null, counts: ListCounts): ListCounts {
	if (before === null) return counts;
	const left_out = (before.left_out ?? 0) + (counts.left_out ?? 0);
	return {
		list_id: before.list_id,
		staged: before.staged + counts.staged,
		suppressed: before.suppressed + counts.suppressed,
		rejected: before.rejected + counts.rejected,
		...(left_out > 0 && { left_out }),
		reasons: sumReasons([...before.reasons, ...counts.reasons], mostReasons),
	};
}

function readCounts(text: string | null): ListCounts | null {
	return text === null ? null : (parseStored(text) as ListCounts);
}

export async function listCounts(sql: Sql, campaign: CampaignRow): Promise<ListCounts[]> {
	const order = audienceOf(campaign).lists;
	const texts = await column<string | null>(
		sql,
		'SELECT counts FROM campaign_lists WHERE campaign_seq = ? ORDER BY list_id',
		[campaign.seq],
	);
	return texts
		.flatMap((text) => readCounts(text) ?? [])
		.sort((a, b) => order.indexOf(a.list_id) - order.indexOf(b.list_id));
}

interface Terms {
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
	/** Tells recipients who are not subscribers why they get the mail; null if the send API supplies this text. */
	email_reason: string | null;
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

type Verdict = { kind: 'wanted'; variables: Record<string, string> } | Against;

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
				email_reason: string | null;
			}>(
				`SELECT s.seq, s.type, s.list_id, s.variables, s.context, l.email_reason
				FROM submissions s
				LEFT JOIN lists l ON l.id = s.list_id
				WHERE s.campaign_seq = ?`,
				[campaign.seq],
			),
		() => openSuppressions(sql, now),
	]);
	if (row === undefined) throw new Error(`campaign ${campaign.seq} has no submission`);
	const { seq, type, list_id } = row;
	return {
		campaign,
		scope: campaign.id,
		submission: { seq, list_id },
		email_reason: campaign.courier === 'api' ? null : (row.email_reason ?? ''),
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

interface Staged {
	staging: Staging;
	candidate: Candidate;
}

/** A suppressed candidate is not reported as a duplicate. */
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

async function putMessages(
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

export async function keptRejects(sql: Sql, campaign_seq: number, list_id: number): Promise<Reject[]> {
	const row = await sql.get<{ ack: string }>(
		'SELECT ack FROM campaign_acks WHERE campaign_seq = ? AND first = ?',
		[campaign_seq, -list_id],
	);
	return row === undefined ? [] : (parseStored(row.ack) as Reject[]);
}

/** Stores the rejects of a list as the answer at row `-list_id`, because no batch has a negative row. */
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
