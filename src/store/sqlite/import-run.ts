/** One batch of an import, row by row: create, update, leave or refuse a subscriber. */
import type { ImportSpec } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import { maxMetaBytes } from '../../api/subscribers.js';
import type { SuppressionReason } from '../../api/suppressions.js';
import { erasedMessage } from '../../engine/rules/erasure.js';
import { duplicateAddress } from '../../engine/rules/errors.js';
import { type ImportRow, importedActivation, reimportedActivation } from '../../engine/rules/import-rows.js';
import { changeMeta } from '../../engine/rules/meta.js';
import type { Activation } from '../../engine/rules/subscription.js';
import { changeActivation } from '../../engine/rules/subscription.js';
import { openErased } from './erased.js';
import { knownVariables } from './fields.js';
import { counterMove } from './lists.js';
import { flag, parseRecord, type SubscriberRow, subscriberColumns } from './rows.js';
import type { Sql } from './sql.js';
import { insertSubscriber } from './subscribers.js';
import { findLasting, findSuppressions, hasSuppressions, liftSuppressions } from './suppressions.js';

/** What the rows of one transaction share. `moved` gathers what the list's counters change by, once for all. */
export interface ImportRun {
	seq: number;
	spec: ImportSpec;
	now: Micros;
	known: ReadonlySet<string>;
	/** Asked once: most databases have none, and a look-up a row costs a tenth of the import. */
	hasSuppressions: boolean;
	/** `null`: nobody was erased, so nobody is looked up. */
	isErased: ReturnType<typeof openErased>;
	moved: { active: number; inactive: number };
}

export type RowOutcome =
	| { kind: 'created' | 'updated' | 'unchanged' }
	| { kind: 'duplicate' | 'rejected'; code: string; error: string };

/** Begins one transaction of the import `seq`: asks what its rows would else ask for each. */
export function openImportRun(
	sql: Sql,
	{ seq, spec, now }: Pick<ImportRun, 'seq' | 'spec' | 'now'>,
): ImportRun {
	return {
		seq,
		spec,
		now,
		known: knownVariables(sql),
		hasSuppressions: hasSuppressions(sql),
		isErased: openErased(sql),
		moved: { active: 0, inactive: 0 },
	};
}

/** What a row is put with besides itself. */
export interface RowPlace {
	/** Its own, if it is new. */
	id: number;
	/** Variables of its batch that no field defines, in the order of the columns; mostly none. */
	unknown: readonly string[];
}

/** Puts a row that is one by itself: what is stored decides what becomes of it. A refusal changes nothing. */
export function importRow(sql: Sql, run: ImportRun, row: ImportRow, place: RowPlace): RowOutcome {
	const unknown = place.unknown.length === 0 && !row.has_meta_cell ? undefined : findUnknown(run, row);
	if (unknown !== undefined) {
		return { kind: 'rejected', code: 'unknown_variable', error: `meta: Unknown variable: ${unknown}.` };
	}
	if (run.isErased?.(row.email_key)) return erased;
	return create(sql, run, row, place.id) ? { kind: 'created' } : meetExisting(sql, run, row);
}

function findUnknown({ known }: ImportRun, row: ImportRow): string | undefined {
	return Object.keys(parseRecord(row.meta_json)).find((variable) => !known.has(variable));
}

// The unique index decides in one statement whether it is new, which it mostly is.
function create(sql: Sql, run: ImportRun, row: ImportRow, id: number): boolean {
	const reasons = suppressionsAfterLift(sql, run, row);
	const activation = importedActivation(row, reasons.kept);
	// Spelled out: spreading `activation` made this literal a quarter of an import's time.
	const isNew = insertSubscriber(sql, {
		is_active: activation.is_active,
		disable_reason: activation.disable_reason,
		id,
		list_id: run.spec.list_id,
		email: row.email,
		email_key: row.email_key,
		email_folded: row.email_folded,
		name: row.name ?? '',
		meta: row.meta_json,
		source: 'IMPORT',
		created_at: run.now,
		import_seq: run.seq,
	});
	if (!isNew) return false;
	liftSuppressions(sql, row.email_key, reasons.lifted);
	move(run, null, activation.is_active);
	return true;
}

interface Standing {
	kept: readonly SuppressionReason[];
	lifted: readonly SuppressionReason[];
}

const nothingStands: Standing = { kept: [], lifted: [] };

/** Which suppressions stand against a row: `reactivate` lifts what `is_active: true` by hand would lift. */
function suppressionsAfterLift(sql: Sql, run: ImportRun, row: ImportRow): Standing {
	if (!run.hasSuppressions) return nothingStands;
	const reasons = findSuppressions(sql, row.email_key, run.now);
	if (reasons.length === 0) return nothingStands;
	const kept = findLasting(sql, row.email_key);
	if (!run.spec.reactivate || row.is_active === false || row.disable_reason !== null) {
		return { kept, lifted: [] };
	}
	const stored = { is_active: false, disable_reason: null };
	const change = changeActivation({ stored, wanted: true, isMoved: false, reasons, lasting: kept });
	return change.kind === 'refused' ? { kept, lifted: [] } : { kept: [], lifted: change.lift };
}

function meetExisting(sql: Sql, run: ImportRun, row: ImportRow): RowOutcome {
	const stored = sql.get<SubscriberRow>(
		`SELECT ${subscriberColumns} FROM subscribers WHERE email_key = ? AND list_id = ?`,
		row.email_key,
		run.spec.list_id,
	);
	if (stored === undefined) throw new Error('an address is taken by nobody');
	if (stored.import_seq === run.seq) {
		// Joined: a template would keep the row's text alive as long as the error is.
		const error = ['email: ', row.email, ' stands in this import already.'].join('');
		return { kind: 'duplicate', code: 'duplicate', error };
	}
	switch (run.spec.on_conflict) {
		case 'error':
			return { kind: 'rejected', code: 'unique', error: `email: ${duplicateMessage}` };
		case 'skip':
			markSeen(sql, run, stored.id);
			return { kind: 'unchanged' };
		case 'update':
			return update(sql, run, row, stored);
	}
}

const duplicateMessage = Object.values(duplicateAddress)
	.flatMap((errors) => (Array.isArray(errors) ? errors : []))
	.map((error: { message: string }) => error.message)
	.join(' ');

function update(sql: Sql, run: ImportRun, row: ImportRow, stored: SubscriberRow): RowOutcome {
	const before: Activation = { is_active: stored.is_active === 1, disable_reason: stored.disable_reason };
	const reasons = suppressionsAfterLift(sql, run, row);
	const after = reimportedActivation(before, row, {
		reactivate: run.spec.reactivate,
		isBound: reasons.kept.length > 0,
	});
	const meta = mergedMeta(stored.meta, row);
	if (isTooLarge(meta)) return tooLarge;
	liftSuppressions(sql, row.email_key, reasons.lifted);
	const name = row.name ?? stored.name;
	const isSame =
		name === stored.name &&
		meta === stored.meta &&
		after.is_active === before.is_active &&
		after.disable_reason === before.disable_reason;
	if (isSame) {
		markSeen(sql, run, stored.id);
		return { kind: 'unchanged' };
	}
	sql.run(
		`UPDATE subscribers
		SET name = ?, meta = ?, is_active = ?, disable_reason = ?, import_seq = ?
		WHERE id = ?`,
		name,
		meta,
		flag(after.is_active),
		after.disable_reason,
		run.seq,
		stored.id,
	);
	move(run, before.is_active, after.is_active);
	return { kind: 'updated' };
}

function mergedMeta(stored: string, row: ImportRow): string {
	if (row.meta_json === '{}') return stored;
	return JSON.stringify(changeMeta(parseRecord(stored), { merge_meta: parseRecord(row.meta_json) }));
}

// Even where nothing changes: the same address further down is a duplicate, not another unchanged row.
function markSeen(sql: Sql, run: ImportRun, id: number): void {
	sql.run('UPDATE subscribers SET import_seq = ? WHERE id = ?', run.seq, id);
}

function move(run: ImportRun, before: boolean | null, after: boolean): void {
	const { active, inactive } = counterMove(before, after);
	run.moved.active += active;
	run.moved.inactive += inactive;
}

const erased: RowOutcome = { kind: 'rejected', code: 'erased', error: `email: ${erasedMessage}` };

const tooLarge: RowOutcome = {
	kind: 'rejected',
	code: 'max_length',
	error: `meta: Ensure this field has no more than ${maxMetaBytes} bytes.`,
};

function isTooLarge(json: string): boolean {
	// Three octets a UTF-16 unit at most: short texts need no count.
	return json.length * 3 > maxMetaBytes && Buffer.byteLength(json) > maxMetaBytes;
}
