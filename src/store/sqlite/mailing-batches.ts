/** A mailing's recipients in numbered batches; the position and the answer commit with the rows. */
import type { AcceptCounts, Ack, Reject } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import type { MailingAck, RecipientRow } from '../store.js';
import { findList } from './lists.js';
import { type MailingRow, noCounts } from './mailing-rows.js';
import { findPerson } from './recipients.js';
import type { Sql } from './sql.js';
import { addToCounts, type RowOutcome, readStaging, type Staging, stageMessage } from './stage-message.js';

interface Batch {
	first: number;
	rows: readonly RecipientRow[];
	now: Micros;
}

export function putBatch(sql: Sql, mailing: MailingRow, { first, rows, now }: Batch): MailingAck {
	if (mailing.state !== 'staged') return { kind: 'closed', state: mailing.state };
	const stored = findAck(sql, mailing.seq, first);
	if (stored !== null) return { kind: 'acknowledged', ack: stored };
	if (first !== mailing.position) return { kind: 'gap', position: mailing.position };
	const ack = stageRows(sql, readStaging(sql, mailing, now), rows);
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

function stageRows(sql: Sql, staging: Staging, rows: readonly RecipientRow[]): Ack<AcceptCounts> {
	const first = staging.mailing.position;
	const { list_id } = staging.submission;
	const email_reason = list_id === null ? '' : (findList(sql, list_id)?.email_reason ?? '');
	const counts = noCounts();
	const rejects: Reject[] = [];
	rows.forEach((row, index) => {
		const outcome = row.kind === 'rejected' ? row : stageRecipient(sql, staging, { ...row, email_reason });
		counts[outcome.kind] += 1;
		if (outcome.kind !== 'rejected') return;
		rejects.push({ row: first + index, code: outcome.code, error: outcome.error });
	});
	return { position: first + rows.length, counts, rejects };
}

function stageRecipient(
	sql: Sql,
	staging: Staging,
	{
		to,
		to_key,
		context,
		email_reason,
	}: Extract<RecipientRow, { kind: 'recipient' }> & { email_reason: string },
): RowOutcome {
	const { type, list_id } = staging.submission;
	const known = findPerson(sql, to_key, list_id);
	// Somebody made inactive by hand has no suppression, but the lease would cancel the message: it is not to be counted.
	if (type === 'BULK' && known?.is_active === false) return { kind: 'suppressed' };
	return stageMessage(sql, staging, {
		person: {
			email: to,
			name: known?.name ?? '',
			email_reason: known?.email_reason ?? email_reason,
			meta: known?.meta ?? {},
		},
		to_key,
		list_id: known?.list_id ?? list_id,
		subscriber_id: known?.subscriber_id ?? null,
		given: context,
	});
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
