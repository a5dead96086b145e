import type { AcceptCounts } from '../../../api/campaigns.js';
import type { Ack, Reject } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import { listFieldErrors } from '../../../api/errors.js';
import { builtInVariables } from '../../../api/inputs.js';
import type { Uuid } from '../../../api/records.js';
import { noValueText } from '../../../api/refusals.js';
import { texts } from '../../../api/schema/texts.js';
import type { RecipientRow } from '../../../engine/rules/campaign-rows.js';
import { missingVariables } from '../../../engine/rules/subscribers.js';
import type { CampaignAck, ListedPeople, PeopleAck, RequestedRow } from '../../campaigns.js';
import type { Seen } from '../../store.js';
import { findList } from '../lists.js';
import { each, exists, insertInto, parseStored, type Sql } from '../sql.js';
import { checkParts, countMessages, findPerson, insertSubmission, type KnownPerson } from '../submissions.js';
import { openSuppressions } from '../suppressions.js';
import {
	addToCounts,
	type Candidate,
	keepRejects,
	keptRejects,
	type RowOutcome,
	readStaging,
	type Staging,
	stageMessages,
} from './lists.js';
import { logResults, type StagedRow } from './results.js';
import { type CampaignRow, maxListedRejects, noCounts } from './rows.js';

interface Batch extends Seen {
	first: number;
	rows: readonly (RecipientRow | RequestedRow)[];
	now: Micros;
}

export async function putBatch(
	sql: Sql,
	campaign: CampaignRow,
	{ stored, ...batch }: Batch & { stored: Ack<AcceptCounts> | null },
): Promise<CampaignAck> {
	const { first, rows } = batch;
	if (campaign.state !== 'staged') return { kind: 'closed', state: campaign.state };
	if (stored !== null) return { kind: 'acknowledged', ack: stored };
	if (first !== campaign.position) return { kind: 'gap', position: campaign.position };
	if (campaign.is_complete === 1 && rows.length > 0) return { kind: 'closed', state: 'complete' };
	const wanted = campaign.requests === 1 ? 'request' : 'recipient';
	if (rows.some(({ kind }) => kind !== 'rejected' && kind !== wanted)) return { kind: 'other_rows' };
	const staged = await (wanted === 'request' ? stageRequests : stageRecipients)(sql, campaign, batch);
	logResults(sql, campaign, staged);
	const ack = { position: first + rows.length, ...countOf(staged) };
	// An empty batch does not move the position: the next batch has the same number and must not get its answer.
	if (rows.length > 0) {
		addToCounts(sql, campaign.seq, ack.counts);
		sql.write('UPDATE campaigns SET position = ? WHERE seq = ?', [ack.position, campaign.seq]);
		insertInto(sql, 'campaign_acks', { campaign_seq: campaign.seq, first, ack: JSON.stringify(ack) });
	}
	return { kind: 'acknowledged', ack };
}

export function dropAcks(sql: Sql, campaign_seq: number): void {
	sql.write('DELETE FROM campaign_acks WHERE campaign_seq = ?', [campaign_seq]);
}

export async function findAck(sql: Sql, campaign: Uuid, first: number): Promise<Ack<AcceptCounts> | null> {
	const row = await sql.get<{ ack: string }>(
		'SELECT ack FROM campaign_acks WHERE campaign_seq = (SELECT seq FROM campaigns WHERE id = ?) AND first = ?',
		[campaign, first],
	);
	return row === undefined ? null : (parseStored(row.ack) as Ack<AcceptCounts>);
}

function countOf(staged: readonly StagedRow[]): { counts: AcceptCounts; rejects: Reject[] } {
	const counts = noCounts();
	const rejects: Reject[] = [];
	for (const { row, outcome } of staged) {
		counts[outcome.kind] += 1;
		if (outcome.kind === 'rejected') rejects.push({ row, code: outcome.code, error: outcome.error });
	}
	return { counts, rejects };
}

function stagedRows({ first, rows }: Batch, outcomes: readonly (readonly RowOutcome[])[]): StagedRow[] {
	return rows.flatMap((row, at): StagedRow[] => {
		const place = { row: first + at, line: row.line ?? null };
		if (row.kind === 'rejected') return [{ ...place, to: row.to ?? '', outcome: row }];
		const recipients = row.kind === 'request' ? row.recipients : [row];
		const own = outcomes[at] ?? [];
		const [outcome] = own;
		if (outcome !== undefined && own.length < recipients.length)
			return [{ ...place, to: recipients.map(({ to }) => to).join(', '), outcome }];
		return recipients.flatMap(({ to }, of) => {
			const outcome = own[of];
			return outcome === undefined ? [] : [{ ...place, to, outcome }];
		});
	});
}

function candidateOf(
	{ campaign, submission }: Staging,
	{ to, to_key, context = {} }: { to: string; to_key: string; context?: Candidate['given'] },
	known: KnownPerson | null,
	email_reason: string | null,
): Candidate {
	return {
		person: {
			email: to,
			name: known?.name ?? (campaign.courier === 'api' ? null : ''),
			email_reason: known?.email_reason ?? email_reason,
			meta: known?.meta ?? {},
		},
		to_key,
		list_id: known?.list_id ?? submission.list_id,
		subscriber_id: known?.subscriber_id ?? null,
		is_active: known?.is_active ?? null,
		given: context,
	};
}

async function stageRecipients(sql: Sql, campaign: CampaignRow, batch: Batch): Promise<StagedRow[]> {
	const staging = await readStaging(sql, campaign, batch.now);
	const { list_id } = staging.submission;
	const [list, known] = await sql.together([
		async () => (list_id === null ? null : await findList(sql, list_id)),
		() =>
			each(sql, batch.rows, async (row) =>
				row.kind === 'recipient' ? await findPerson(sql, row.to_key, list_id) : null,
			),
	]);
	const email_reason = campaign.courier === 'api' ? null : (list?.email_reason ?? '');
	const outcomes = await stageMessages(
		sql,
		batch.rows.map((row, at) =>
			row.kind === 'recipient'
				? [{ staging, candidate: candidateOf(staging, row, known[at] ?? null, email_reason) }]
				: [],
		),
	);
	return stagedRows(batch, outcomes);
}

type Request = Extract<RequestedRow, { kind: 'request' }>;

async function stageRequests(
	sql: Sql,
	campaign: CampaignRow,
	{ rows, now, ...batch }: Batch,
): Promise<StagedRow[]> {
	const requests = rows.flatMap((row) => (row.kind === 'request' ? [row] : []));
	const distinct = [...new Map(requests.map((row) => [row.submission.id, row])).values()];
	const listIds = [...new Set(distinct.map(({ submission: { list_id } }) => list_id))];
	const [refusals, known, lists, people, reasonsAgainst] = await sql.together([
		() => each(sql, distinct, (request) => refusalOf(sql, campaign, request, batch)),
		() => knownSubmissions(sql, distinct),
		() => each(sql, listIds, async (id) => (id === null ? null : await findList(sql, id))),
		() =>
			each(sql, requests, ({ submission: { list_id }, recipients }) =>
				each(sql, recipients, ({ to_key }) => findPerson(sql, to_key, list_id)),
			),
		() => openSuppressions(sql, now),
	]);
	const refused = new Map<Uuid, RowOutcome>();
	for (const [at, { submission }] of distinct.entries()) {
		const refusal = refusals[at] ?? null;
		if (refusal !== null) refused.set(submission.id, refusal);
	}
	const fresh = distinct.filter(({ submission: { id } }) => !refused.has(id) && !known.has(id));
	const made = await each(sql, fresh, ({ submission }) =>
		insertSubmission(sql, { ...submission, campaign: campaign.id }, campaign),
	);
	for (const [at, { submission }] of fresh.entries()) known.set(submission.id, made[at] ?? 0);
	const groups = requests.map(({ submission, recipients, alike }, request) => {
		const seq = known.get(submission.id);
		if (seq === undefined || refused.has(submission.id)) return [];
		const { list_id, type, context, variables } = submission;
		const staging: Staging = {
			campaign,
			scope: alike,
			submission: { seq, list_id },
			type,
			used: campaign.courier === 'api' ? [] : [...(variables ?? [])],
			context,
			is_strict: campaign.strict_vars === 1,
			reasonsAgainst,
			now: submission.now,
		};
		const email_reason = lists[listIds.indexOf(list_id)]?.email_reason ?? '';
		return recipients.map((recipient, at) => ({
			staging,
			candidate: candidateOf(staging, recipient, people[request]?.[at] ?? null, email_reason),
		}));
	});
	const staged = await stageMessages(sql, groups);
	const outcomes = new Map(requests.map((request, at) => [request, staged[at] ?? []]));
	return stagedRows(
		{ rows, now, ...batch },
		rows.map((row) => {
			if (row.kind !== 'request') return [];
			const refusal = refused.get(row.submission.id);
			return refusal === undefined ? (outcomes.get(row) ?? []) : [refusal];
		}),
	);
}

async function refusalOf(
	sql: Sql,
	{ courier, strict_vars }: CampaignRow,
	{ submission }: Request,
	seen: Seen,
): Promise<RowOutcome | null> {
	if (courier === 'smtp') {
		const [first] = listFieldErrors((await checkParts(sql, submission, seen)).errors);
		return first === undefined
			? null
			: { kind: 'rejected', code: 'invalid', error: `${first.path}: ${first.message}` };
	}
	// The service fills in built-in variables, so they do not count as missing.
	const builtIn: readonly string[] = builtInVariables;
	const { variables, context } = submission;
	const missing = missingVariables({}, variables, context).filter((name) => !builtIn.includes(name));
	if (strict_vars === 0 || missing.length === 0) return null;
	return { kind: 'rejected', code: 'missing_variable', error: noValueText(missing) };
}

async function knownSubmissions(sql: Sql, requests: readonly Request[]): Promise<Map<Uuid, number>> {
	const rows = await sql.tuples<[Uuid, number]>(
		`SELECT s.id, s.seq
		FROM ${sql.dialect.table({ submission: 'TEXT' }, 'asked')}
		CROSS JOIN submissions s
		WHERE s.id = asked.submission`,
		[JSON.stringify(requests.map(({ submission: { id } }) => ({ submission: id })))],
	);
	return new Map(rows);
}

export async function addPeople(
	sql: Sql,
	campaign: CampaignRow,
	{ list_id, part, people, now }: Omit<ListedPeople, 'campaign'>,
): Promise<PeopleAck> {
	const { seq } = campaign;
	if (campaign.state !== 'staged') return { kind: 'closed', state: campaign.state };
	const others = 'SELECT 1 FROM campaign_lists WHERE campaign_seq = ? AND list_id <> ?';
	if (campaign.position > 0 || (await exists(sql, others, [seq, list_id]))) return { kind: 'other_rows' };
	const answer = async ({ position, staged, suppressed, rejected }: CampaignRow, isWhole: boolean) => {
		const rejects = await keptRejects(sql, seq, list_id);
		const ack = { position, counts: { staged, suppressed, rejected }, rejects };
		return { kind: 'acknowledged', ack, isWhole } as const;
	};
	if (campaign.is_complete === 1) return await answer(campaign, true);
	const begun = part === 'first' ? await begin(sql, campaign, list_id) : campaign;
	const staged = await stagePeople(sql, begun, people, now);
	logResults(sql, begun, staged);
	const { counts, rejects } = countOf(staged);
	addToCounts(sql, seq, counts);
	const kept = await keptRejects(sql, seq, list_id);
	keepRejects(sql, seq, list_id, [...kept, ...rejects].slice(0, maxListedRejects));
	if (part === 'last') sql.write('UPDATE campaigns SET is_complete = 1 WHERE seq = ?', [seq]);
	const sum = {
		staged: begun.staged + counts.staged,
		suppressed: begun.suppressed + counts.suppressed,
		rejected: begun.rejected + counts.rejected,
	};
	return await answer({ ...begun, ...sum }, part === 'last');
}

async function begin(sql: Sql, campaign: CampaignRow, list_id: number): Promise<CampaignRow> {
	const { seq: campaign_seq } = campaign;
	sql.write('DELETE FROM campaign_results WHERE campaign_seq = ?', [campaign_seq]);
	const staged = 'DELETE FROM messages WHERE lane = ? AND wake_at IS NOT NULL';
	countMessages(sql, -(await sql.run(staged, [campaign_seq])).changes);
	sql.write('UPDATE campaigns SET staged = 0, suppressed = 0, rejected = 0 WHERE seq = ?', [campaign_seq]);
	insertInto(sql, 'campaign_lists', { campaign_seq, list_id, after_id: 0 }, 'ON CONFLICT DO NOTHING');
	keepRejects(sql, campaign_seq, list_id, []);
	return { ...campaign, ...noCounts() };
}

async function stagePeople(
	sql: Sql,
	campaign: CampaignRow,
	people: ListedPeople['people'],
	now: Micros,
): Promise<StagedRow[]> {
	const staging = await readStaging(sql, campaign, now);
	const outcomes = await stageMessages(
		sql,
		people.map(({ to_key, ...person }) => {
			if (to_key === null) return [];
			const unknown = { list_id: null, subscriber_id: null, is_active: null, given: {} };
			return [{ staging, candidate: { person, to_key, ...unknown } }];
		}),
	);
	return people.flatMap(({ email, to_key }, row): StagedRow[] => {
		const invalid = { kind: 'rejected', code: 'invalid', error: `${email}: ${texts.email}` } as const;
		const outcome = to_key === null ? invalid : outcomes[row]?.[0];
		if (outcome === undefined || (outcome.kind === 'rejected' && outcome.code === 'duplicate')) return [];
		return [{ row, line: null, to: email, outcome }];
	});
}
