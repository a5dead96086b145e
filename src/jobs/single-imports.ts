/**
 * Imports into a service without imports. Each row is a POST or PATCH. The local database stores the session, so that a
 * later run continues a killed one.
 */
import { createHash } from 'node:crypto';
import { type EmailKey, emailKey, isEmailAddress } from '../api/address.js';
import type { Ack, ImportBatch, ImportCounts, ImportSpec, Imports, Session } from '../api/capabilities.js';
import { addImportCounts } from '../api/counts.js';
import { ApiError, listFieldErrors, nonFieldErrors, notFound } from '../api/errors.js';
import type { SubscriberInput } from '../api/inputs.js';
import type { Meta, MetaValue, Subscriber } from '../api/records.js';
import { importRowReader, type RejectedRow } from '../engine/rules/import-rows.js';
import { inOrder, isBusy, Pace, type Pause, type Sleep } from './pace.js';
import { openSubscriberPages, type SubscriberPages, type Subscribers } from './subscriber-pages.js';

interface SingleImportOptions {
	concurrency: number;
	rowsPerSecond?: number;
	keep: KeepImport | null;
	signal?: AbortSignal;
	sleep?: Sleep;
}

export interface SingleImports extends Imports {
	readonly reasonsLeftOut: number;
	onPause(listener: (pause: Pause) => void): void;
	close(): Promise<void>;
}

interface OpenImport {
	session: SingleSession;
	kept: KeptImport;
}

/** An error that concerns more than one row rejects the batch. If the batch is sent again, its rows keep their outcomes. */
export function createSingleImports(api: WritableApi, options: SingleImportOptions): SingleImports {
	const { concurrency, rowsPerSecond, signal, sleep } = options;
	const keep = options.keep ?? keepNothing;
	const imports = new Map<string, OpenImport>();
	let listener: (pause: Pause) => void = () => {};
	let reasonsLeftOut = 0;
	const pace = new Pace({
		...(rowsPerSecond !== undefined && { rowsPerSecond }),
		...(signal !== undefined && { signal }),
		...(sleep !== undefined && { sleep }),
		onPause: (pause) => listener(pause),
	});
	const find = (key: string): OpenImport => {
		const found = imports.get(key);
		if (found === undefined) throw notFound();
		return found;
	};
	return {
		get reasonsLeftOut() {
			return [...imports.values()].reduce((sum, { session }) => sum + session.reasonsLeftOut, reasonsLeftOut);
		},
		open: async (key, spec) => {
			const known = imports.get(key);
			if (known !== undefined) return sessionOf(key, known.session);
			const kept = await keep(key);
			try {
				const session = await openSession(api, { spec, kept, pace, concurrency });
				imports.set(key, { session, kept });
				return sessionOf(key, session);
			} catch (error) {
				await kept.close();
				throw error;
			}
		},
		put: async (id, batch) => find(id).session.put(batch),
		finish: async (id) => {
			const { session, kept } = find(id);
			await kept.remove();
			imports.delete(id);
			reasonsLeftOut += session.reasonsLeftOut;
			return session.totals;
		},
		onPause: (heard) => {
			listener = heard;
		},
		close: async () => {
			for (const { kept } of imports.values()) await kept.close();
			imports.clear();
		},
	};
}

function sessionOf(id: string, { position, totals }: SingleSession): Session {
	return { id, position, counts: totals };
}

interface SessionParts {
	spec: ImportSpec;
	kept: KeptImport;
	pace: Pace;
	concurrency: number;
}

export interface WritableApi {
	subscribers(listId: number): Subscribers;
}

async function openSession(api: WritableApi, parts: SessionParts): Promise<SingleSession> {
	const { spec, pace, kept } = parts;
	const subscribers = api.subscribers(spec.list_id);
	const pages = await openSubscriberPages(subscribers, pace);
	const session = new SingleSession({ subscribers, pages, pace, spec }, parts);
	for await (const hash of kept.taken()) session.stands(hash);
	return session;
}

const maxUnknownInARow = 16;

class SingleSession {
	position: number;
	totals: ImportCounts;
	reasonsLeftOut: number;
	readonly #parts: RowParts;
	readonly #kept: KeptImport;
	readonly #concurrency: number;
	readonly #taken = new Set<AddressHash>();
	#last: { first: number; ack: Ack<ImportCounts> } | null;
	#unknownInARow = 0;

	constructor(parts: RowParts, { kept, concurrency }: SessionParts) {
		this.#parts = parts;
		this.#kept = kept;
		this.position = kept.position;
		this.totals = kept.counts;
		this.reasonsLeftOut = kept.reasonsLeftOut;
		this.#last = kept.last;
		this.#concurrency = concurrency;
	}

	stands(hash: AddressHash): void {
		this.#taken.add(hash);
	}

	#take({ first, ack, reasonsLeftOut, taken }: AckedBatch): void {
		for (const hash of taken) this.#taken.add(hash);
		this.totals = addImportCounts(this.totals, ack.counts);
		this.position = ack.position;
		this.reasonsLeftOut += reasonsLeftOut;
		this.#last = { first, ack };
	}

	async put(batch: ImportBatch): Promise<Ack<ImportCounts>> {
		const { first } = batch;
		if (this.#last?.first === first) return this.#last.ack;
		if (first !== this.position)
			throw new ApiError('conflict', `The next row of this import is ${this.position}.`);
		const rows = readRows(batch);
		await this.#parts.pages.prepare(rows.length);
		const outcomes = await this.#settle(rows, first);
		const ack = ackOf(first, outcomes);
		const done = {
			first,
			ack,
			reasonsLeftOut: rows.filter((row) => row.kind === 'row' && row.hasReason).length,
			taken: rows.flatMap((row, index) =>
				row.kind === 'row' && isStanding(outcomes[index]) ? [hashOf(row.key)] : [],
			),
		};
		await this.#kept.acknowledge(done);
		this.#take(done);
		return ack;
	}

	/** Handles rows with the same address one after the other, so that the first in the file wins. */
	async #settle(rows: ReturnType<typeof readRows>, first: number): Promise<RowOutcome[]> {
		const outcomes = new Array<RowOutcome>(rows.length);
		const ahead = new Map<EmailKey, Promise<boolean>>();
		await inOrder(rows.length, this.#concurrency, async (index) => {
			const row = rows[index];
			if (row === undefined) return;
			if (row.kind === 'rejected') {
				outcomes[index] = row;
				return;
			}
			const outcome = this.#settleOne(row, { before: ahead.get(row.key), number: first + index });
			ahead.set(
				row.key,
				outcome.then(
					(one) => one.kind === 'duplicate' || isStanding(one),
					() => false,
				),
			);
			outcomes[index] = await outcome;
		});
		return outcomes;
	}

	async #settleOne(
		row: ForeignRow,
		{ before, number }: { before: Promise<boolean> | undefined; number: number },
	): Promise<RowOutcome> {
		await this.#parts.pace.row();
		if (this.#taken.has(hashOf(row.key)) || (await before) === true) {
			await deactivate(this.#parts, row);
			const error = `email: ${row.email} is in this import already.`;
			return { kind: 'duplicate', code: 'duplicate', error };
		}
		const outcome = await settleRow(this.#parts, row, this.#intentsOf(number));
		const isUnknown = outcome.kind === 'rejected' && outcome.code === unknownCode;
		this.#unknownInARow = isUnknown ? this.#unknownInARow + 1 : 0;
		if (this.#unknownInARow > maxUnknownInARow)
			throw new ApiError('network', 'The service has stopped answering.', { unanswered: true });
		return outcome;
	}

	#intentsOf(number: number): RowIntents {
		const earlier = this.#kept.begun.get(number) ?? null;
		let last = earlier;
		return {
			earlier,
			declare: async (intent) => {
				if (intent === last) return;
				await this.#kept.declare(number, intent);
				last = intent;
			},
		};
	}
}

function ackOf(first: number, outcomes: readonly RowOutcome[]): Ack<ImportCounts> {
	const counts = noCounts();
	for (const { kind } of outcomes) counts[kind] += 1;
	const rejects = outcomes.flatMap((outcome, index) =>
		'code' in outcome ? [{ row: first + index, code: outcome.code, error: outcome.error }] : [],
	);
	return { position: first + outcomes.length, counts, rejects };
}

function isStanding(outcome: RowOutcome | undefined): boolean {
	return outcome !== undefined && !('code' in outcome);
}

function noCounts(): ImportCounts {
	return { created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };
}

/** Eleven characters: with a million addresses, one in 37 million imports has a collision. */
type AddressHash = string;

interface AckedBatch {
	first: number;
	ack: Ack<ImportCounts>;
	reasonsLeftOut: number;
	taken: readonly AddressHash[];
}

export interface KeptImport {
	readonly position: number;
	readonly counts: ImportCounts;
	readonly reasonsLeftOut: number;
	readonly last: { first: number; ack: Ack<ImportCounts> } | null;
	readonly begun: ReadonlyMap<number, Intent>;
	taken(): AsyncIterable<AddressHash>;
	declare(row: number, intent: Intent): Promise<void>;
	acknowledge(batch: AckedBatch): Promise<void>;
	close(): Promise<void>;
	remove(): Promise<void>;
}

export type KeepImport = (key: string) => Promise<KeptImport>;

async function keepNothing(): Promise<KeptImport> {
	const done = async () => undefined;
	return {
		position: 0,
		counts: noCounts(),
		reasonsLeftOut: 0,
		last: null,
		begun: new Map(),
		taken: none,
		declare: done,
		acknowledge: done,
		close: done,
		remove: done,
	};
}

function hashOf(key: EmailKey): AddressHash {
	return createHash('sha256').update(key).digest().toString('base64url', 0, 8);
}

async function* none(): AsyncGenerator<never, void, undefined> {}

type RowOutcome =
	| { kind: 'created' | 'updated' | 'unchanged' }
	| { kind: 'duplicate' | 'rejected'; code: string; error: string };

interface RowParts {
	subscribers: Subscribers;
	pages: SubscriberPages;
	pace: Pace;
	spec: ImportSpec;
	isLast?: true;
}

type Intent = 'create' | 'update';

interface RowIntents {
	readonly earlier: Intent | null;
	declare(intent: Intent): Promise<void>;
}

const unknownCode = 'unknown';

/** Keeps the words of a refusal; looks up a row without an answer. Throws errors that concern more rows. */
async function settleRow(parts: RowParts, row: ForeignRow, intents: RowIntents): Promise<RowOutcome> {
	const found = isEmailAddress(row.email) ? await parts.pages.find(row.email) : null;
	if (found === null) return create(parts, row, intents);
	if (intents.earlier !== 'create') return meet(parts, row, found, intents);
	// An earlier run was killed before the answer to this creation. Assumption: no other client created the address.
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

/** A row that changes nothing still deactivates its subscriber if it says that the person left. Returns whether it did. */
async function deactivate(
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

/** The address did not exist before this call, so if it exists now, this call created it. */
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

/** Null if the service did the write. Throws errors that concern more than this row. */
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
	// An earlier run may have made the change but got no answer.
	const asItIs: RowOutcome = { kind: intents.earlier === 'update' ? 'updated' : 'unchanged' };
	if (patchOf(row, found.known, reactivate) === null) return asItIs;
	// PATCH replaces all of meta, so merge the row into the current meta, not into that of the page.
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
		// If the list was deleted, the creation fails with that error.
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

async function askAgain<T>(question: () => Promise<T>): Promise<T | 'unknown'> {
	try {
		return await question();
	} catch (error) {
		if (error instanceof ApiError && error.unanswered) return 'unknown';
		throw error;
	}
}

/** True if the service may have done the write. False if throttled: the service did nothing, and the batch fails. */
function isOpen({ code, unanswered, retryAfterMs }: ApiError): boolean {
	return unanswered || code === 'server_error' || (code === 'unavailable' && retryAfterMs === null);
}

/** Assumption: another service may also answer 409 or 422 for a refused row. */
function isRefusal({ code }: ApiError): boolean {
	return code === 'invalid' || code === 'conflict' || code === 'unprocessable' || code === 'too_large';
}

/** True if the address may exist. Only a look-up decides whether it does; never match the text of the error. */
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
