/** A mailing of this machine: its ledger, held by this process alone, and where it stands by it. */
import { type EmailKey, emailKey } from '../../../api/address.js';
import { AddressSet } from '../address-set.js';
import type { Ledger } from '../ledger.js';
import { MailingBook } from './book.js';
import type { Item, MailingEntry, MailingIdentity } from './entries.js';
import { type MailingLedgers, readEntries } from './ledgers.js';
import { requestKeys } from './requests.js';

/** An open mailing; `close` it once. */
export interface MailingFile {
	book: MailingBook;
	identity: MailingIdentity;
	/** Resolves when the entries are durable and count; rejects as the system does, and then they do not. */
	write(entries: readonly MailingEntry[]): Promise<void>;
	/** What is in the ledger by now, from its beginning. */
	entries(): AsyncIterable<MailingEntry>;
	/** Whom the mailing has by now; reads the ledger the first time. */
	addresses(): Promise<AddressSet>;
	/** After an entry that voids what was staged. */
	forgetAddresses(): void;
	close(): Promise<void>;
}

/** `identity` is written where the job is new. Throws `LedgerError`: another process has it, or it cannot be read. */
export async function openMailingFile(
	ledgers: MailingLedgers,
	identity: Omit<MailingIdentity, 'kind'>,
): Promise<MailingFile> {
	const ledger = await ledgers.open(identity.key);
	try {
		const book = new MailingBook();
		for await (const entry of readEntries(ledger.path)) book.apply(entry);
		book.closeEarlierRuns();
		if (book.identity === null) {
			const first = { kind: 'mailing', ...identity } as const;
			await ledger.append([first]);
			book.apply(first);
		}
		return createFile(ledger, book, book.identity ?? identity);
	} catch (error) {
		await ledger.close();
		throw error;
	}
}

/** Where a mailing stands, read while another process may be at work on it; null: there is none of that name. */
export async function lookAtMailing(ledgers: MailingLedgers, key: string): Promise<MailingBook | null> {
	const book = new MailingBook();
	try {
		for await (const entry of readEntries(ledgers.pathOf(key))) book.apply(entry);
	} catch (error) {
		if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
		throw error;
	}
	return book.identity === null ? null : book;
}

function createFile(ledger: Ledger, book: MailingBook, identity: MailingIdentity): MailingFile {
	let addresses: Promise<AddressSet> | null = null;
	const entries = () => readEntries(ledger.path);
	return {
		book,
		identity,
		write: async (written) => {
			await ledger.append(written.map((entry) => ({ ...entry })));
			for (const entry of written) book.apply(entry);
		},
		entries,
		addresses: () => {
			addresses ??= gather(entries());
			return addresses;
		},
		forgetAddresses: () => {
			addresses = null;
		},
		close: () => ledger.close(),
	};
}

async function gather(entries: AsyncIterable<MailingEntry>): Promise<AddressSet> {
	let addresses = new AddressSet();
	for await (const entry of entries) {
		if (entry.kind === 'anew') addresses = new AddressSet();
		if (entry.kind !== 'batch' && entry.kind !== 'list') continue;
		for (const key of entry.items.flatMap(keysOf)) addresses.add(key);
	}
	return addresses;
}

function keysOf(item: Item): EmailKey[] {
	if ('code' in item) return [];
	return 'request' in item ? requestKeys(item.request, item.to) : [emailKey(item.to)];
}
