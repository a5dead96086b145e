/** What becomes of one row on a deployment that knows single subscribers only: POST, or PATCH where somebody is there. */
import { isEmailAddress } from '../../api/address.js';
import type { ImportSpec } from '../../api/capabilities.js';
import { ApiError, listFieldErrors, nonFieldErrors } from '../../api/errors.js';
import type { SubscriberInput } from '../../api/inputs.js';
import type { Pace } from './pace.js';
import type { People, Subscribers } from './people.js';
import { creationOf, type ForeignRow, type Known, patchOf } from './rows.js';

export type Fate =
	| { kind: 'created' | 'updated' | 'unchanged' }
	| { kind: 'duplicate' | 'rejected'; code: string; error: string };

export interface FateParts {
	subscribers: Subscribers;
	people: People;
	pace: Pace;
	spec: ImportSpec;
	/** Somebody was found, then not there: what is refused now is not looked for again. */
	isLast?: true;
}

/** The code of a row that may or may not have been written: the service did not answer, nor to the question after it. */
export const unknownCode = 'unknown';

/**
 * Never leaves a row half counted: what the service refuses is its own words, what it does not answer is looked up.
 * Throws what concerns more than this row: list gone (`not_found`), token, network, throttled for too long.
 */
export async function settleRow(parts: FateParts, row: ForeignRow): Promise<Fate> {
	// What is no address cannot be there; the service says so in its own words.
	const found = isEmailAddress(row.email) ? await parts.people.find(row.email) : null;
	return found === null ? create(parts, row) : meet(parts, row, found);
}

async function create(parts: FateParts, row: ForeignRow): Promise<Fate> {
	const { subscribers, people, pace } = parts;
	try {
		await pace.call(() => subscribers.create(creationOf(row)));
		return { kind: 'created' };
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		if (isOpen(error)) return createAgain(parts, row, error);
		if (!isRefusal(error)) throw error;
		const mayBeTaken = parts.isLast !== true && speaksOfAddress(error) && isEmailAddress(row.email);
		const taken = mayBeTaken ? await people.search(row.email) : null;
		return taken === null ? rejectedBy(error) : meet(parts, row, { known: taken, isFresh: true });
	}
}

/** Nobody was there before, so somebody who is there now came by this row. */
async function createAgain(parts: FateParts, row: ForeignRow, error: ApiError): Promise<Fate> {
	const { subscribers, people, pace } = parts;
	const known = await askAgain(() => people.search(row.email));
	if (known === 'unknown') return unknown(error);
	if (known !== null) return { kind: 'created' };
	// An answer of 5xx, and nobody was made: the row is what the service cannot bear.
	if (error.code === 'server_error' && !error.unanswered) return rejectedBy(error);
	try {
		await pace.call(() => subscribers.create(creationOf(row)));
		return { kind: 'created' };
	} catch (second) {
		if (!(second instanceof ApiError) || isBusy(second) || !(isOpen(second) || isRefusal(second)))
			throw second;
		const late = await askAgain(() => people.search(row.email));
		if (late === 'unknown') return unknown(second);
		if (late !== null) return { kind: 'created' };
		return isRefusal(second) ? rejectedBy(second) : unknown(second);
	}
}

async function meet(
	parts: FateParts,
	row: ForeignRow,
	found: { known: Known; isFresh: boolean },
): Promise<Fate> {
	const { on_conflict, reactivate } = parts.spec;
	if (on_conflict === 'skip') return { kind: 'unchanged' };
	if (on_conflict === 'error') {
		const error = 'email: Subscriber with this email already exists in this list.';
		return { kind: 'rejected', code: 'unique', error };
	}
	if (patchOf(row, found.known, reactivate) === null) return { kind: 'unchanged' };
	// PATCH replaces meta whole: it is merged into what is there now, not into what the walk met some time ago.
	const known = found.isFresh || row.meta.size === 0 ? found.known : await fresh(parts, found.known.id);
	if (known === null) return create(parts, row);
	const patch = patchOf(row, known, reactivate);
	return patch === null ? { kind: 'unchanged' } : update(parts, row, known.id, patch);
}

async function update(
	parts: FateParts,
	row: ForeignRow,
	id: number,
	patch: Partial<SubscriberInput>,
): Promise<Fate> {
	const write = () => parts.pace.call(() => parts.subscribers.patch(id, patch));
	try {
		// Twice the same change is one change.
		await write().catch((error: unknown) =>
			isUnanswered(error) || isBusy(error) ? write() : Promise.reject(error),
		);
		return { kind: 'updated' };
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		// Deleted meanwhile, or the whole list: then creating says so.
		if (error.code === 'not_found') return create({ ...parts, isLast: true }, row);
		if (isRefusal(error)) return rejectedBy(error);
		if (isBusy(error) || !isOpen(error)) throw error;
		const after = await askAgain(() => fresh(parts, id));
		if (after === 'unknown') return unknown(error);
		if (after !== null && patchOf(row, after, parts.spec.reactivate) === null) return { kind: 'updated' };
		return error.unanswered ? unknown(error) : rejectedBy(error);
	}
}

async function fresh({ subscribers, pace }: FateParts, id: number): Promise<Known | null> {
	return pace
		.call(() => subscribers.get(id))
		.catch((error: unknown) =>
			error instanceof ApiError && error.code === 'not_found' ? null : Promise.reject(error),
		);
}

/** The question that decides whether it was the row or the service: without an answer to it, nothing is known. */
async function askAgain<T>(question: () => Promise<T>): Promise<T | 'unknown'> {
	return question().catch((error: unknown) => (isUnanswered(error) ? 'unknown' : Promise.reject(error)));
}

/** It may or may not have been carried out. */
function isOpen(error: ApiError): boolean {
	return error.unanswered || error.code === 'server_error' || isBusy(error);
}

/** 503: no fault of the row. Once more, then it concerns the whole import. */
function isBusy(error: unknown): boolean {
	return error instanceof ApiError && error.code === 'unavailable';
}

function isUnanswered(error: unknown): boolean {
	return error instanceof ApiError && error.unanswered;
}

/** Assumption: elsewhere a refused row may also be 409 or 422. */
function isRefusal({ code }: ApiError): boolean {
	return code === 'invalid' || code === 'conflict' || code === 'unprocessable' || code === 'too_large';
}

/** Texts are never matched: whether the address is taken is looked up. */
function speaksOfAddress({ fields }: ApiError): boolean {
	return fields === null || Object.hasOwn(fields, 'email') || Object.hasOwn(fields, nonFieldErrors);
}

const maxErrorLength = 500;

function rejectedBy(error: ApiError): Fate {
	const complaints = error.fields === null ? [] : listFieldErrors(error.fields);
	const text = complaints.map(({ path, message }) => `${path}: ${message}`).join(' ') || error.message;
	return { kind: 'rejected', code: complaints[0]?.code ?? error.code, error: text.slice(0, maxErrorLength) };
}

function unknown(error: ApiError): Fate {
	const text = `the service did not answer, so this row may or may not be there: ${error.message}`;
	return { kind: 'rejected', code: unknownCode, error: text.slice(0, maxErrorLength) };
}
