/**
 * Mailings on a deployment that has none: a ledger file of this machine plays that part. Recipients are staged in it,
 * checked; a release is one line of it; then the service is called, one call a recipient where variables differ, with
 * every call announced in the ledger before and settled after.
 */
import type { Api } from '../../api/api.js';
import type { MailingSpec, MailingStatus, Mailings } from '../../api/capabilities.js';
import { type Clock, formatDateTime } from '../../api/datetime.js';
import { ApiError, invalid } from '../../api/errors.js';
import type { RequestsSpec } from '../../api/mailings.js';
import { mailingFields } from '../../api/messages.js';
import type { Uuid } from '../../api/records.js';
import { canonicalJson } from './canonical.js';
import { type MailingBook, messagesOf } from './mailings/book.js';
import type { MailingIdentity, WantedVariables } from './mailings/entries.js';
import type { MailingFile } from './mailings/file.js';
import { mailingLedgers } from './mailings/ledgers.js';
import { addList } from './mailings/list.js';
import { pageOfMailings, ResultsCursor } from './mailings/listing.js';
import type { Texts } from './mailings/requests.js';
import { resultsOf } from './mailings/results.js';
import { deliverMailing, type ForeignDelivered, type ForeignDelivery } from './mailings/sending.js';
import { createShelf } from './mailings/shelf.js';
import { isOfRequests, putRecipients, putRequests } from './mailings/staging.js';
import type { Sleep } from './pace.js';

/** Where the ledgers are, and what the parts of a mailing are made from. */
export interface ForeignMailingsOptions {
	/** Of all jobs of this machine. */
	folder: string;
	/** The base URL: the same name of a job is another job elsewhere. */
	deployment: string;
	/** The names of variables that texts use. */
	usedVariables: (texts: Texts) => readonly string[];
	newId: () => Uuid;
	clock: Clock;
	sleep: Sleep;
}

/**
 * `Mailings` with the delivering that elsewhere a worker does. Throws `LedgerError` where a file cannot be used, another
 * process being at work on it for one. `results` tells of people of lists too.
 */
export interface ForeignMailings extends Mailings {
	/**
	 * Calls the service for whoever is still waiting. Throws `conflict` unless the mailing is released, and the system's
	 * error when the ledger cannot be written: what was in flight is unknown then.
	 */
	deliver(id: Uuid, how: ForeignDelivery): Promise<ForeignDelivered>;
	/** Lets go of every ledger. */
	close(): Promise<void>;
}

/** What it has opened is closed to other processes until `close`. */
export function createForeignMailings(api: Api, options: ForeignMailingsOptions): ForeignMailings {
	const shelf = createShelf(mailingLedgers(options.folder, options.deployment));
	const cursors = new Map<Uuid, ResultsCursor>();
	return {
		open: async (key, spec) => {
			const file = await shelf.open(identityOf(key, spec, options));
			if (specText(file.identity.spec) !== specText(spec))
				throw new ApiError('conflict', `The job "${key}" stands for another mailing.`);
			return { id: file.identity.id, position: file.book.position };
		},
		put: async (id, batch) => putRecipients(await shelf.file(id), batch),
		putRequests: async (id, batch) => putRequests(await shelf.file(id), batch, options.usedVariables),
		complete: async (id, { position }) => complete(await shelf.file(id), position),
		addList: async (id, listId, call) => addList(await shelf.file(id), listId, { api, signal: call?.signal }),
		release: async (id, { expect_count }) => release(await shelf.file(id), expect_count),
		cancel: async (id) => {
			const file = await shelf.file(id);
			if (file.book.state !== 'canceled') await file.write([{ kind: 'canceled' }]);
		},
		status: async (id) => statusOf(id, await shelf.book(id)),
		page: (request) => pageOfMailings(shelf, request),
		results: async (id, request) => {
			const book = await shelf.book(id);
			const cursor = cursors.get(id) ?? new ResultsCursor();
			cursors.set(id, cursor);
			return cursor.read(() => resultsOf(() => shelf.entries(id), book), request);
		},
		deliver: async (id, how) => deliverMailing(api, await shelf.file(id), { ...how, sleep: options.sleep }),
		close: () => shelf.close(),
	};
}

/** Throws `invalid` for a spec that no send call would take. */
function identityOf(
	key: string,
	spec: MailingSpec | RequestsSpec,
	{ newId, clock, usedVariables }: ForeignMailingsOptions,
): MailingIdentity {
	if (!isOfRequests(spec)) {
		const parsed = mailingFields.parse(spec);
		if (parsed.kind === 'invalid') throw invalid(parsed.errors);
	}
	const wanted = isOfRequests(spec) ? null : wantedBy(spec, usedVariables);
	return { id: newId(), key, spec, wanted, date_created: formatDateTime(clock.now()) };
}

/** What a template of the service's says, nobody here knows. */
function wantedBy(
	{ subject, text_body, html_body, template_unique_id }: MailingSpec,
	usedVariables: ForeignMailingsOptions['usedVariables'],
): WantedVariables {
	if (template_unique_id !== undefined) return null;
	return usedVariables({ subject: subject ?? '', text: text_body ?? null, html: html_body ?? null });
}

/** Equal for specs that are the same mailing: all of a spec but where its source lay, for a file may be moved. */
function specText({ source, ...rest }: MailingSpec | RequestsSpec): string {
	if (source === undefined) return canonicalJson(rest);
	const { path: _, ...compared } = source;
	return canonicalJson({ ...rest, source: compared });
}

async function complete({ book, write }: MailingFile, position: number): Promise<void> {
	if (book.position !== position)
		throw new ApiError('conflict', `The next row of this mailing is ${book.position}.`);
	if (!book.isComplete) await write([{ kind: 'complete' }]);
}

async function release({ book, write }: MailingFile, expected: number): Promise<void> {
	const { state, counts, list } = book;
	if (state === 'canceled') throw new ApiError('conflict', 'This mailing was canceled.');
	if (list?.isWhole === false)
		throw new ApiError('conflict', 'The list was not read to its end; nothing was released.');
	if (counts.staged !== expected) {
		const text = `This mailing has ${counts.staged} recipients, not ${expected}; nothing was released.`;
		throw new ApiError('conflict', text);
	}
	if (state === 'staged') await write([{ kind: 'released' }]);
}

function statusOf(id: Uuid, { identity, state, counts, seats }: MailingBook): MailingStatus {
	return { id, key: identity?.key ?? '', state, messages: messagesOf(seats.counts, state), counts };
}
