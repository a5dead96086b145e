/** What stands against a row of an import: suppressions, and the reason that the row itself gives. */
import { importedReason, type SuppressionReason } from '../../../api/suppressions.js';
import type { ImportRow } from '../../../engine/rules/import-rows.js';
import { changeActivation } from '../../../engine/rules/subscription.js';
import { suppressedList } from '../../../engine/rules/suppressions.js';
import { liftSuppressions, stopMail } from '../recipients.js';
import type { Sql } from '../sql.js';
import { findLasting, findSuppressions } from '../suppressions.js';
import type { ImportRun } from './run.js';

export interface Standing {
	kept: readonly SuppressionReason[];
	lifted: readonly SuppressionReason[];
}

export const nothingStands: Standing = { kept: [], lifted: [] };

/** The suppressions that stand against a row: `reactivate` lifts what `is_active: true` would lift. */
export async function suppressionsAfterLift(sql: Sql, run: ImportRun, row: ImportRow): Promise<Standing> {
	if (!run.hasSuppressions) return nothingStands;
	const mail = { address: row.email_key, list_id: run.spec.list_id };
	const reasons = await findSuppressions(sql, mail, run.now);
	if (reasons.length === 0) return nothingStands;
	const kept = await findLasting(sql, mail);
	if (!run.spec.reactivate || row.is_active === false || row.disable_reason !== null) {
		return { kept, lifted: [] };
	}
	const stored = { is_active: false, disable_reason: null };
	const change = changeActivation({ stored, wanted: true, isMoved: false, reasons, lasting: kept });
	return change.kind === 'refused' ? { kept, lifted: [] } : { kept: [], lifted: change.lift };
}

/** Lifts them. */
export async function lift(
	sql: Sql,
	{ spec, now }: ImportRun,
	row: ImportRow,
	reasons: Standing['lifted'],
): Promise<void> {
	await liftSuppressions(sql, { address: row.email_key, list_id: spec.list_id }, { reasons, now });
}

/**
 * A reason of the file stops mail as if it had happened here: the row is already inactive, those of other lists follow.
 */
export async function impose(sql: Sql, run: ImportRun, row: ImportRow): Promise<void> {
	const reason = importedReason(row.disable_reason);
	if (reason === null) return;
	const list_id = suppressedList(reason, run.spec.list_id, run.unsubscribeScope);
	await stopMail(sql, { address: row.email_key, list_id, reason, source: 'IMPORT', now: run.now });
	run.hasSuppressions = true;
}
