/**
 * A campaign's rows in numbered batches: recipients, or send requests. The position, the answer and the results commit
 * with the rows.
 */

import type { AcceptCounts, Ack, Reject } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import type { Uuid } from '../../../api/records.js';
import type { RecipientRow } from '../../../engine/rules/recipient-rows.js';
import type { CampaignAck, RequestedRow } from '../../campaigns.js';
import { parseStored } from '../../errors.js';
import type { Seen } from '../../store.js';
import { findList } from '../lists.js';
import type { Sql } from '../sql.js';
import { stageRequests } from './requests.js';
import { createResultLog } from './results.js';
import { type CampaignRow, noCounts } from './rows.js';
import {
	addToCounts,
	candidateOf,
	findPeople,
	readStaging,
	type StagedRecipient,
	stagedOf,
	stageMessages,
} from './staging.js';

interface Batch extends Seen {
	first: number;
	rows: readonly (RecipientRow | RequestedRow)[];
	now: Micros;
}

/**
 * Runs in one transaction of the caller. A repeated batch gets `stored`, its first answer, without reading its rows;
 * `closed` once the campaign is released or canceled.
 */
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
	sql.write('DELETE FROM campaign_acks WHERE campaign_seq = ?', campaign_seq);
}

/** The answer to the batch that begins at this row. */
export async function findAck(sql: Sql, campaign: Uuid, first: number): Promise<Ack<AcceptCounts> | null> {
	const row = await sql.get<{ ack: string }>(
		'SELECT ack FROM campaign_acks WHERE campaign_seq = (SELECT seq FROM campaigns WHERE id = ?) AND first = ?',
		campaign,
		first,
	);
	// Written by keepAck and by nothing else.
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

/** For each row what became of its recipients: of a rejected row, of the row. */
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
	sql.write('UPDATE campaigns SET position = ? WHERE seq = ?', ack.position, campaign.seq);
	sql.write(
		'INSERT INTO campaign_acks (campaign_seq, first, ack) VALUES (?, ?, ?)',
		campaign.seq,
		campaign.position,
		JSON.stringify(ack),
	);
}
