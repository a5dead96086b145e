/** A row of a mailing of send requests: its submission, once for requests that are alike, and its recipients. */
import { complaintsOf } from '../../engine/rules/complaints.js';
import { noSuch, unverifiedSender } from '../../engine/rules/errors.js';
import type { RequestedRow } from '../mailings.js';
import { findList } from './lists.js';
import type { MailingRow } from './mailing-rows.js';
import { findSender } from './senders.js';
import type { Sql } from './sql.js';
import type { Staging } from './stage-message.js';
import { type StagedRecipient, stageRecipient } from './stage-recipient.js';
import { insertSubmission } from './submissions.js';

type Request = Extract<RequestedRow, { kind: 'request' }>;

/** Each recipient with what came of it; a request that is refused is one rejected row of all its addresses. */
export function stageRequest(sql: Sql, mailing: MailingRow, row: Request): StagedRecipient[] {
	const { submission, recipients } = row;
	const refusal = refusalOf(sql, row);
	if (refusal !== null) {
		const to = recipients.map((recipient) => recipient.to).join(', ');
		return [{ to, outcome: { kind: 'rejected', code: 'invalid', error: refusal } }];
	}
	const { list_id, type, context, variables, now } = submission;
	const staging: Staging = {
		mailing,
		scope: submission.id,
		submission: { seq: submissionSeq(sql, mailing, row), type, list_id },
		used: [...variables],
		context,
		now,
	};
	const email_reason = list_id === null ? '' : (findList(sql, list_id)?.email_reason ?? '');
	return recipients.map(({ to, to_key }) => ({
		to,
		outcome: stageRecipient(sql, staging, { to, to_key, context: {}, email_reason }),
	}));
}

/** What the stored state says against it, in the words of a send call. */
function refusalOf(sql: Sql, { submission: { from_key, list_id } }: Request): string | null {
	const errors = {
		...(findSender(sql, from_key) === null && unverifiedSender),
		...(list_id !== null && findList(sql, list_id) === null && noSuch('list_id', list_id)),
	};
	const [first] = complaintsOf(errors);
	return first === undefined ? null : `${first.path}: ${first.message}`;
}

function submissionSeq(sql: Sql, mailing: MailingRow, { submission }: Request): number {
	const known = sql.get<{ seq: number }>('SELECT seq FROM submissions WHERE id = ?', submission.id);
	return known?.seq ?? insertSubmission(sql, { ...submission, campaign: mailing.id }, mailing.seq);
}
