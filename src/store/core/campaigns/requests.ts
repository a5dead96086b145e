/** Rows of a campaign that are send requests of their own. */

import type { Micros } from '../../../api/datetime.js';
import { listFieldErrors } from '../../../api/errors.js';
import { builtInVariables } from '../../../api/fields.js';
import type { Uuid } from '../../../api/records.js';
import { noValueText } from '../../../api/refusals.js';
import { noSuch, unverifiedSender } from '../../../engine/rules/errors.js';
import { missingVariables } from '../../../engine/rules/meta.js';
import type { RecipientRow } from '../../../engine/rules/recipient-rows.js';
import type { RequestedRow } from '../../campaigns.js';
import type { Seen } from '../../store.js';
import { attachmentErrors } from '../attachments.js';
import { findList } from '../lists.js';
import { findSender } from '../senders.js';
import type { Sql } from '../sql.js';
import { insertSubmission } from '../submissions.js';
import { openSuppressions } from '../suppressions.js';
import type { CampaignRow } from './rows.js';
import {
	candidateOf,
	findPeople,
	type StagedRecipient,
	type Staging,
	stagedOf,
	stageMessages,
} from './staging.js';

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

/** By submission. */
async function refusalsOf(
	sql: Sql,
	campaign: CampaignRow,
	{ requests, seen }: { requests: readonly Request[]; seen: Seen },
): Promise<Map<Uuid, Refusal>> {
	const found = await sql.together(
		requests.map(
			(row) => async () =>
				campaign.courier === 'api' ? lackOf(campaign, row) : await refusalOf(sql, row, seen),
		),
	);
	return new Map(
		requests.flatMap(({ submission: { id } }, at) => {
			const refusal = found[at] ?? null;
			return refusal === null ? [] : [[id, refusal] as const];
		}),
	);
}

/** The refusal by stored state, in the words of a send call. */
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

/** Numbers of submissions that earlier batches made, by id. */
async function knownSubmissions(sql: Sql, requests: readonly Request[]): Promise<Map<Uuid, number>> {
	const rows = await sql.tuples<[Uuid, number]>(
		`SELECT s.id, s.seq
		FROM ${sql.dialect.table({ submission: 'TEXT' }, 'asked')}
		CROSS JOIN submissions s
		WHERE s.id = asked.submission`,
		JSON.stringify(requests.map(({ submission: { id } }) => ({ submission: id }))),
	);
	return new Map(rows);
}

/** Why the subscribers of each list get mail. */
async function listReasons(
	sql: Sql,
	requests: readonly Request[],
): Promise<ReadonlyMap<number | null, string>> {
	const ids = [...new Set(requests.map(({ submission: { list_id } }) => list_id))].filter(
		(id) => id !== null,
	);
	const found = await sql.together(ids.map((id) => async () => await findList(sql, id)));
	return new Map(ids.map((id, at) => [id, found[at]?.email_reason ?? '']));
}

/** The numbers of all that are known then, by id. */
async function putSubmissions(
	sql: Sql,
	campaign: CampaignRow,
	{ wanted, known }: { wanted: readonly Request[]; known: ReadonlyMap<Uuid, number> },
): Promise<ReadonlyMap<Uuid, number>> {
	const fresh = wanted.filter(({ submission: { id } }) => !known.has(id));
	const made = await sql.together(
		fresh.map(
			({ submission }) =>
				async () =>
					await insertSubmission(sql, { ...submission, campaign: campaign.id }, campaign),
		),
	);
	const seqs = new Map<Uuid, number>();
	for (const { submission } of wanted) {
		const seq =
			known.get(submission.id) ?? made[fresh.findIndex((one) => one.submission.id === submission.id)];
		if (seq !== undefined) seqs.set(submission.id, seq);
	}
	return seqs;
}
