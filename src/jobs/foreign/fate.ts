/** What becomes of one row on a deployment that knows single subscribers only: POST, or PATCH where somebody is there. */
import { isEmailAddress } from '../../api/address.js';
import type { ImportSpec } from '../../api/capabilities.js';
import { ApiError, listFieldErrors, nonFieldErrors } from '../../api/errors.js';
import type { SubscriberInput } from '../../api/inputs.js';
import { isBusy, type Pace } from './pace.js';
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

/** What a row was about to be when its request was made. */
export type Intent = 'create' | 'update';

/** What outlives the process about a row that is not acknowledged yet. */
export interface RowIntents {
	/** Of a run that ended before it could say what became of the row; null: the row was not begun. */
	readonly earlier: Intent | null;
	/** Resolves when it is kept: no request that changes something is made before. */
	declare(intent: Intent): Promise<void>;
}

/** The code of a row that may or may not have been written: the service did not answer, nor to the question after it. */
export const unknownCode = 'unknown';

/**
 * Never leaves a row half counted: what the service refuses is its own words, what it does not answer is looked up.
 * Throws what concerns more than this row: list gone (`not_found`), token, network, throttled for too long.
 */
export async function settleRow(parts: FateParts, row: ForeignRow, intents: RowIntents): Promise<Fate> {
	// What is no address cannot be there; the service says so in its own words.
	const found = isEmailAddress(row.email) ? await parts.people.find(row.email) : null;
	if (found === null) return create(parts, row, intents);
	return intents.earlier === 'create'
		? meetOwn(parts, row, { found, intents })
		: meet(parts, row, { found, intents });
}

/**
 * An earlier run was about to create who is here now, and was killed before it heard an answer: the row came by that
 * run. Assumption: nobody else made the same person in that moment; what differs is changed as the options say.
 */
async function meetOwn(parts: FateParts, row: ForeignRow, met: Met): Promise<Fate> {
	if (parts.spec.on_conflict !== 'update') return { kind: 'created' };
	const fate = await meet(parts, row, met);
	return fate.kind === 'updated' || fate.kind === 'unchanged' ? { kind: 'created' } : fate;
}

interface Met {
	found: { known: Known; isFresh: boolean };
	intents: RowIntents;
}

async function create(parts: FateParts, row: ForeignRow, intents: RowIntents): Promise<Fate> {
	const { subscribers, people, pace } = parts;
	await intents.declare('create');
	try {
		await pace.write((call) => subscribers.create(creationOf(row), call));
		return { kind: 'created' };
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		if (isOpen(error)) return createAgain(parts, row, error);
		if (!isRefusal(error)) throw error;
		const mayBeTaken = parts.isLast !== true && speaksOfAddress(error) && isEmailAddress(row.email);
		const taken = mayBeTaken ? await people.search(row.email) : null;
		if (taken === null) return rejectedBy(error);
		return meet(parts, row, { found: { known: taken, isFresh: true }, intents });
	}
}

/** How often a service that answers 502, 503 or 504 is asked about one row, pauses of all between. */
const maxBusyAnswers = 12;

/** Nobody was there before, so somebody who is there now came by this row. */
async function createAgain(parts: FateParts, row: ForeignRow, first: ApiError): Promise<Fate> {
	const { subscribers, people, pace } = parts;
	let error = first;
	for (let tries = 1; ; tries += 1) {
		const known = await askAgain(() => people.search(row.email));
		if (known === 'unknown') return unknown(error);
		if (known !== null) return { kind: 'created' };
		const end = endOf(error, tries);
		if (end !== null) return end;
		const answer = await answerTo(() => pace.write((call) => subscribers.create(creationOf(row), call)));
		if (answer === null) return { kind: 'created' };
		error = answer;
	}
}

/** What an answer means when nobody came of the request; null: it is made once more. Throws what concerns every row. */
function endOf(error: ApiError, tries: number): Fate | null {
	if (isRefusal(error)) return rejectedBy(error);
	if (isBusy(error)) {
		if (tries === maxBusyAnswers) throw error;
		return null;
	}
	// An answer of 5xx, and nobody was made: the row is what the service cannot bear.
	if (error.code === 'server_error' && !error.unanswered) return rejectedBy(error);
	return tries > 1 ? unknown(error) : null;
}

/** Null: it was done. Throws what is no answer about the row. */
async function answerTo(write: () => Promise<unknown>): Promise<ApiError | null> {
	try {
		await write();
		return null;
	} catch (error) {
		if (error instanceof ApiError && (isOpen(error) || isRefusal(error))) return error;
		throw error;
	}
}

async function meet(parts: FateParts, row: ForeignRow, { found, intents }: Met): Promise<Fate> {
	const { on_conflict, reactivate } = parts.spec;
	if (on_conflict === 'skip') return { kind: 'unchanged' };
	if (on_conflict === 'error') {
		const error = 'email: Subscriber with this email already exists in this list.';
		return { kind: 'rejected', code: 'unique', error };
	}
	// An earlier run may have made the change and not heard of it.
	const asItIs: Fate = { kind: intents.earlier === 'update' ? 'updated' : 'unchanged' };
	if (patchOf(row, found.known, reactivate) === null) return asItIs;
	// PATCH replaces meta whole: it is merged into what is there now, not into what the walk met some time ago.
	const known = found.isFresh || row.meta.size === 0 ? found.known : await fresh(parts, found.known.id);
	if (known === null) return create(parts, row, intents);
	const patch = patchOf(row, known, reactivate);
	return patch === null ? asItIs : update(parts, row, { id: known.id, patch, intents });
}

async function update(
	parts: FateParts,
	row: ForeignRow,
	{ id, patch, intents }: { id: number; patch: Partial<SubscriberInput>; intents: RowIntents },
): Promise<Fate> {
	// Who came by an earlier run's row is its creation still.
	if (intents.earlier === null) await intents.declare('update');
	const write = () => parts.pace.write((call) => parts.subscribers.patch(id, patch, call));
	try {
		await repeated(write);
		return { kind: 'updated' };
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		// Deleted meanwhile, or the whole list: then creating says so.
		if (error.code === 'not_found') return create({ ...parts, isLast: true }, row, intents);
		if (isRefusal(error)) return rejectedBy(error);
		if (!isOpen(error) || isBusy(error)) throw error;
		const after = await askAgain(() => fresh(parts, id));
		if (after === 'unknown') return unknown(error);
		if (after !== null && patchOf(row, after, parts.spec.reactivate) === null) return { kind: 'updated' };
		return error.unanswered ? unknown(error) : rejectedBy(error);
	}
}

/** Twice the same change is one change: after no answer once more, after 502, 503 and 504 several times. */
async function repeated(write: () => Promise<unknown>): Promise<void> {
	for (let tries = 1; ; tries += 1) {
		const error = await write().then(
			() => null,
			(failure: unknown) => failure,
		);
		if (error === null) return;
		if (!(error instanceof ApiError)) throw error;
		const mayRepeat =
			isOpen(error) && isBusy(error) ? tries < maxBusyAnswers : error.unanswered && tries === 1;
		if (!mayRepeat) throw error;
	}
}

async function fresh({ subscribers, pace }: FateParts, id: number): Promise<Known | null> {
	return pace
		.read((call) => subscribers.get(id, call))
		.catch((error: unknown) =>
			error instanceof ApiError && error.code === 'not_found' ? null : Promise.reject(error),
		);
}

/** The question that decides whether it was the row or the service: without an answer to it, nothing is known. */
async function askAgain<T>(question: () => Promise<T>): Promise<T | 'unknown'> {
	return question().catch((error: unknown) => (isUnanswered(error) ? 'unknown' : Promise.reject(error)));
}

/** It may or may not have been carried out. Throttled for too long it was not: that concerns every row. */
function isOpen({ code, unanswered, retryAfterMs }: ApiError): boolean {
	return unanswered || code === 'server_error' || (code === 'unavailable' && retryAfterMs === null);
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
