/**
 * Imports into a service that has no API for imports: each row is a POST or PATCH. The local database stores the
 * progress, so that a later run continues after a kill.
 */
import { createHash } from 'node:crypto';
import { type EmailKey, emailKey, isEmailAddress } from '../api/address.js';
import type { Call } from '../api/api.js';
import type { Ack, ImportBatch, ImportCounts, ImportSpec, Imports, Session } from '../api/capabilities.js';
import { addImportCounts, noImportCounts } from '../api/counts.js';
import { ApiError, listFieldErrors, nonFieldErrors, notFound } from '../api/errors.js';
import type { SubscriberInput } from '../api/inputs.js';
import type { Meta, MetaValue, Subscriber } from '../api/records.js';
import { importRowReader, type RejectedRow } from '../engine/rules/import-rows.js';
import { inOrder, isBusy, Pace, type PaceOptions, type Pause } from './pace.js';
import { openSubscriberPages, type SubscriberPages, type Subscribers } from './subscriber-pages.js';

interface SingleImportOptions extends Omit<PaceOptions, 'onPause'> {
	concurrency: number;
	keep: KeepImport | null;
}

export interface WritableApi {
	subscribers(listId: number): Subscribers;
}

interface OpenImport {
	rows: RowWriter;
	kept: KeptImport | null;
	position: number;
	counts: ImportCounts;
	last: { first: number; ack: Ack<ImportCounts> } | null;
	readonly taken: Set<AddressHash>;
}

const maxUnknownInARow = 16;

/**
 * Runs one import at a time. An error that affects more than one row, such as a busy service, fails the batch. If the
 * caller repeats the batch, finished rows keep their outcomes.
 */
export class SingleImports implements Imports {
	reasonsLeftOut = 0;
	readonly #api: WritableApi;
	readonly #options: SingleImportOptions;
	readonly #pace: Pace;
	#open: OpenImport | null = null;
	#unknownInARow = 0;
	#onPause: (pause: Pause) => void = () => {};

	constructor(api: WritableApi, options: SingleImportOptions) {
		this.#api = api;
		this.#options = options;
		this.#pace = new Pace({ ...options, onPause: (pause) => this.#onPause(pause) });
	}

	onPause(listener: (pause: Pause) => void): void {
		this.#onPause = listener;
	}

	async open(key: string, spec: ImportSpec): Promise<Session> {
		this.#open ??= await this.#begin(key, spec);
		const { position, counts } = this.#open;
		return { id: key, position, counts };
	}

	async #begin(key: string, spec: ImportSpec): Promise<OpenImport> {
		const kept = (await this.#options.keep?.(key)) ?? null;
		try {
			const subscribers = this.#api.subscribers(spec.list_id);
			const pages = await openSubscriberPages(subscribers, this.#pace);
			const rows = new RowWriter({ subscribers, pages, pace: this.#pace, spec });
			const taken = new Set<AddressHash>();
			if (kept === null) return { rows, kept, position: 0, counts: noImportCounts, last: null, taken };
			for await (const hash of kept.taken()) taken.add(hash);
			this.reasonsLeftOut = kept.reasonsLeftOut;
			const { position, counts, last } = kept;
			return { rows, kept, position, counts, last, taken };
		} catch (error) {
			await kept?.close();
			throw error;
		}
	}

	async put(_: string, batch: ImportBatch): Promise<Ack<ImportCounts>> {
		const { first } = batch;
		const open = this.#opened();
		if (open.last?.first === first) return open.last.ack;
		if (first !== open.position)
			throw new ApiError('conflict', `The next row of this import is ${open.position}.`);
		const rows = readRows(batch);
		await open.rows.prepare(rows.length);
		const outcomes = await this.#settle(open, rows, first);
		const ack = ackOf(first, outcomes);
		const reasonsLeftOut = rows.filter((row) => row.kind === 'row' && row.hasReason).length;
		const taken = rows.flatMap((row, index) =>
			row.kind === 'row' && isStanding(outcomes[index]) ? [hashOf(row.key)] : [],
		);
		await open.kept?.acknowledge({ first, ack, reasonsLeftOut, taken });
		for (const hash of taken) open.taken.add(hash);
		open.counts = addImportCounts(open.counts, ack.counts);
		open.position = ack.position;
		open.last = { first, ack };
		this.reasonsLeftOut += reasonsLeftOut;
		return ack;
	}

	/** Handles rows with the same address one after the other, so that the first in the file wins. */
	async #settle(
		open: OpenImport,
		rows: readonly (ForeignRow | RejectedRow)[],
		first: number,
	): Promise<RowOutcome[]> {
		const outcomes = new Array<RowOutcome>(rows.length);
		const ahead = new Map<EmailKey, Promise<boolean>>();
		await inOrder(rows.length, this.#options.concurrency, async (index) => {
			const row = rows[index];
			if (row === undefined) return;
			if (row.kind === 'rejected') {
				outcomes[index] = row;
				return;
			}
			const outcome = this.#settleOne(open, row, { before: ahead.get(row.key), number: first + index });
			const stands = (one: RowOutcome) => one.kind === 'duplicate' || isStanding(one);
			ahead.set(
				row.key,
				outcome.then(stands, () => false),
			);
			outcomes[index] = await outcome;
		});
		return outcomes;
	}

	async #settleOne(
		{ rows, kept, taken }: OpenImport,
		row: ForeignRow,
		{ before, number }: { before: Promise<boolean> | undefined; number: number },
	): Promise<RowOutcome> {
		await this.#pace.row();
		if (taken.has(hashOf(row.key)) || (await before) === true) {
			await rows.deactivate(row);
			const error = `email: ${row.email} is in this import already.`;
			return { kind: 'duplicate', code: 'duplicate', error };
		}
		const outcome = await rows.settle(row, intentsOf(kept, number));
		const isUnknown = outcome.kind === 'rejected' && outcome.code === unknownCode;
		this.#unknownInARow = isUnknown ? this.#unknownInARow + 1 : 0;
		if (this.#unknownInARow > maxUnknownInARow)
			throw new ApiError('network', 'The service has stopped answering.', { unanswered: true });
		return outcome;
	}

	async finish(): Promise<ImportCounts> {
		const { kept, counts } = this.#opened();
		await kept?.remove();
		this.#open = null;
		return counts;
	}

	async close(): Promise<void> {
		await this.#open?.kept?.close();
		this.#open = null;
	}

	#opened(): OpenImport {
		if (this.#open === null) throw notFound();
		return this.#open;
	}
}

function ackOf(first: number, outcomes: readonly RowOutcome[]): Ack<ImportCounts> {
	const counts = { ...noImportCounts };
	for (const { kind } of outcomes) counts[kind] += 1;
	const rejects = outcomes.flatMap((outcome, index) =>
		'code' in outcome ? [{ row: first + index, code: outcome.code, error: outcome.error }] : [],
	);
	return { position: first + outcomes.length, counts, rejects };
}

function isStanding(outcome: RowOutcome | undefined): boolean {
	return outcome !== undefined && !('code' in outcome);
}

/** The first 64 bits of a SHA-256. With a million addresses, one import in 37 million has a collision. */
type AddressHash = string;

function hashOf(key: EmailKey): AddressHash {
	return createHash('sha256').update(key).digest().toString('base64url', 0, 8);
}

export interface KeptImport {
	readonly position: number;
	readonly counts: ImportCounts;
	readonly reasonsLeftOut: number;
	readonly last: { first: number; ack: Ack<ImportCounts> } | null;
	readonly begun: ReadonlyMap<number, Intent>;
	taken(): AsyncIterable<AddressHash>;
	declare(row: number, intent: Intent): Promise<void>;
	acknowledge(batch: {
		first: number;
		ack: Ack<ImportCounts>;
		reasonsLeftOut: number;
		taken: readonly AddressHash[];
	}): Promise<void>;
	close(): Promise<void>;
	remove(): Promise<void>;
}

export type KeepImport = (key: string) => Promise<KeptImport>;

type Intent = 'create' | 'update';

interface RowIntents {
	readonly earlier: Intent | null;
	declare(intent: Intent): Promise<void>;
}

function intentsOf(kept: KeptImport | null, number: number): RowIntents {
	const earlier = kept?.begun.get(number) ?? null;
	let last = earlier;
	return {
		earlier,
		declare: async (intent) => {
			if (intent === last) return;
			await kept?.declare(number, intent);
			last = intent;
		},
	};
}

type RowOutcome =
	| { kind: 'created' | 'updated' | 'unchanged' }
	| { kind: 'duplicate' | 'rejected'; code: string; error: string };

interface RowParts {
	subscribers: Subscribers;
	pages: SubscriberPages;
	pace: Pace;
	spec: ImportSpec;
}

const unknownCode = 'unknown';
const maxBusyAnswers = 12;

class RowWriter {
	readonly #parts: RowParts;

	constructor(parts: RowParts) {
		this.#parts = parts;
	}

	prepare(rows: number): Promise<void> {
		return this.#parts.pages.prepare(rows);
	}

	async settle(row: ForeignRow, intents: RowIntents): Promise<RowOutcome> {
		const { pages, spec } = this.#parts;
		const found = isEmailAddress(row.email) ? await pages.find(row.email) : null;
		if (found === null) return this.#create(row, intents);
		if (intents.earlier !== 'create') return this.#meet(row, found, intents);
		// An earlier run may have created the subscriber before it was killed. Assume that no other client did.
		if (spec.on_conflict !== 'update') return { kind: 'created' };
		const outcome = await this.#meet(row, found, intents);
		return 'code' in outcome ? outcome : { kind: 'created' };
	}

	/** Even an ignored row deactivates its subscriber if the row says so. */
	async deactivate({ email, hasReason, isActive }: ForeignRow): Promise<boolean> {
		if (!hasReason && isActive !== false) return false;
		const { subscribers, pages, pace } = this.#parts;
		const found = await pages.search(email);
		if (!found?.is_active) return false;
		await pace.write((call) => subscribers.patch(found.id, { is_active: false }, call));
		return true;
	}

	async #create(row: ForeignRow, intents: RowIntents, mayExist = true): Promise<RowOutcome> {
		const { subscribers, pages } = this.#parts;
		const { email } = row;
		await intents.declare('create');
		const end = await this.#write(
			(call) => subscribers.create(creationOf(row), call),
			// The address did not exist before this call, so if it exists now, this call created it.
			async () => (await pages.search(email)) !== null,
		);
		if (!(end instanceof ApiError)) return end ?? { kind: 'created' };
		if (!isRefusal(end)) throw end;
		const mayBeTaken = mayExist && speaksOfAddress(end) && isEmailAddress(email);
		const taken = mayBeTaken ? await pages.search(email) : null;
		if (taken === null) return rejectedBy(end);
		return this.#meet(row, { known: taken, isFresh: true }, intents);
	}

	async #meet(
		row: ForeignRow,
		found: { known: Known; isFresh: boolean },
		intents: RowIntents,
	): Promise<RowOutcome> {
		const { subscribers, spec } = this.#parts;
		const { on_conflict, reactivate } = spec;
		if (on_conflict === 'skip')
			return { kind: row.hasReason && (await this.deactivate(row)) ? 'updated' : 'unchanged' };
		if (on_conflict === 'error') {
			if (row.hasReason) await this.deactivate(row);
			const error = 'email: Subscriber with this email already exists in this list.';
			return { kind: 'rejected', code: 'unique', error };
		}
		// An earlier run may have made the change but got no answer.
		const asItIs: RowOutcome = { kind: intents.earlier === 'update' ? 'updated' : 'unchanged' };
		if (patchOf(row, found.known, reactivate) === null) return asItIs;
		// PATCH replaces all of meta, so merge the row into the current meta. The meta from the page may be outdated.
		const known = found.isFresh || row.meta.size === 0 ? found.known : await this.#fresh(found.known.id);
		if (known === null) return this.#create(row, intents);
		const patch = patchOf(row, known, reactivate);
		if (patch === null) return asItIs;
		if (intents.earlier === null) await intents.declare('update');
		const end = await this.#write(
			(call) => subscribers.patch(known.id, patch, call),
			async () => {
				const after = await this.#fresh(known.id);
				return after !== null && patchOf(row, after, reactivate) === null;
			},
		);
		if (!(end instanceof ApiError)) return end ?? { kind: 'updated' };
		// The subscriber was deleted, so create it. If the whole list was deleted, the creation fails.
		if (end.code === 'not_found') return this.#create(row, intents, false);
		if (!isRefusal(end)) throw end;
		return rejectedBy(end);
	}

	/**
	 * Returns null if the service did the write, or the error if it certainly did not. After an uncertain answer, asks
	 * `hasHappened`, and rejects the row if the service does not answer. Throws if the service stays busy.
	 */
	async #write(
		write: (call: Call) => Promise<unknown>,
		hasHappened: () => Promise<boolean>,
	): Promise<ApiError | RowOutcome | null> {
		for (let tries = 1; ; tries += 1) {
			const error = await failureOf(this.#parts.pace.write(write));
			if (error === null) return null;
			// A service may refuse a retry because the first attempt succeeded.
			if (!isOpen(error) && (tries === 1 || !isRefusal(error))) return error;
			const happened = await askAgain(hasHappened);
			if (happened === true) return null;
			if (happened === 'unknown') return unknown(error);
			if (isBusy(error) && tries < maxBusyAnswers) continue;
			if (isBusy(error)) throw error;
			if (!error.unanswered) return rejectedBy(error);
			if (tries > 1) return unknown(error);
		}
	}

	async #fresh(id: number): Promise<Known | null> {
		const { subscribers, pace } = this.#parts;
		try {
			return await pace.read((call) => subscribers.get(id, call));
		} catch (error) {
			if (error instanceof ApiError && error.code === 'not_found') return null;
			throw error;
		}
	}
}

async function failureOf(write: Promise<unknown>): Promise<ApiError | null> {
	try {
		await write;
		return null;
	} catch (error) {
		if (error instanceof ApiError) return error;
		throw error;
	}
}

async function askAgain<T>(question: () => Promise<T>): Promise<T | 'unknown'> {
	try {
		return await question();
	} catch (error) {
		if (error instanceof ApiError && error.unanswered) return 'unknown';
		throw error;
	}
}

/** True if the service may have done the write. A throttled service has not done it. */
function isOpen({ code, unanswered, retryAfterMs }: ApiError): boolean {
	return unanswered || code === 'server_error' || (code === 'unavailable' && retryAfterMs === null);
}

/** Assume that a service may refuse a row with 409, 413 or 422 instead of 400. */
function isRefusal({ code }: ApiError): boolean {
	return code === 'invalid' || code === 'conflict' || code === 'unprocessable' || code === 'too_large';
}

/** True if the error may mean that the address exists. Error texts vary, so the caller searches for the address. */
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
	const text = `the service did not confirm this row, so it may or may not have been saved: ${error.message}`;
	return { kind: 'rejected', code: unknownCode, error: text.slice(0, maxErrorLength) };
}

interface ForeignRow {
	kind: 'row';
	email: string;
	key: EmailKey;
	name: string | null;
	isActive: boolean | null;
	hasReason: boolean;
	meta: ReadonlyMap<string, MetaValue>;
}

export type Known = Pick<Subscriber, 'id' | 'email' | 'name' | 'is_active' | 'meta'>;

function readRows({ columns, cells }: ImportBatch): (ForeignRow | RejectedRow)[] {
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

function patchOf(
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
