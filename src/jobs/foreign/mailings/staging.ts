/** Rows into the ledger of a mailing, checked; a batch is one entry, and so it is there whole or not at all. */
import type { AcceptCounts, Ack, MailingSpec, RecipientBatch, Reject } from '../../../api/capabilities.js';
import { ApiError } from '../../../api/errors.js';
import type { RequestBatch } from '../../../api/mailings.js';
import { type Item, seatsOf } from './entries.js';
import type { MailingFile } from './file.js';
import { checkRequest, duplicate, type Texts } from './requests.js';
import { checkRecipient, type Wanted } from './rows.js';

type UsedVariables = (texts: Texts) => readonly string[];

/** Throws `conflict` for a gap, and for a mailing that takes no such rows any more. */
export async function putRecipients(
	file: MailingFile,
	{ first, recipients }: RecipientBatch,
): Promise<Ack<AcceptCounts>> {
	assertTakes(file, 'recipients');
	const wanted = wantedOf(file);
	return put(file, first, async () => {
		const addresses = await file.addresses();
		return recipients.map((recipient): Item[] => {
			const { key, item } = checkRecipient(recipient, wanted);
			if (key === null || addresses.add(key)) return [item];
			return [duplicate(item.to, item.line === undefined ? {} : { line: item.line })];
		});
	});
}

/** As `putRecipients`, for a mailing of requests. */
export async function putRequests(
	file: MailingFile,
	{ first, requests }: RequestBatch,
	usedVariables: UsedVariables,
): Promise<Ack<AcceptCounts>> {
	assertTakes(file, 'requests');
	const isStrict = file.identity.spec.strict_vars ?? true;
	return put(file, first, async () => {
		const addresses = await file.addresses();
		const isNew = (key: string) => addresses.add(key);
		return requests.map((row) => checkRequest(row, { usedVariables, isStrict, isNew }));
	});
}

/** What rows are checked against. */
export function wantedOf({ identity: { spec, wanted } }: MailingFile): Wanted {
	return {
		used: wanted,
		shared: isOfRequests(spec) ? {} : (spec.context ?? {}),
		isStrict: spec.strict_vars ?? true,
	};
}

/** True: each row is a request with a content of its own. False: all rows share the content of the mailing. */
export function isOfRequests(
	spec: MailingFile['identity']['spec'],
): spec is Exclude<typeof spec, MailingSpec> {
	return 'requests' in spec;
}

/** Throws `conflict` once the mailing was released, canceled, or is whole. */
export function assertStaged({ book: { state, isComplete } }: MailingFile): void {
	if (state !== 'staged')
		throw new ApiError('conflict', `This mailing is ${state}: it takes nobody any more.`);
	if (isComplete) throw new ApiError('conflict', 'This mailing is complete: it takes nobody any more.');
}

async function put(
	file: MailingFile,
	first: number,
	check: () => Promise<Item[][]>,
): Promise<Ack<AcceptCounts>> {
	const stored = first < file.book.position ? await findAck(file, first) : null;
	if (stored !== null) return stored;
	assertStaged(file);
	if (first !== file.book.position)
		throw new ApiError('conflict', `The next row of this mailing is ${file.book.position}.`);
	const rows = await check();
	const ack = {
		position: first + rows.length,
		counts: countsOf(rows.flat()),
		rejects: rejectsOf(rows, first),
	};
	if (rows.length === 0) return ack;
	try {
		await file.write([{ kind: 'batch', first, ack, items: rows.flat() }]);
	} catch (error) {
		// Its addresses are in the set, but not in the mailing.
		file.forgetAddresses();
		throw error;
	}
	return ack;
}

function assertTakes({ identity: { spec }, book }: MailingFile, what: 'recipients' | 'requests'): void {
	if (isOfRequests(spec) !== (what === 'requests'))
		throw new ApiError('conflict', `This mailing takes no ${what}.`);
	if (book.list !== null) throw new ApiError('conflict', 'This mailing goes to a list: it takes no rows.');
}

async function findAck(file: MailingFile, first: number): Promise<Ack<AcceptCounts> | null> {
	if (file.book.lastAck?.first === first) return file.book.lastAck.ack;
	for await (const entry of file.entries())
		if (entry.kind === 'batch' && entry.first === first) return entry.ack;
	return null;
}

/** read = staged + rejected: whom the service suppresses it tells when it is asked to send. */
export function countsOf(items: readonly Item[]): AcceptCounts {
	const staged = items.reduce((sum, item) => sum + seatsOf(item), 0);
	return { staged, suppressed: 0, rejected: items.filter((item) => 'code' in item).length };
}

function rejectsOf(rows: readonly (readonly Item[])[], first: number): Reject[] {
	return rows.flatMap((items, index) =>
		items.flatMap((item) =>
			'code' in item ? [{ row: first + index, code: item.code, error: item.error }] : [],
		),
	);
}
