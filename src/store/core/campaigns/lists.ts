/**
 * Expands lists into a campaign: who of a list gets a message, in bounded slices, and why the others do not. The same
 * rules foresee it without a write. Rejects of a list are kept until the campaign is released or canceled, beside the
 * answers to batches; who is left out is kept by name, apart from the results: a client that may send reads those, and may
 * not read a list.
 */
import type { AudiencePart, LeavingOut, ListCounts } from '../../../api/campaigns.js';
import type { Reject } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import type { CheckedAudience } from '../../../api/messages.js';
import { withoutValueOf, withoutValueText } from '../../../api/refusals.js';
import { type Condition, isCondition, parseCondition } from '../../../api/schema/conditions.js';
import { meets } from '../../../engine/rules/conditions.js';
import { parseStored } from '../../errors.js';
import type { Command, Operations } from '../../operations.js';
import { findList, hasList } from '../lists.js';
import { emailColumn, type ListRow, parseRecord, type SubscriberRow } from '../rows.js';
import { each, type Sql } from '../sql.js';
import { openSuppressions } from '../suppressions.js';
import { type CampaignRow, maxListedRejects, readFromLists, type StagedSlice } from './rows.js';
import {
	addToCounts,
	type Candidate,
	judge,
	keepRejects,
	keptRejects,
	putMessages,
	readStaging,
	type Staging,
	type Terms,
	type Verdict,
} from './staging.js';

type ListedRow = Pick<
	SubscriberRow,
	'id' | 'list_id' | 'email' | 'email_key' | 'name' | 'is_active' | 'disable_reason' | 'meta' | 'created_at'
>;

type ListedTuple = [
	id: number,
	list_id: number,
	email: string,
	email_key: string,
	name: string,
	is_active: number,
	disable_reason: string | null,
	meta: string,
	created_at: number,
];

const personColumns = `id, list_id, ${emailColumn}, email_key, name, is_active, disable_reason, meta, created_at`;

interface Expansion {
	terms: Terms;
	lists: readonly { id: number; email_reason: string }[];
	audience: CheckedAudience;
	conditions: readonly Condition[];
	timeZone: string;
}

/**
 * Continues after the last subscriber it has read, so adding a list again adds newer subscribers. Counts are those of
 * this slice; rejects are the first of the list, from any slice or call.
 */
export async function stageList(
	sql: Sql,
	campaign: CampaignRow,
	{
		audience,
		list_id,
		now,
		limit,
	}: { audience: CheckedAudience; list_id: number; now: Micros; limit: number },
): Promise<StagedSlice | null> {
	const list = await findList(sql, list_id);
	if (list === null) return null;
	const staging = await readStaging(sql, campaign, now);
	const expansion = await expand(sql, {
		audience,
		list_id,
		terms: staging,
		timeZone: campaign.time_zone ?? 'UTC',
	});
	const place = await placeOf(sql, campaign.seq, list_id);
	const people = await nextPeople(sql, { list_id, after: place?.after_id ?? 0, limit });
	const counts = createCounts(list_id);
	const rejects: Reject[] = await keptRejects(sql, campaign.seq, list_id);
	const before = rejects.length;
	const first = readFromLists(campaign);
	const outcomes = await each(sql, people, (person) => outcomeOf(sql, expansion, person));
	const kept = await put(sql, staging, { outcomes, people, list });
	for (const [index, outcome] of kept.entries()) {
		counts.add(outcome);
		if (outcome.kind !== 'rejected' || rejects.length >= maxListedRejects) continue;
		rejects.push({ row: first + index, code: outcome.code, error: outcome.error });
	}
	for (const [index, outcome] of kept.entries()) keepLeftOut(sql, campaign.seq, people[index], outcome);
	if (rejects.length > before) keepRejects(sql, { campaign_seq: campaign.seq, list_id }, rejects);
	const after_id = people.at(-1)?.id ?? place?.after_id ?? 0;
	keepPlace(sql, campaign.seq, { after_id, counts: sumOf(place?.counts ?? null, counts.sum()) });
	addToCounts(sql, campaign.seq, counts.sum());
	const { staged, suppressed, rejected, left_out } = counts.sum();
	return {
		position: first + people.length,
		counts: { staged, suppressed, rejected, ...(left_out !== undefined && { left_out }) },
		rejects,
		isDone: people.length < limit,
	};
}

async function put(
	sql: Sql,
	staging: Staging,
	{ outcomes, people, list }: { outcomes: readonly Outcome[]; people: readonly ListedRow[]; list: ListRow },
): Promise<Outcome[]> {
	const wanted = people.flatMap((person, index) => {
		const outcome = outcomes[index];
		if (outcome?.kind !== 'wanted') return [];
		return [{ index, candidate: candidateOf(person, list.email_reason), variables: outcome.variables }];
	});
	const messages = await putMessages(sql, staging, wanted);
	const kept = [...outcomes];
	for (const [at, { index }] of wanted.entries())
		if (messages[at] === null) kept[index] = { kind: 'left_out', code: 'duplicate', detail: null };
	return kept;
}

const mostFindings = 100;

export async function foreseeList(
	sql: Sql,
	{ audience, list_id, after, limit, time_zone, ...terms }: Command<'foreseeAudience'>,
): ReturnType<Operations['foreseeAudience']> {
	if (!(await hasList(sql, list_id))) return null;
	const reasonsAgainst = await openSuppressions(sql, terms.now);
	const expansion = await expand(sql, {
		audience,
		list_id,
		terms: { ...terms, reasonsAgainst },
		timeZone: time_zone,
	});
	const people = await nextPeople(sql, { list_id, after, limit });
	const counts = createCounts(list_id);
	const findings: string[] = [];
	let first: number | null = null;
	const outcomes = await each(sql, people, (person) => outcomeOf(sql, expansion, person));
	for (const [index, outcome] of outcomes.entries()) {
		counts.add(outcome);
		if (outcome.kind === 'wanted') first ??= people[index]?.id ?? null;
		if (outcome.kind === 'rejected' && findings.length < mostFindings) findings.push(outcome.error);
	}
	const next = people.length < limit ? null : (people.at(-1)?.id ?? null);
	return { counts: counts.sum(), first, findings, next } satisfies AudiencePart;
}

async function expand(
	sql: Sql,
	{
		audience,
		list_id,
		terms,
		timeZone,
	}: { audience: CheckedAudience; list_id: number; terms: Terms; timeZone: string },
): Promise<Expansion> {
	const ids = audience.lists.includes(list_id) ? audience.lists : [list_id];
	const lists: { id: number; email_reason: string }[] = [];
	for (const id of ids) lists.push({ id, email_reason: (await findList(sql, id))?.email_reason ?? '' });
	return {
		terms,
		lists,
		audience,
		conditions: audience.where.map(parseCondition).filter(isCondition),
		timeZone,
	};
}

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
	return tuples.map(rowOf);
}

function rowOf([
	id,
	list_id,
	email,
	email_key,
	name,
	is_active,
	disable_reason,
	meta,
	created_at,
]: ListedTuple): ListedRow {
	return { id, list_id, email, email_key, name, is_active, disable_reason, meta, created_at };
}

async function outcomeOf(sql: Sql, expansion: Expansion, person: ListedRow): Promise<Outcome> {
	const { lists, terms } = expansion;
	const why = await whyLeftOut(sql, expansion, person);
	if (why !== null) return { kind: 'left_out', ...why };
	for (const { id } of lists) {
		if (id === person.list_id) break;
		const other = await findInList(sql, person.email_key, id);
		if (other !== undefined && (await outcomeOf(sql, expansion, other)).kind === 'wanted')
			return { kind: 'left_out', code: 'duplicate', detail: null };
	}
	const reason = lists.find(({ id }) => id === person.list_id)?.email_reason ?? '';
	return await judge(terms, candidateOf(person, reason));
}

async function findInList(sql: Sql, email_key: string, list_id: number): Promise<ListedRow | undefined> {
	// subscribers_by_key (email_key, list_id)
	return await sql.get<ListedRow>(
		`SELECT ${personColumns} FROM subscribers WHERE email_key = ? AND list_id = ?`,
		[email_key, list_id],
	);
}

function candidateOf(row: ListedRow, email_reason: string): Candidate {
	return {
		person: { email: row.email, name: row.name, email_reason, meta: parseRecord(row.meta) },
		to_key: row.email_key,
		list_id: row.list_id,
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
		if ((await readingOf(sql, row.email_key, campaign)) !== 'opened')
			return { code: 'opened', detail: campaign };
	for (const campaign of audience.where_not_opened)
		if ((await readingOf(sql, row.email_key, campaign)) !== 'unopened')
			return { code: 'not_opened', detail: campaign };
	return null;
}

/** What became of the campaign's mail to the address: as a report counts people who opened; null: it got none. */
async function readingOf(sql: Sql, to_key: string, campaign: string): Promise<'opened' | 'unopened' | null> {
	const row = await sql.get<{ opened: number | null }>(
		// messages_of_address, message_firsts by its key
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
	return opened === null ? null : opened === 1 ? 'opened' : 'unopened';
}

/** A duplicate has its message by another row. */
function keepLeftOut(sql: Sql, campaign_seq: number, person: ListedRow | undefined, outcome: Outcome): void {
	const why = leavingOut(outcome);
	if (person === undefined || why === null || why.code === 'duplicate') return;
	sql.write(
		`INSERT INTO campaign_left_out (campaign_seq, list_id, to_email, to_key, code, detail)
		VALUES (?, ?, ?, ?, ?, ?)`,
		[campaign_seq, person.list_id, person.email, person.email_key, why.code, why.detail],
	);
}

export type Outcome = Verdict | ({ kind: 'left_out' } & LeavingOut);

export function leavingOut(outcome: Outcome): LeavingOut | null {
	switch (outcome.kind) {
		case 'left_out':
			return { code: outcome.code, detail: outcome.detail };
		case 'suppressed':
			return { code: 'suppressed', detail: outcome.reason };
		case 'rejected':
			return { code: outcome.code, detail: outcome.error };
		case 'wanted':
			return null;
	}
}

export interface Counts {
	add(outcome: Outcome): void;
	sum(): ListCounts;
}

export function createCounts(list_id: number): Counts {
	const counts = { staged: 0, suppressed: 0, rejected: 0, left_out: 0 };
	const reasons = new Map<string, LeavingOut & { count: number }>();
	return {
		add: (outcome) => {
			counts[outcome.kind === 'wanted' ? 'staged' : outcome.kind] += 1;
			const why = leavingOut(outcome);
			if (why === null) return;
			const detail = outcome.kind === 'rejected' ? sharedBy(outcome.error) : why.detail;
			const key = `${why.code} ${detail}`;
			const known = reasons.get(key);
			if (known === undefined) reasons.set(key, { code: why.code, detail, count: 1 });
			else known.count += 1;
		},
		sum: () => {
			const { left_out, ...rest } = counts;
			return { list_id, ...rest, ...(left_out > 0 && { left_out }), reasons: [...reasons.values()] };
		},
	};
}

/** A finding names the person: what several have in common is the variables. */
function sharedBy(error: string): string | null {
	const names = withoutValueOf(error);
	return names.length === 0 ? null : withoutValueText(names);
}

/** Each set of variables is a reason: in a content of many there may be as many sets as people. */
const mostReasons = 100;

export function sumOf(before: ListCounts | null, counts: ListCounts): ListCounts {
	if (before === null) return counts;
	const reasons = before.reasons.map((one) => ({ ...one }));
	for (const { code, detail, count } of counts.reasons) {
		const isKept = reasons.length < mostReasons || reasons.some((one) => one.detail === detail);
		const shown = isKept ? detail : null;
		const known = reasons.find((one) => one.code === code && one.detail === shown);
		if (known === undefined) reasons.push({ code, detail: shown, count });
		else known.count += count;
	}
	const left_out = (before.left_out ?? 0) + (counts.left_out ?? 0);
	return {
		list_id: before.list_id,
		staged: before.staged + counts.staged,
		suppressed: before.suppressed + counts.suppressed,
		rejected: before.rejected + counts.rejected,
		...(left_out > 0 && { left_out }),
		reasons,
	};
}

export async function placeOf(
	sql: Sql,
	campaign_seq: number,
	list_id: number,
): Promise<{ after_id: number; counts: ListCounts | null } | null> {
	const row = await sql.get<{ after_id: number; counts: string | null }>(
		'SELECT after_id, counts FROM campaign_lists WHERE campaign_seq = ? AND list_id = ?',
		[campaign_seq, list_id],
	);
	return row === undefined ? null : { after_id: row.after_id, counts: readCounts(row.counts) };
}

function readCounts(text: string | null): ListCounts | null {
	return text === null ? null : (parseStored(text) as ListCounts);
}

export function keepPlace(
	sql: Sql,
	campaign_seq: number,
	{ after_id, counts }: { after_id: number; counts: ListCounts },
): void {
	sql.write(
		`INSERT INTO campaign_lists (campaign_seq, list_id, after_id, counts)
		VALUES (?, ?, ?, ?)
		ON CONFLICT (campaign_seq, list_id) DO UPDATE SET after_id = excluded.after_id, counts = excluded.counts`,
		[campaign_seq, counts.list_id, after_id, JSON.stringify(counts)],
	);
}

export async function listCounts(
	sql: Sql,
	{ seq }: Pick<CampaignRow, 'seq'>,
	order: readonly number[],
): Promise<ListCounts[]> {
	const rows = await sql.all<{ counts: string | null }>(
		'SELECT counts FROM campaign_lists WHERE campaign_seq = ? ORDER BY list_id',
		[seq],
	);
	return rows
		.flatMap(({ counts }) => readCounts(counts) ?? [])
		.sort((a, b) => order.indexOf(a.list_id) - order.indexOf(b.list_id));
}
