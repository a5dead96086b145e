import { type EmailKey, emailKey, isEmailAddress } from '../api/address.js';
import type { ImportBatch, ImportSpec } from '../api/capabilities.js';
import { ApiError, listFieldErrors, nonFieldErrors } from '../api/errors.js';
import type { SubscriberInput } from '../api/inputs.js';
import type { Meta, MetaValue, Subscriber } from '../api/records.js';
import { importRowReader, type RejectedRow } from '../engine/rules/import-rows.js';
import { isBusy, type Pace } from './pace.js';
import type { SubscriberPages, Subscribers } from './subscriber-pages.js';

export type RowOutcome =
	| { kind: 'created' | 'updated' | 'unchanged' }
	| { kind: 'duplicate' | 'rejected'; code: string; error: string };

export interface RowParts {
	subscribers: Subscribers;
	pages: SubscriberPages;
	pace: Pace;
	spec: ImportSpec;
	isLast?: true;
}

export type Intent = 'create' | 'update';

export interface RowIntents {
	readonly earlier: Intent | null;
	declare(intent: Intent): Promise<void>;
}

export const unknownCode = 'unknown';

/**
 * A refusal keeps the service's words, a missing answer leads to a look-up. Throws errors that concern more than this
 * row.
 */
export async function settleRow(parts: RowParts, row: ForeignRow, intents: RowIntents): Promise<RowOutcome> {
	const found = isEmailAddress(row.email) ? await parts.pages.find(row.email) : null;
	if (found === null) return create(parts, row, intents);
	if (intents.earlier !== 'create') return meet(parts, row, found, intents);
	// An earlier run was killed before the answer to this creation. Assumption: no other client made the same one.
	if (parts.spec.on_conflict !== 'update') return { kind: 'created' };
	const outcome = await meet(parts, row, found, intents);
	return 'code' in outcome ? outcome : { kind: 'created' };
}

async function create(parts: RowParts, row: ForeignRow, intents: RowIntents): Promise<RowOutcome> {
	const { subscribers, pages, pace } = parts;
	await intents.declare('create');
	try {
		await pace.write((call) => subscribers.create(creationOf(row), call));
		return { kind: 'created' };
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		if (isOpen(error)) return createAgain(parts, row, error);
		if (!isRefusal(error)) throw error;
		const mayBeTaken = parts.isLast !== true && speaksOfAddress(error) && isEmailAddress(row.email);
		const taken = mayBeTaken ? await pages.search(row.email) : null;
		if (taken === null) return rejectedBy(error);
		return meet(parts, row, { known: taken, isFresh: true }, intents);
	}
}

/** A row whose values are not taken still stops the mail if it says that the person left. Returns whether it did. */
export async function deactivate(
	{ subscribers, pages, pace }: RowParts,
	{ email, hasReason, isActive }: ForeignRow,
): Promise<boolean> {
	if (!hasReason && isActive !== false) return false;
	const found = await pages.search(email);
	if (!found?.is_active) return false;
	await pace.write((call) => subscribers.patch(found.id, { is_active: false }, call));
	return true;
}

const maxBusyAnswers = 12;

/** The address was new before this call: if it is there now, this call created it. */
async function createAgain(parts: RowParts, row: ForeignRow, first: ApiError): Promise<RowOutcome> {
	const { subscribers, pages, pace } = parts;
	let error: ApiError | null = first;
	for (let tries = 1; error !== null; tries += 1) {
		const known = await askAgain(() => pages.search(row.email));
		if (known === 'unknown') return unknown(error);
		if (known !== null) break;
		if (isBusy(error)) {
			if (tries === maxBusyAnswers) throw error;
		} else if (isRefusal(error) || !error.unanswered) return rejectedBy(error);
		else if (tries > 1) return unknown(error);
		error = await failureOf(() => pace.write((call) => subscribers.create(creationOf(row), call)));
	}
	return { kind: 'created' };
}

/** Null: it was carried out. Throws errors that concern more than this row. */
async function failureOf(write: () => Promise<unknown>): Promise<ApiError | null> {
	try {
		await write();
		return null;
	} catch (error) {
		if (error instanceof ApiError && (isOpen(error) || isRefusal(error))) return error;
		throw error;
	}
}

async function meet(
	parts: RowParts,
	row: ForeignRow,
	found: { known: Known; isFresh: boolean },
	intents: RowIntents,
): Promise<RowOutcome> {
	const { on_conflict, reactivate } = parts.spec;
	if (on_conflict === 'skip')
		return { kind: row.hasReason && (await deactivate(parts, row)) ? 'updated' : 'unchanged' };
	if (on_conflict === 'error') {
		if (row.hasReason) await deactivate(parts, row);
		const error = 'email: Subscriber with this email already exists in this list.';
		return { kind: 'rejected', code: 'unique', error };
	}
	// An earlier run may have made the change without getting the answer.
	const asItIs: RowOutcome = { kind: intents.earlier === 'update' ? 'updated' : 'unchanged' };
	if (patchOf(row, found.known, reactivate) === null) return asItIs;
	// PATCH replaces meta whole: the row is merged into the current meta, not into that of the walk.
	const known = found.isFresh || row.meta.size === 0 ? found.known : await fresh(parts, found.known.id);
	if (known === null) return create(parts, row, intents);
	const patch = patchOf(row, known, reactivate);
	if (patch === null) return asItIs;
	if (intents.earlier === null) await intents.declare('update');
	return update(parts, row, { id: known.id, patch, intents });
}

async function update(
	parts: RowParts,
	row: ForeignRow,
	{ id, patch, intents }: { id: number; patch: Partial<SubscriberInput>; intents: RowIntents },
): Promise<RowOutcome> {
	try {
		await repeated(() => parts.pace.write((call) => parts.subscribers.patch(id, patch, call)));
		return { kind: 'updated' };
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		// If the whole list was deleted, creating fails with that error.
		if (error.code === 'not_found') return create({ ...parts, isLast: true }, row, intents);
		if (isRefusal(error)) return rejectedBy(error);
		if (!isOpen(error) || isBusy(error)) throw error;
		const after = await askAgain(() => fresh(parts, id));
		if (after === 'unknown') return unknown(error);
		if (after !== null && patchOf(row, after, parts.spec.reactivate) === null) return { kind: 'updated' };
		return error.unanswered ? unknown(error) : rejectedBy(error);
	}
}

async function repeated(write: () => Promise<unknown>): Promise<void> {
	for (let tries = 1; ; tries += 1) {
		try {
			await write();
			return;
		} catch (error) {
			if (!(error instanceof ApiError && isOpen(error))) throw error;
			if (!(isBusy(error) ? tries < maxBusyAnswers : error.unanswered && tries === 1)) throw error;
		}
	}
}

async function fresh({ subscribers, pace }: RowParts, id: number): Promise<Known | null> {
	try {
		return await pace.read((call) => subscribers.get(id, call));
	} catch (error) {
		if (error instanceof ApiError && error.code === 'not_found') return null;
		throw error;
	}
}

/** Without the answer of the look-up nothing is known of the row. */
async function askAgain<T>(question: () => Promise<T>): Promise<T | 'unknown'> {
	try {
		return await question();
	} catch (error) {
		if (error instanceof ApiError && error.unanswered) return 'unknown';
		throw error;
	}
}

/** A request throttled for too long was not carried out: that concerns every row. */
function isOpen({ code, unanswered, retryAfterMs }: ApiError): boolean {
	return unanswered || code === 'server_error' || (code === 'unavailable' && retryAfterMs === null);
}

/** Assumption: on other services a refused row may also be 409 or 422. */
function isRefusal({ code }: ApiError): boolean {
	return code === 'invalid' || code === 'conflict' || code === 'unprocessable' || code === 'too_large';
}

/** Texts are never matched: a look-up decides whether the address is taken. */
function speaksOfAddress({ fields }: ApiError): boolean {
	return fields === null || Object.hasOwn(fields, 'email') || Object.hasOwn(fields, nonFieldErrors);
}

const maxErrorLength = 500;

function rejectedBy(error: ApiError): RowOutcome {
	const complaints = error.fields === null ? [] : listFieldErrors(error.fields);
	const text = complaints.map(({ path, message }) => `${path}: ${message}`).join(' ') || error.message;
	return { kind: 'rejected', code: complaints[0]?.code ?? error.code, error: text.slice(0, maxErrorLength) };
}

function unknown(error: ApiError): RowOutcome {
	const text = `the service did not answer, so this row may or may not be there: ${error.message}`;
	return { kind: 'rejected', code: unknownCode, error: text.slice(0, maxErrorLength) };
}

export interface ForeignRow {
	kind: 'row';
	email: string;
	key: EmailKey;
	name: string | null;
	isActive: boolean | null;
	hasReason: boolean;
	meta: ReadonlyMap<string, MetaValue>;
}

export type Known = Pick<Subscriber, 'id' | 'email' | 'name' | 'is_active' | 'meta'>;

export function readRows({ columns, cells }: ImportBatch): (ForeignRow | RejectedRow)[] {
	const width = columns.length;
	const read = importRowReader(columns);
	return Array.from({ length: Math.floor(cells.length / width) }, (_, at) => {
		const row = read(cells.slice(at * width, (at + 1) * width));
		if (row.kind === 'rejected') return row;
		const email = row.email.trim();
		const hasReason = row.disable_reason !== null;
		return {
			...{ kind: 'row', email, key: emailKey(email), name: row.name, hasReason },
			isActive: row.is_active ?? (hasReason ? false : null),
			meta: new Map(row.meta),
		};
	});
}

function creationOf({ email, name, isActive, meta }: ForeignRow): SubscriberInput {
	return {
		email,
		...(name !== null && { name }),
		...(meta.size > 0 && { meta: Object.fromEntries(meta) }),
		...(isActive === false && { is_active: false }),
	};
}

export function patchOf(
	{ name, isActive, meta }: ForeignRow,
	known: Known,
	reactivate: boolean,
): Partial<SubscriberInput> | null {
	const isMetaChanged = [...meta].some(
		([key, value]) => !Object.hasOwn(known.meta, key) || known.meta[key] !== value,
	);
	const patch: Partial<SubscriberInput> = {
		...(name !== null && name !== known.name && { name }),
		...(isMetaChanged && { meta: mergedMeta(known.meta, meta) }),
		...(isActive === false && known.is_active && { is_active: false }),
		...(isActive !== false && reactivate && !known.is_active && { is_active: true }),
	};
	return Object.keys(patch).length === 0 ? null : patch;
}

function mergedMeta(stored: Readonly<Record<string, unknown>>, given: ReadonlyMap<string, MetaValue>): Meta {
	return Object.fromEntries([...Object.entries(stored), ...given]) as Meta;
}
