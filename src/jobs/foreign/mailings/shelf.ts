/** The mailings a command works with: found by name or id, opened when something is written, closed together. */
import { notFound } from '../../../api/errors.js';
import type { Uuid } from '../../../api/records.js';
import type { MailingBook } from './book.js';
import type { MailingEntry, MailingIdentity } from './entries.js';
import { lookAtMailing, type MailingFile, openMailingFile } from './file.js';
import { type MailingLedgers, readEntries } from './ledgers.js';

export interface MailingShelf {
	/** Opened for this process alone, and made where it is new. Throws `LedgerError`. */
	open(identity: MailingIdentity): Promise<MailingFile>;
	/** One that was opened or looked at before, for writing. Throws `not_found`. */
	file(id: Uuid): Promise<MailingFile>;
	/** Where it stands by now, whoever is at work on it. Throws `not_found`. */
	book(id: Uuid): Promise<MailingBook>;
	/** The same by the job's name; null: there is none. */
	look(key: string): Promise<MailingBook | null>;
	entries(id: Uuid): AsyncIterable<MailingEntry>;
	keys(): Promise<string[]>;
	close(): Promise<void>;
}

/** For one command, which closes it: until then nobody else may open what it has opened. */
export function createShelf(ledgers: MailingLedgers): MailingShelf {
	const opened = new Map<string, Promise<MailingFile>>();
	const known = new Map<Uuid, MailingIdentity>();
	const identityOf = (id: Uuid) => {
		const identity = known.get(id);
		if (identity === undefined) throw notFound();
		return identity;
	};
	const open = async (identity: MailingIdentity) => {
		const opening = opened.get(identity.key) ?? openMailingFile(ledgers, identity);
		opened.set(identity.key, opening);
		// Somebody else may have it now and not later.
		opening.catch(() => opened.delete(identity.key));
		const file = await opening;
		known.set(file.identity.id, file.identity);
		return file;
	};
	const look = async (key: string) => {
		const mine = opened.get(key);
		const book = mine === undefined ? await lookAtMailing(ledgers, key) : (await mine).book;
		if (book?.identity != null) known.set(book.identity.id, book.identity);
		return book;
	};
	return {
		open,
		look,
		file: async (id) => open(identityOf(id)),
		book: async (id) => {
			const book = await look(identityOf(id).key);
			if (book === null) throw notFound();
			return book;
		},
		entries: (id) => readEntries(ledgers.pathOf(identityOf(id).key)),
		keys: () => ledgers.keys(),
		close: async () => {
			const files = await Promise.allSettled(opened.values());
			opened.clear();
			for (const file of files) if (file.status === 'fulfilled') await file.value.close();
		},
	};
}
