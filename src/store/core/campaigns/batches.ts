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
import { column, each, exists, insertInto, parseStored, type Sql } from '../sql.js';
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
	// Store no answer for an empty batch: the next batch has the same position and would get that answer.
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

type Recipient = { to: string; to_key: string; context?: Candidate['given'] };

function findPeople(sql: Sql, list_id: number | null, recipients: readonly Recipient[]) {
	return each(sql, recipients, ({ to_key }) => findPerson(sql, to_key, list_id));
}

function candidatesOf(
	staging: Staging,
	recipients: readonly Recipient[],
	people: readonly (KnownPerson | null)[] = [],
) {
	return recipients.map(({ to, to_key, context: given = {} }, at) => {
		const { campaign, submission, email_reason } = staging;
		const known = people[at] ?? null;
		const { name = campaign.courier === 'api' ? null : '', meta = {} } = known ?? {};
		const person = { email: to, name, email_reason: known?.email_reason ?? email_reason, meta };
		const { list_id = submission.list_id, subscriber_id = null, is_active = null } = known ?? {};
		return { staging, candidate: { person, to_key, list_id, subscriber_id, is_active, given } };
	});
}

async function stageRecipients(sql: Sql, campaign: CampaignRow, batch: Batch): Promise<StagedRow[]> {
	const staging = await readStaging(sql, campaign, batch.now);
	const groups = batch.rows.map((row) => (row.kind === 'recipient' ? [row] : []));
	const people = await each(sql, groups, (group) => findPeople(sql, staging.submission.list_id, group));
	const candidates = groups.map((group, at) => candidatesOf(staging, group, people[at]));
	return stagedRows(batch, await stageMessages(sql, candidates));
}

type Request = Extract<RequestedRow, { kind: 'request' }>;

async function stageRequests(sql: Sql, campaign: CampaignRow, batch: Batch): Promise<StagedRow[]> {
	const requests = batch.rows.flatMap((row) => (row.kind === 'request' ? [row] : []));
	const distinct = [...new Map(requests.map((row) => [row.submission.id, row])).values()];
	const [reasonsAgainst, prepared, people] = await sql.together([
		() => openSuppressions(sql, batch.now),
		() => each(sql, distinct, (request) => prepare(sql, campaign, request, batch)),
		() =>
			each(sql, requests, ({ submission, recipients }) => findPeople(sql, submission.list_id, recipients)),
	]);
	const of = new Map(distinct.map(({ submission: { id } }, at) => [id, prepared[at]]));
	const candidates = requests.flatMap(({ submission: { id }, recipients }, at) => {
		const made = of.get(id);
		if (made === undefined || 'kind' in made) return [];
		return [candidatesOf({ ...made, reasonsAgainst }, recipients, people[at])];
	});
	const staged = (await stageMessages(sql, candidates)).values();
	const outcomes = batch.rows.map((row): RowOutcome[] => {
		const made = row.kind === 'request' ? of.get(row.submission.id) : undefined;
		if (made === undefined) return [];
		return 'kind' in made ? [made] : (staged.next().value ?? []);
	});
	return stagedRows(batch, outcomes);
}

async function prepare(
	sql: Sql,
	campaign: CampaignRow,
	{ submission, alike: scope }: Request,
	seen: Seen,
): Promise<Omit<Staging, 'reasonsAgainst'> | RowOutcome> {
	const { id, list_id, type, context, variables, now } = submission;
	const isCalls = campaign.courier === 'api';
	const is_strict = campaign.strict_vars === 1;
	const [{ errors, list }, [known]] = await sql.together([
		async () => (isCalls ? { errors: {}, list: null } : await checkParts(sql, submission, seen)),
		() => column<number>(sql, 'SELECT seq FROM submissions WHERE id = ?', [id]),
	]);
	const [first] = listFieldErrors(errors);
	if (first !== undefined)
		return { kind: 'rejected', code: 'invalid', error: `${first.path}: ${first.message}` };
	// The send API fills in built-in variables, so they do not count as missing.
	const builtIn: readonly string[] = builtInVariables;
	const all = isCalls && is_strict ? missingVariables({}, variables, context) : [];
	const missing = all.filter((name) => !builtIn.includes(name));
	if (missing.length > 0) return { kind: 'rejected', code: 'missing_variable', error: noValueText(missing) };
	const seq = known ?? (await insertSubmission(sql, { ...submission, campaign: campaign.id }, campaign));
	return {
		...{ campaign, scope, submission: { seq, list_id }, type, context, is_strict, now },
		email_reason: list?.email_reason ?? '',
		used: isCalls ? [] : [...(variables ?? [])],
	};
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
	const isWhole = campaign.is_complete === 1;
	const begun = part === 'first' && !isWhole ? await begin(sql, campaign, list_id) : campaign;
	const staged = isWhole ? [] : await stagePeople(sql, begun, people, now);
	logResults(sql, begun, staged);
	const { counts, rejects } = countOf(staged);
	const kept = [...(await keptRejects(sql, seq, list_id)), ...rejects].slice(0, maxListedRejects);
	if (!isWhole) {
		addToCounts(sql, seq, counts);
		keepRejects(sql, seq, list_id, kept);
		if (part === 'last') sql.write('UPDATE campaigns SET is_complete = 1 WHERE seq = ?', [seq]);
	}
	const sum = {
		staged: begun.staged + counts.staged,
		suppressed: begun.suppressed + counts.suppressed,
		rejected: begun.rejected + counts.rejected,
	};
	const ack = { position: campaign.position, counts: sum, rejects: kept };
	return { kind: 'acknowledged', ack, isWhole: isWhole || part === 'last' };
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
