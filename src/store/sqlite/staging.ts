/** Expands a list into staged messages, beside the data, in bounded slices. */
import type { AcceptCounts, Reject } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import { keepRejects, keptRejects } from './list-rejects.js';
import { findList } from './lists.js';
import {
	type MailingRow,
	maxListedRejects,
	noCounts,
	readFromLists,
	type StagedSlice,
} from './mailing-rows.js';
import { parseRecord, type SubscriberRow, subscriberColumns } from './rows.js';
import type { Sql } from './sql.js';
import { addToCounts, type RowOutcome, readStaging, type Staging, stageMessage } from './stage-message.js';

interface Expansion extends Staging {
	list_id: number;
	email_reason: string;
}

/**
 * Goes on after the last subscriber it has seen, so that adding a list again adds who came since. Counts are those of
 * this slice; rejects are the first of the list, whichever slice or call met them.
 */
export function stageList(
	sql: Sql,
	mailing: MailingRow,
	{ list_id, now, limit }: { list_id: number; now: Micros; limit: number },
): StagedSlice | null {
	const list = findList(sql, list_id);
	if (list === null) return null;
	const expansion: Expansion = {
		...readStaging(sql, mailing, now),
		list_id,
		email_reason: list.email_reason,
	};
	const people = nextPeople(sql, expansion, limit);
	const counts = noCounts();
	const rejects: Reject[] = keptRejects(sql, mailing.seq, list_id);
	const before = rejects.length;
	const first = readFromLists(mailing);
	people.forEach((person, index) => {
		const outcome = stagePerson(sql, expansion, person);
		counts[outcome.kind] += 1;
		if (outcome.kind !== 'rejected' || rejects.length >= maxListedRejects) return;
		rejects.push({ row: first + index, code: outcome.code, error: outcome.error });
	});
	if (rejects.length > before) keepRejects(sql, { mailing_seq: mailing.seq, list_id }, rejects);
	keepPlace(sql, expansion, people.at(-1)?.id ?? null, counts);
	return { position: first + people.length, counts, rejects, isDone: people.length < limit };
}

function nextPeople(sql: Sql, { mailing, list_id }: Expansion, limit: number): SubscriberRow[] {
	const after = sql.number(
		'SELECT coalesce(max(after_id), 0) FROM mailing_lists WHERE mailing_seq = ? AND list_id = ?',
		mailing.seq,
		list_id,
	);
	return sql.all<SubscriberRow>(
		`SELECT ${subscriberColumns}
		FROM subscribers
		WHERE list_id = ? AND id > ? AND is_active = 1
		ORDER BY id
		LIMIT ?`,
		list_id,
		after,
		limit,
	);
}

function stagePerson(sql: Sql, expansion: Expansion, row: SubscriberRow): RowOutcome {
	const { email_reason, list_id } = expansion;
	return stageMessage(sql, expansion, {
		person: { email: row.email, name: row.name, email_reason, meta: parseRecord(row.meta) },
		to_key: row.email_key,
		list_id,
		subscriber_id: row.id,
		given: {},
	});
}

function keepPlace(
	sql: Sql,
	{ mailing, list_id }: Expansion,
	lastId: number | null,
	counts: AcceptCounts,
): void {
	if (lastId === null) return;
	sql.run(
		`INSERT INTO mailing_lists (mailing_seq, list_id, after_id)
		VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET after_id = excluded.after_id`,
		mailing.seq,
		list_id,
		lastId,
	);
	addToCounts(sql, mailing.seq, counts);
}
