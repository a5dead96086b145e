/** Who a recipient is: the subscriber behind an address, and what a message keeps of them. */
import type { EmailKey } from '../../api/address.js';
import type { Person } from '../../engine/rules/meta.js';
import { parseRecord } from './rows.js';
import type { Sql } from './sql.js';

export interface KnownPerson extends Person {
	subscriber_id: number;
	list_id: number;
	is_active: boolean;
}

interface PersonRow {
	id: number;
	list_id: number;
	email: string;
	name: string;
	is_active: number;
	meta: string;
	email_reason: string;
}

/**
 * The subscriber of the given list; without a list, the only one with the address. An address in several lists is
 * nobody in particular: unsubscribing then acts on all of them.
 */
export function findPerson(sql: Sql, address: EmailKey, list_id: number | null): KnownPerson | null {
	const [row, another] = sql.all<PersonRow>(
		// subscribers_by_key (email_key, list_id)
		`SELECT s.id, s.list_id, s.email, s.name, s.is_active, s.meta, l.email_reason
		FROM subscribers s
		JOIN lists l ON l.id = s.list_id
		WHERE s.email_key = ? AND (? IS NULL OR s.list_id = ?)
		LIMIT 2`,
		address,
		list_id,
		list_id,
	);
	if (row === undefined || another !== undefined) return null;
	const { id, name, email, email_reason } = row;
	const is_active = row.is_active === 1;
	const meta = parseRecord(row.meta);
	return { subscriber_id: id, list_id: row.list_id, email, name, email_reason, is_active, meta };
}
