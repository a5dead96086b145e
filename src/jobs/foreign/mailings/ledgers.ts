/** Which ledger is which mailing's: one file a job of a deployment, found again by the job's name alone. */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { ledgerPath, listLedgers } from '../ledger/folder.js';
import { readLines } from '../ledger/lines.js';
import { type Ledger, openLedger } from '../ledger.js';
import { type MailingEntry, readEntry } from './entries.js';

/** Where the ledgers of a deployment's mailings are. */
export interface MailingLedgers {
	/** Opens or makes it, for this process alone. Throws `LedgerError`. */
	open(key: string): Promise<Ledger>;
	/** The path of a job's ledger, whether or not it is there. */
	pathOf(key: string): string;
	/** Names of this deployment's jobs, oldest change first. */
	keys(): Promise<string[]>;
}

const kind = 'mailing';
/** Of the entries' shape. */
const version = 1;

/** `deployment`: the base URL, without a slash at its end. */
export function mailingLedgers(folder: string, deployment: string): MailingLedgers {
	const pathOf = (key: string) => {
		// A job may be called anything: its name stands in the header.
		const name = createHash('sha256')
			.update(JSON.stringify([deployment, key]))
			.digest('hex')
			.slice(0, 32);
		return ledgerPath(folder, `send-${name}`);
	};
	return {
		pathOf,
		open: (key) => openLedger(pathOf(key), { header: { kind, version, job: { deployment, key } } }),
		keys: async () => {
			const all = await listLedgers(folder);
			const mine = all.filter(
				({ header }) => header.kind === kind && header.job['deployment'] === deployment,
			);
			mine.sort((a, b) => a.modifiedMs - b.modifiedMs);
			return mine.flatMap(({ header: { job } }) => (typeof job['key'] === 'string' ? [job['key']] : []));
		},
	};
}

/**
 * The entries that are in the file by now, read while somebody may be writing: what is torn at its end is not there
 * yet. Throws `ENOENT` when there is no file.
 */
export async function* readEntries(path: string): AsyncGenerator<MailingEntry, void, undefined> {
	const file = await open(path, 'r');
	try {
		const { size } = await file.stat();
		let isHeader = true;
		for await (const { record } of readLines(file, size)) {
			if (record === null) return;
			if (!isHeader) yield readEntry(record);
			isHeader = false;
		}
	} finally {
		await file.close();
	}
}
