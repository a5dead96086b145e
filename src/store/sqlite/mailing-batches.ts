/** A mailing's rows in numbered batches; the position, the answer and the results commit with the rows. */
import type { AcceptCounts, Ack, Reject } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import type { MailingAck, RecipientRow, RequestedRow } from '../mailings.js';
import { findList } from './lists.js';
import { createResultLog } from './mailing-results.js';
import { type MailingRow, noCounts } from './mailing-rows.js';
import { stageRequest } from './request-rows.js';
import type { Sql } from './sql.js';
import { addToCounts, readStaging } from './stage-message.js';
import { type StagedRecipient, stageRecipient } from './stage-recipient.js';

interface Batch {
	first: number;
	rows: readonly (RecipientRow | RequestedRow)[];
	now: Micros;
}

/**
 * In one transaction of the caller. A batch put again is answered as the first time, without a look at its rows;
 * `closed` once the mailing is released or canceled.
 */
export function putBatch(sql: Sql, mailing: MailingRow, { first, rows, now }: Batch): MailingAck {
	if (mailing.state !== 'staged') return { kind: 'closed', state: mailing.state };
	const stored = findAck(sql, mailing.seq, first);
	if (stored !== null) return { kind: 'acknowledged', ack: stored };
	if (first !== mailing.position) return { kind: 'gap', position: mailing.position };
	if (mailing.is_complete === 1 && rows.length > 0) return { kind: 'closed', state: 'complete' };
	const wanted = mailing.requests === 1 ? 'request' : 'recipient';
	if (rows.some(({ kind }) => kind !== 'rejected' && kind !== wanted)) return { kind: 'other_rows' };
	const ack = stageRows(sql, mailing, { first, rows, now });
	// An empty batch moves nothing: the next one has the same number and must not get its answer.
	if (rows.length > 0) keepAck(sql, mailing, ack);
	return { kind: 'acknowledged', ack };
}

/** Once nothing may be put any more, nobody asks for them. */
export function dropAcks(sql: Sql, mailing_seq: number): void {
	sql.run('DELETE FROM mailing_acks WHERE mailing_seq = ?', mailing_seq);
}

function findAck(sql: Sql, mailing_seq: number, first: number): Ack<AcceptCounts> | null {
	const row = sql.get<{ ack: string }>(
		'SELECT ack FROM mailing_acks WHERE mailing_seq = ? AND first = ?',
		mailing_seq,
		first,
	);
	// Written by keepAck and by nothing else.
	return row === undefined ? null : (JSON.parse(row.ack) as Ack<AcceptCounts>);
}

function stageRows(sql: Sql, mailing: MailingRow, { first, rows, now }: Batch): Ack<AcceptCounts> {
	const stage = stagerOf(sql, mailing, now);
	const counts = noCounts();
	const rejects: Reject[] = [];
	const log = createResultLog(sql, mailing);
	rows.forEach((row, index) => {
		for (const { to, outcome } of stage(row)) {
			counts[outcome.kind] += 1;
			log.add({ line: row.line ?? null, to, outcome });
			if (outcome.kind !== 'rejected') continue;
			rejects.push({ row: first + index, code: outcome.code, error: outcome.error });
		}
	});
	return { position: first + rows.length, counts, rejects };
}

/** Stages one row: all its recipients, or what is wrong with it. Made once a batch. */
function stagerOf(
	sql: Sql,
	mailing: MailingRow,
	now: Micros,
): (row: RecipientRow | RequestedRow) => StagedRecipient[] {
	// A mailing of requests has no content of its own to read.
	const staging = mailing.requests === 1 ? null : readStaging(sql, mailing, now);
	const list_id = staging?.submission.list_id ?? null;
	const email_reason = list_id === null ? '' : (findList(sql, list_id)?.email_reason ?? '');
	return (row) => {
		switch (row.kind) {
			case 'rejected':
				return [{ to: row.to ?? '', outcome: row }];
			case 'request':
				return stageRequest(sql, mailing, row);
			case 'recipient':
				if (staging === null) throw new Error(`mailing ${mailing.seq} takes requests`);
				return [{ to: row.to, outcome: stageRecipient(sql, staging, { ...row, email_reason }) }];
		}
	};
}

function keepAck(sql: Sql, mailing: MailingRow, ack: Ack<AcceptCounts>): void {
	addToCounts(sql, mailing.seq, ack.counts);
	sql.run('UPDATE mailings SET position = ? WHERE seq = ?', ack.position, mailing.seq);
	sql.run(
		'INSERT INTO mailing_acks (mailing_seq, first, ack) VALUES (?, ?, ?)',
		mailing.seq,
		mailing.position,
		JSON.stringify(ack),
	);
}
