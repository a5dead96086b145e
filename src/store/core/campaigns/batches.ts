import type { AcceptCounts } from '../../../api/campaigns.js';
import type { Ack, Reject } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import { listFieldErrors } from '../../../api/errors.js';
import { builtInVariables } from '../../../api/inputs.js';
import type { Uuid } from '../../../api/records.js';
import { noValueText } from '../../../api/refusals.js';
import { texts } from '../../../api/schema/texts.js';
import type { RecipientRow } from '../../../engine/rules/campaign-rows.js';
import { noSuch, unverifiedSender } from '../../../engine/rules/errors.js';
import { missingVariables } from '../../../engine/rules/meta.js';
import type { CampaignAck, ListedPeople, ListedPerson, PeopleAck, RequestedRow } from '../../campaigns.js';
import { parseStored } from '../../errors.js';
import type { Seen } from '../../store.js';
import { attachmentErrors } from '../attachments.js';
import { findList } from '../lists.js';
import { findSender } from '../senders.js';
import { each, exists, type Sql } from '../sql.js';
import { countMessages, insertSubmission } from '../submissions.js';
import { openSuppressions } from '../suppressions.js';
import { createResultLog } from './results.js';
import { type CampaignRow, maxListedRejects, noCounts } from './rows.js';
import {
	addToCounts,
	candidateOf,
	findPeople,
	keepRejects,
	keptRejects,
	type RowOutcome,
	readStaging,
	type StagedRecipient,
	type Staging,
	stagedOf,
	stageMessages,
} from './staging.js';

interface Batch extends Seen {
	first: number;
	rows: readonly (RecipientRow | RequestedRow)[];
	now: Micros;
}

export async function putBatch(
	sql: Sql,
	campaign: CampaignRow,
	{ first, rows, now, stored, ...seen }: Batch & { stored: Ack<AcceptCounts> | null },
): Promise<CampaignAck> {
	if (campaign.state !== 'staged') return { kind: 'closed', state: campaign.state };
	if (stored !== null) return { kind: 'acknowledged', ack: stored };
	if (first !== campaign.position) return { kind: 'gap', position: campaign.position };
	if (campaign.is_complete === 1 && rows.length > 0) return { kind: 'closed', state: 'complete' };
	const wanted = campaign.requests === 1 ? 'request' : 'recipient';
	if (rows.some(({ kind }) => kind !== 'rejected' && kind !== wanted)) return { kind: 'other_rows' };
	const ack = await stageRows(sql, campaign, { first, rows, now, ...seen });
	// An empty batch does not move the position: the next batch has the same number and must not get its answer.
	if (rows.length > 0) keepAck(sql, campaign, ack);
	return { kind: 'acknowledged', ack };
}

/** Once the campaign takes no rows, its answers are never read again. */
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

async function stageRows(
	sql: Sql,
	campaign: CampaignRow,
	{ first, rows, now, ...seen }: Batch,
): Promise<Ack<AcceptCounts>> {
	const staged =
		campaign.requests === 1
			? await stageRequests(sql, campaign, { rows, now, ...seen })
			: await stageRecipients(sql, campaign, { rows, now });
	const counts = noCounts();
	const rejects: Reject[] = [];
	const log = createResultLog(sql, campaign);
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

type Rows = Pick<Batch, 'rows' | 'now'>;

async function stageRecipients(
	sql: Sql,
	campaign: CampaignRow,
	{ rows, now }: Rows,
): Promise<StagedRecipient[][]> {
	const staging = await readStaging(sql, campaign, now);
	const { list_id } = staging.submission;
	const valid = rows.map((row) => (row.kind === 'recipient' ? [row] : []));
	const [email_reason, known] = await sql.together([
		() => reasonOf(sql, campaign, list_id),
		() =>
			findPeople(
				sql,
				valid.flat().map(({ to_key }) => ({ to_key, list_id })),
			),
	]);
	const outcomes = await stageMessages(
		sql,
		valid.flat().map((row, at) => ({
			staging,
			candidate: candidateOf(staging, { ...row, email_reason }, known[at] ?? null),
		})),
	);
	let next = 0;
	return rows.map((row, at) => {
		const own = outcomes.slice(next, next + (valid[at]?.length ?? 0));
		next += own.length;
		return stagedOf(row, own);
	});
}

/** Why an address that is not in the list is skipped; null: the service decides. */
async function reasonOf(sql: Sql, { courier }: CampaignRow, list_id: number | null): Promise<string | null> {
	if (courier === 'api') return null;
	return list_id === null ? '' : ((await findList(sql, list_id))?.email_reason ?? '');
}

function keepAck(sql: Sql, campaign: CampaignRow, ack: Ack<AcceptCounts>): void {
	addToCounts(sql, campaign.seq, ack.counts);
	sql.write('UPDATE campaigns SET position = ? WHERE seq = ?', [ack.position, campaign.seq]);
	sql.write('INSERT INTO campaign_acks (campaign_seq, first, ack) VALUES (?, ?, ?)', [
		campaign.seq,
		campaign.position,
		JSON.stringify(ack),
	]);
}

type Request = Extract<RequestedRow, { kind: 'request' }>;

/**
 * Stages each recipient; a refused request is one rejected row with all its addresses. Requests that are alike share a
 * submission, which is made once.
 */
export async function stageRequests(
	sql: Sql,
	campaign: CampaignRow,
	{ rows, now, ...seen }: Seen & { rows: readonly (RecipientRow | RequestedRow)[]; now: Micros },
): Promise<StagedRecipient[][]> {
	const requests = rows.flatMap((row) => (row.kind === 'request' ? [row] : []));
	const distinct = [...new Map(requests.map((row) => [row.submission.id, row])).values()];
	const [refused, known, lists, people, reasonsAgainst] = await sql.together([
		() => refusalsOf(sql, campaign, { requests: distinct, seen }),
		() => knownSubmissions(sql, distinct),
		() => listReasons(sql, distinct),
		() =>
			findPeople(
				sql,
				requests.flatMap(({ submission: { list_id }, recipients }) =>
					recipients.map(({ to_key }) => ({ to_key, list_id })),
				),
			),
		() => openSuppressions(sql, now),
	]);
	const wanted = distinct.filter(({ submission: { id } }) => !refused.has(id));
	const seqs = await putSubmissions(sql, campaign, { wanted, known });
	let person = 0;
	const staged = requests.map(({ submission, recipients, alike }) => {
		const own = people.slice(person, person + recipients.length);
		person += recipients.length;
		const seq = seqs.get(submission.id);
		if (seq === undefined || refused.has(submission.id)) return [];
		const { list_id, type, context, variables } = submission;
		const staging: Staging = {
			campaign,
			scope: alike,
			submission: { seq, list_id },
			type,
			// A service fills in what it knows of its subscribers.
			used: campaign.courier === 'api' ? [] : [...(variables ?? [])],
			context,
			is_strict: campaign.strict_vars === 1,
			reasonsAgainst,
			now: submission.now,
		};
		const email_reason = lists.get(list_id) ?? '';
		return recipients.map((recipient, at) => ({
			staging,
			candidate: candidateOf(staging, { ...recipient, context: {}, email_reason }, own[at] ?? null),
		}));
	});
	const outcomes = await stageMessages(sql, staged.flat());
	let [request, next] = [0, 0];
	return rows.map((row) => {
		if (row.kind !== 'request') return stagedOf(row, []);
		const own = outcomes.slice(next, next + (staged[request]?.length ?? 0));
		request += 1;
		next += own.length;
		const refusal = refused.get(row.submission.id);
		if (refusal === undefined) return stagedOf(row, own);
		const to = row.recipients.map((recipient) => recipient.to).join(', ');
		return [{ to, outcome: { kind: 'rejected', ...refusal } }];
	});
}

interface Refusal {
	code: string;
	error: string;
}

async function refusalsOf(
	sql: Sql,
	campaign: CampaignRow,
	{ requests, seen }: { requests: readonly Request[]; seen: Seen },
): Promise<Map<Uuid, Refusal>> {
	const found = await each(sql, requests, async (row) =>
		campaign.courier === 'api' ? lackOf(campaign, row) : await refusalOf(sql, row, seen),
	);
	return new Map(
		requests.flatMap(({ submission: { id } }, at) => {
			const refusal = found[at] ?? null;
			return refusal === null ? [] : [[id, refusal] as const];
		}),
	);
}

async function refusalOf(
	sql: Sql,
	{ submission: { from_key, list_id, content } }: Request,
	seen: Seen,
): Promise<Refusal | null> {
	const [sender, list, attachments] = await sql.together([
		() => findSender(sql, from_key),
		async () => (list_id === null ? null : await findList(sql, list_id)),
		() => attachmentErrors(sql, content.attachments, seen),
	]);
	const errors = {
		...(sender === null && unverifiedSender),
		...(list_id !== null && list === null && noSuch('list_id', list_id)),
		...attachments,
	};
	const [first] = listFieldErrors(errors);
	return first === undefined ? null : { code: 'invalid', error: `${first.path}: ${first.message}` };
}

/** For a request that goes to a service: the service fills in its own fields, so they are not looked up. */
function lackOf(
	{ strict_vars }: CampaignRow,
	{ submission: { variables, context } }: Request,
): Refusal | null {
	const builtIn: readonly string[] = builtInVariables;
	const missing = missingVariables({}, variables, context).filter((name) => !builtIn.includes(name));
	if (strict_vars === 0 || missing.length === 0) return null;
	return {
		code: 'missing_variable',
		error: noValueText(missing),
	};
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

async function listReasons(
	sql: Sql,
	requests: readonly Request[],
): Promise<ReadonlyMap<number | null, string>> {
	const ids = [...new Set(requests.map(({ submission: { list_id } }) => list_id))].filter(
		(id) => id !== null,
	);
	const found = await each(sql, ids, (id) => findList(sql, id));
	return new Map(ids.map((id, at) => [id, found[at]?.email_reason ?? '']));
}

async function putSubmissions(
	sql: Sql,
	campaign: CampaignRow,
	{ wanted, known }: { wanted: readonly Request[]; known: ReadonlyMap<Uuid, number> },
): Promise<ReadonlyMap<Uuid, number>> {
	const fresh = wanted.filter(({ submission: { id } }) => !known.has(id));
	const made = await each(sql, fresh, ({ submission }) =>
		insertSubmission(sql, { ...submission, campaign: campaign.id }, campaign),
	);
	const seqs = new Map<Uuid, number>();
	for (const { submission } of wanted) {
		const seq =
			known.get(submission.id) ?? made[fresh.findIndex((one) => one.submission.id === submission.id)];
		if (seq !== undefined) seqs.set(submission.id, seq);
	}
	return seqs;
}

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
	if (part === 'last') sql.write('UPDATE campaigns SET is_complete = 1 WHERE seq = ?', [campaign.seq]);
	return await answer({ ...begun, ...sumOf(begun, counts) }, part === 'last');
}

export async function isListOpen(sql: Sql, { seq, is_complete, courier }: CampaignRow): Promise<boolean> {
	if (courier !== 'api' || is_complete === 1) return false;
	return await exists(sql, 'SELECT 1 FROM campaign_lists WHERE campaign_seq = ?', [seq]);
}

async function isOfOther(sql: Sql, { seq }: CampaignRow, list_id: number): Promise<boolean> {
	const others = 'SELECT 1 FROM campaign_lists WHERE campaign_seq = ? AND list_id <> ?';
	return await exists(sql, others, [seq, list_id]);
}

/** Nothing was released: what an earlier walk staged is deleted with its results. */
async function begin(
	sql: Sql,
	campaign: CampaignRow,
	{ campaign_seq, list_id }: { campaign_seq: number; list_id: number },
): Promise<CampaignRow> {
	sql.write('DELETE FROM campaign_results WHERE campaign_seq = ?', [campaign_seq]);
	const dropped = await sql.run('DELETE FROM messages WHERE lane = ? AND wake_at IS NOT NULL', [
		campaign_seq,
	]);
	countMessages(sql, -dropped.changes);
	sql.write('UPDATE campaigns SET staged = 0, suppressed = 0, rejected = 0 WHERE seq = ?', [campaign_seq]);
	sql.write(
		'INSERT INTO campaign_lists (campaign_seq, list_id, after_id) VALUES (?, ?, 0) ON CONFLICT DO NOTHING',
		[campaign_seq, list_id],
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
	const valid = people.filter(({ to_key }) => to_key !== null);
	const outcomes = await stageMessages(
		sql,
		valid.map(({ to_key, ...person }) => ({
			staging,
			candidate: {
				person,
				to_key: to_key ?? '',
				list_id: null,
				subscriber_id: null,
				is_active: null,
				given: {},
			},
		})),
	);
	let next = 0;
	for (const [row, person] of people.entries()) {
		const outcome = person.to_key === null ? notAnAddress(person) : outcomes[next];
		if (person.to_key !== null) next += 1;
		// It was staged before.
		if (outcome === undefined || (outcome.kind === 'rejected' && outcome.code === 'duplicate')) continue;
		counts[outcome.kind] += 1;
		log.add({ line: null, to: person.email, outcome });
		if (outcome.kind === 'rejected' && rejects.length < maxListedRejects)
			rejects.push({ row, code: outcome.code, error: outcome.error });
	}
	log.write();
	return { counts, rejects };
}

function notAnAddress({ email }: ListedPerson): RowOutcome {
	return { kind: 'rejected', code: 'invalid', error: `${email}: ${texts.email}` };
}

function sumOf(a: AcceptCounts, b: AcceptCounts): AcceptCounts {
	return {
		staged: a.staged + b.staged,
		suppressed: a.suppressed + b.suppressed,
		rejected: a.rejected + b.rejected,
	};
}
