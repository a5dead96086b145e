/** One address of a mailing that was put, not found in a list: who it is, and what came of it. */
import { findPerson } from './recipients.js';
import type { Sql } from './sql.js';
import { type RowOutcome, type Staging, stageMessage } from './stage-message.js';

/** One recipient of a row, and what came of it. */
export interface StagedRecipient {
	to: string;
	outcome: RowOutcome;
}

/** What the address is known as decides whether it gets the mailing, and fills what the row leaves open. */
export function stageRecipient(
	sql: Sql,
	staging: Staging,
	{
		to,
		to_key,
		context,
		email_reason,
	}: {
		to: string;
		to_key: string;
		context: Readonly<Record<string, string>>;
		/** Of the mailing's list, for somebody who is not in it. */
		email_reason: string;
	},
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
