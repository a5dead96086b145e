import type { AddressSet } from '../../../api/address-set.js';
import type { ImportBatch, ImportSpec } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import { refusalTexts, unknownVariableText } from '../../../api/refusals.js';
import { type CheckedBatch, type RowTexts, TextReader } from '../../../api/row-texts.js';
import { maxMetaBytes } from '../../../api/subscribers.js';
import { importedReason, type SuppressionReason } from '../../../api/suppressions.js';
import {
	decodeRow,
	type ImportRow,
	importedActivation,
	keyPlace,
	metaVariables,
	type ParsedRow,
	parseImportRows,
	reimportedActivation,
} from '../../../engine/rules/import-rows.js';
import {
	type Activation,
	changeActivation,
	changeMeta,
	duplicateAddress,
	suppressedList,
	type UnsubscribeScope,
} from '../../../engine/rules/subscribers.js';
import { knownVariables } from '../fields.js';
import { counterMove } from '../figures/tally.js';
import { liftSuppressions, stopMail } from '../recipients.js';
import { each, exists, flag, parseRecord, type Sql, type SubscriberRow, subscriberColumns } from '../sql.js';
import { insertSubscribers } from '../subscribers.js';
import {
	findLasting,
	findSuppressions,
	openErased,
	suppressedAmong,
	unsubscribeScope,
} from '../suppressions.js';

export interface ImportRun {
	seq: number;
	spec: ImportSpec;
	now: Micros;
	known: ReadonlySet<string>;
	hasSuppressions: boolean;
	unsubscribeScope: UnsubscribeScope;
	isErased: Awaited<ReturnType<typeof openErased>>;
	moved: { active: number; inactive: number };
	standing: AddressSet | null;
	expectsNew: boolean;
}

export type RowOutcome =
	| { kind: 'created' | 'updated' | 'unchanged' }
	| { kind: 'duplicate' | 'rejected'; code: string; error: string };

const created: RowOutcome = { kind: 'created' };

export async function openImportRun(
	sql: Sql,
	begun: Pick<ImportRun, 'seq' | 'spec' | 'now' | 'standing' | 'expectsNew'>,
): Promise<ImportRun> {
	const [known, isAnySuppressed, scope, isErased] = await sql.together([
		() => knownVariables(sql),
		() => exists(sql, 'SELECT 1 FROM suppressions'),
		() => unsubscribeScope(sql),
		() => openErased(sql),
	]);
	return {
		...{ ...begun, known, isErased },
		hasSuppressions: isAnySuppressed,
		unsubscribeScope: scope,
		moved: { active: 0, inactive: 0 },
	};
}

export interface RowPlace {
	id: number;
	unknown: readonly string[];
}

interface PlacedRow {
	row: ImportRow;
	place: RowPlace;
}

/** `on_conflict: error` rejects a row whose address exists. The row's `disable_reason` still suppresses the address. */
export async function importRows(
	sql: Sql,
	run: ImportRun,
	rows: readonly PlacedRow[],
): Promise<RowOutcome[]> {
	const guarded = await guardedAmong(sql, run, rows);
	if (guarded.size === 0) return await importPlain(sql, run, rows);
	const plain: PlacedRow[] = [];
	const others = new Map<string, PlacedRow[]>();
	for (const placed of rows) {
		const { email_key } = placed.row;
		if (!guarded.has(email_key)) plain.push(placed);
		else if (others.has(email_key)) others.get(email_key)?.push(placed);
		else others.set(email_key, [placed]);
	}
	const outcomes = new Map<PlacedRow, RowOutcome>();
	for (const [at, outcome] of (await importPlain(sql, run, plain)).entries()) {
		const placed = plain[at];
		if (placed !== undefined) outcomes.set(placed, outcome);
	}
	await each(sql, [...others.values()], async (ofOne) => {
		for (const placed of ofOne) outcomes.set(placed, await importRow(sql, run, placed));
	});
	return rows.map((placed) => {
		const outcome = outcomes.get(placed);
		if (outcome === undefined) throw new Error('a row without an outcome');
		return outcome;
	});
}

async function guardedAmong(
	sql: Sql,
	run: ImportRun,
	rows: readonly PlacedRow[],
): Promise<ReadonlySet<string>> {
	const { hasSuppressions, isErased, standing } = run;
	const keys = rows.map(({ row }) => row.email_key);
	if (standing !== null) return new Set(keys);
	const [suppressed, erasedOnes] = await sql.together([
		async () => (hasSuppressions ? await suppressedAmong(sql, keys) : []),
		async () => (isErased === null ? [] : await each(sql, keys, (key) => isErased(key))),
	]);
	return new Set([
		...suppressed,
		...keys.filter((_, at) => erasedOnes[at] === true),
		...rows
			.filter(({ row, place }) => mayBeUnknown(row, place) || importedReason(row.disable_reason) !== null)
			.map(({ row }) => row.email_key),
	]);
}

function mayBeUnknown(row: ImportRow, { unknown }: RowPlace): boolean {
	return unknown.length > 0 || row.has_meta_cell;
}

async function importPlain(sql: Sql, run: ImportRun, rows: readonly PlacedRow[]): Promise<RowOutcome[]> {
	if (rows.length === 0) return [];
	const made = rows.map(({ row, place }) => newSubscriber(run, row, place.id, noReasons));
	const areNew = run.expectsNew && new Set(made.map(({ email_key }) => email_key)).size === made.length;
	const isNew = await insertSubscribers(sql, made, areNew);
	const outcomes: RowOutcome[] = rows.map(() => created);
	const met = new Map<string, number[]>();
	for (const [at, { is_active, email_key }] of made.entries()) {
		if (isNew[at]) move(run, null, is_active);
		else if (met.has(email_key)) met.get(email_key)?.push(at);
		else met.set(email_key, [at]);
	}
	if (met.size === 0) return outcomes;
	await each(sql, [...met.values()], async (places) => {
		for (const at of places) {
			const { row } = rows[at] as PlacedRow;
			outcomes[at] = await meetExisting(sql, run, row);
		}
	});
	return outcomes;
}

async function importRow(sql: Sql, run: ImportRun, { row, place }: PlacedRow): Promise<RowOutcome> {
	const variables = mayBeUnknown(row, place) ? Object.keys(parseRecord(row.meta_json)) : [];
	const unknown = variables.find((variable) => !run.known.has(variable));
	if (unknown !== undefined) {
		return { kind: 'rejected', code: 'unknown_variable', error: `meta: ${unknownVariableText(unknown)}` };
	}
	if (await run.isErased?.(row.email_key)) return erased;
	if (run.standing?.has(row.email_key)) return duplicateOf(row);
	const outcome = (await create(sql, run, row, place.id)) ? created : await meetExisting(sql, run, row);
	if (run.standing !== null && !('code' in outcome)) run.standing.add(row.email_key);
	return outcome;
}

function duplicateOf(row: ImportRow): RowOutcome {
	// `join` copies the address. A template literal would keep the whole row's text in memory with the error.
	const error = ['email: ', row.email, ' is in this import already.'].join('');
	return { kind: 'duplicate', code: 'duplicate', error };
}

function newSubscriber({ spec, seq, now }: ImportRun, row: ImportRow, id: number, { kept }: Reasons) {
	const activation = importedActivation(row, kept);
	// Name each property: with `...activation`, this literal took a quarter of an import's time.
	return {
		is_active: activation.is_active,
		disable_reason: activation.disable_reason,
		id,
		list_id: spec.list_id,
		email: row.email,
		email_key: row.email_key,
		email_folded: row.email_folded,
		name: row.name ?? '',
		meta: row.meta_json,
		source: 'IMPORT' as const,
		created_at: now,
		import_seq: seq,
	};
}

async function create(sql: Sql, run: ImportRun, row: ImportRow, id: number): Promise<boolean> {
	const reasons = await suppressionsAfterLift(sql, run, row);
	const made = newSubscriber(run, row, id, reasons);
	const [isNew = false] = await insertSubscribers(sql, [made]);
	if (!isNew) return false;
	await lift(sql, run, row, reasons.lifted);
	move(run, null, made.is_active);
	await impose(sql, run, row);
	return true;
}

async function meetExisting(sql: Sql, run: ImportRun, row: ImportRow): Promise<RowOutcome> {
	const stored = await sql.get<SubscriberRow>(
		`SELECT ${subscriberColumns} FROM subscribers WHERE email_key = ? AND list_id = ?`,
		[row.email_key, run.spec.list_id],
	);
	if (stored === undefined) throw new Error('the subscriber of a taken address was not found');
	if (stored.import_seq === run.seq) {
		await deactivate(sql, run, row, stored);
		return duplicateOf(row);
	}
	switch (run.spec.on_conflict) {
		case 'error':
			await impose(sql, run, row);
			return { kind: 'rejected', code: 'unique', error: `email: ${duplicateMessage}` };
		case 'skip':
			markSeen(sql, run, stored.id);
			await impose(sql, run, row);
			return { kind: (await isStopped(sql, row, stored)) ? 'updated' : 'unchanged' };
		case 'update':
			return await update(sql, run, row, stored);
	}
}

/** The first row of an address sets its values. A later row can only deactivate the subscriber. */
async function deactivate(sql: Sql, run: ImportRun, row: ImportRow, stored: SubscriberRow): Promise<void> {
	const { is_active, disable_reason } = importedActivation(row, []);
	if (is_active || stored.is_active === 0) return await impose(sql, run, row);
	sql.write('UPDATE subscribers SET is_active = 0, disable_reason = ? WHERE id = ?', [
		disable_reason,
		stored.id,
	]);
	move(run, true, false);
	await impose(sql, run, row);
}

async function isStopped(
	sql: Sql,
	row: ImportRow,
	{ id, is_active, disable_reason }: SubscriberRow,
): Promise<boolean> {
	if (importedReason(row.disable_reason) === null) return false;
	const after = await sql.get<Pick<SubscriberRow, 'is_active' | 'disable_reason'>>(
		'SELECT is_active, disable_reason FROM subscribers WHERE id = ?',
		[id],
	);
	return after?.is_active !== is_active || after.disable_reason !== disable_reason;
}

const duplicateMessage = Object.values(duplicateAddress)
	.flatMap((errors) => (Array.isArray(errors) ? errors : []))
	.map((error: { message: string }) => error.message)
	.join(' ');

async function update(sql: Sql, run: ImportRun, row: ImportRow, stored: SubscriberRow): Promise<RowOutcome> {
	const before: Activation = { is_active: stored.is_active === 1, disable_reason: stored.disable_reason };
	const reasons = await suppressionsAfterLift(sql, run, row);
	const after = reimportedActivation(before, row, {
		reactivate: run.spec.reactivate,
		kept: reasons.kept,
	});
	const merged = () => changeMeta(parseRecord(stored.meta), { merge_meta: parseRecord(row.meta_json) });
	const meta = row.meta_json === '{}' ? stored.meta : JSON.stringify(merged());
	// A UTF-16 unit takes at most three bytes in UTF-8, so short texts need no count.
	if (meta.length * 3 > maxMetaBytes && Buffer.byteLength(meta) > maxMetaBytes) return tooLarge;
	await lift(sql, run, row, reasons.lifted);
	const name = row.name ?? stored.name;
	const isSame =
		name === stored.name &&
		meta === stored.meta &&
		after.is_active === before.is_active &&
		after.disable_reason === before.disable_reason;
	if (isSame) {
		await impose(sql, run, row);
		markSeen(sql, run, stored.id);
		return { kind: 'unchanged' };
	}
	sql.write(
		`UPDATE subscribers
		SET name = ?, meta = ?, is_active = ?, disable_reason = ?, import_seq = ?
		WHERE id = ?`,
		[name, meta, flag(after.is_active), after.disable_reason, run.seq, stored.id],
	);
	move(run, before.is_active, after.is_active);
	await impose(sql, run, row);
	return { kind: 'updated' };
}

// Mark unchanged subscribers too, because a later row with the same address is a duplicate.
function markSeen(sql: Sql, run: ImportRun, id: number): void {
	sql.write('UPDATE subscribers SET import_seq = ? WHERE id = ?', [run.seq, id]);
}

function move(run: ImportRun, before: boolean | null, after: boolean): void {
	const { active, inactive } = counterMove(before, after);
	run.moved.active += active;
	run.moved.inactive += inactive;
}

const erased: RowOutcome = { kind: 'rejected', code: 'erased', error: `email: ${refusalTexts.erased}` };

const tooLarge: RowOutcome = {
	kind: 'rejected',
	code: 'max_length',
	error: `meta: Ensure this field has no more than ${maxMetaBytes} bytes.`,
};

interface Reasons {
	kept: readonly SuppressionReason[];
	lifted: readonly SuppressionReason[];
}

const noReasons: Reasons = { kept: [], lifted: [] };

async function suppressionsAfterLift(sql: Sql, run: ImportRun, row: ImportRow): Promise<Reasons> {
	if (!run.hasSuppressions) return noReasons;
	const mail = { address: row.email_key, list_id: run.spec.list_id };
	const reasons = await findSuppressions(sql, mail, run.now);
	if (reasons.length === 0) return noReasons;
	const kept = await findLasting(sql, mail);
	if (!run.spec.reactivate || row.is_active === false || row.disable_reason !== null) {
		return { kept, lifted: [] };
	}
	const stored = { is_active: false, disable_reason: null };
	const change = changeActivation({ stored, wanted: true, isMoved: false, reasons, lasting: kept });
	return change.kind === 'refused' ? { kept, lifted: [] } : { kept: [], lifted: change.lift };
}

async function lift(
	sql: Sql,
	{ spec, now }: ImportRun,
	row: ImportRow,
	reasons: Reasons['lifted'],
): Promise<void> {
	await liftSuppressions(sql, { address: row.email_key, list_id: spec.list_id }, { reasons, now });
}

/** The suppression may deactivate subscribers of all lists, not only of the import's list. */
async function impose(sql: Sql, run: ImportRun, row: ImportRow): Promise<void> {
	const reason = importedReason(row.disable_reason);
	if (reason === null) return;
	const list_id = suppressedList(reason, run.spec.list_id, run.unsubscribeScope);
	await stopMail(sql, { address: row.email_key, list_id, reason, source: 'IMPORT', now: run.now });
	run.hasSuppressions = true;
}

type Batch = ImportBatch | CheckedBatch;

export interface RowSlice {
	count: number;
	row(index: number): ParsedRow;
	rank(index: number): number;
}

/** Rows of batches, ranked by key. The import writes rows in the order of their ranks, so it writes each page once. */
export class BatchRows {
	readonly #parsed = new WeakMap<ImportBatch, ParsedRow[]>();

	prepare(batch: Batch): number {
		// Keep checked rows as bytes until they are needed, since objects take five times the memory.
		return 'rows' in batch ? batch.rows.count : this.#rowsOf(batch).length;
	}

	slice(batch: Batch, from: number, limit: number): RowSlice {
		return 'rows' in batch
			? sliceTexts(batch.rows, from, limit)
			: sliceRows(this.#rowsOf(batch), from, limit);
	}

	variables(batch: Batch): readonly string[] {
		return 'rows' in batch ? batch.variables : metaVariables(batch.columns);
	}

	#rowsOf(batch: ImportBatch): ParsedRow[] {
		const rows = this.#parsed.get(batch) ?? parseImportRows(batch);
		this.#parsed.set(batch, rows);
		return rows;
	}
}

function sliceTexts(texts: RowTexts, from: number, limit: number): RowSlice {
	const reader = new TextReader(texts);
	const shared = new Map<string, string>();
	return {
		count: Math.max(0, Math.min(texts.count - from, limit)),
		row: (index) => share(decodeRow(reader.at(from + index)), shared),
		rank: (index) => rankOf((place) => reader.octet(from + index, keyPlace + place)),
	};
}

function sliceRows(all: readonly ParsedRow[], from: number, limit: number): RowSlice {
	const rows = all.slice(from, from + limit);
	const row = (index: number) => rows[index] ?? outside();
	return {
		count: rows.length,
		row,
		rank: (index) => {
			const found = row(index);
			const key = found.kind === 'row' ? found.email_key : '';
			return rankOf((place) => (place < key.length ? key.charCodeAt(place) : 0));
		},
	};
}

function outside(): never {
	throw new RangeError('a row outside of its batch');
}

/** Rejected rows share one copy of equal texts. Each separate copy would keep its row's whole text in memory. */
function share(row: ParsedRow, shared: Map<string, string>): ParsedRow {
	if (row.kind === 'row') return row;
	return { kind: 'rejected', code: sameText(row.code, shared), error: sameText(row.error, shared) };
}

function sameText(text: string, shared: Map<string, string>): string {
	const known = shared.get(text) ?? text;
	shared.set(known, known);
	return known;
}

/** The rank depends on this many characters of the key. Most keys are printable ASCII, which 96 codes cover. */
const ranked = 5;
const firstCode = 0x20;
const codes = 96;

/** `chunksByRank` takes at most this many rows, because a rank and a row number must fit into one double. */
export const maxOrderedRows = 2 ** 20;

/** Only the characters before the first non-ASCII one count, so that strings and UTF-8 bytes rank the same. */
function rankOf(codeAt: (place: number) => number): number {
	let rank = 0;
	let isPlain = true;
	for (let place = 0; place < ranked; place += 1) {
		const code: number = isPlain ? Math.max(codeAt(place) - firstCode, 0) : codes;
		isPlain = code < codes - 1;
		rank = rank * codes + Math.min(code, codes - 1);
	}
	return rank;
}

/** Returns 0 to `count` − 1, stably sorted by rank, in chunks of about `size`. Equal ranks share a chunk. */
export function chunksByRank(
	count: number,
	rankAt: (index: number) => number,
	size: number,
): readonly Uint32Array[] {
	if (count > maxOrderedRows) throw new RangeError(`${count} rows at once`);
	const order = new Float64Array(count);
	for (let index = 0; index < count; index += 1) order[index] = rankAt(index) * maxOrderedRows + index;
	order.sort();
	const chunks: Uint32Array[] = [];
	for (let from = 0; from < count; ) {
		let to = Math.min(from + size, count);
		while (to < count && rankIn(order, to) === rankIn(order, to - 1)) to += 1;
		chunks.push(Uint32Array.from(order.subarray(from, to), (ranking) => ranking % maxOrderedRows));
		from = to;
	}
	return chunks;
}

function rankIn(order: Float64Array, place: number): number {
	return Math.floor((order[place] ?? 0) / maxOrderedRows);
}
