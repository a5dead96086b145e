/**
 * Imports on a deployment that has none: each row a POST or a PATCH, and the session in a ledger on this machine, so that
 * a run that was killed is gone on with where it stood.
 */
import { createHash } from 'node:crypto';
import type { Api } from '../../api/api.js';
import type { Imports, Session } from '../../api/capabilities.js';
import { notFound } from '../../api/errors.js';
import { type ImportLedger, noImportLedger, openImportLedger } from './import-ledger.js';
import { type ForeignSession, openSession } from './import-session.js';
import { ledgerPath, removeLedger } from './ledger/folder.js';
import { createPace, type Sleep } from './pace.js';

export interface ForeignImportOptions {
	/** Rows at a time, and requests in flight, at most; fewer while the service throttles. */
	concurrency: number;
	/** Rows a second at most. */
	rowsPerSecond?: number;
	/** Where jobs are kept, and which deployment this is; null: nobody goes on with these imports. */
	kept: KeptWhere | null;
	/** Cuts pauses short; rows that are begun are ended. */
	signal?: AbortSignal;
	sleep?: Sleep;
}

export interface KeptWhere {
	folder: string;
	/** Its base URL. */
	deployment: string;
	/** What an earlier run left: to be gone on with, or to be forgotten when the session is opened. */
	earlier: 'resume' | 'forget';
}

/** `Imports` with a word on what could not be said to the service. */
export interface ForeignImports extends Imports {
	/** Rows acknowledged whose `disable_reason` was left out: the document has no way to set one. */
	readonly reasonsLeftOut: number;
	/** The service throttles, and nothing is asked of it for so long; the last listener counts. */
	onPause(listener: (ms: number) => void): void;
	/** Lets others have the jobs; what is not finished stays. */
	close(): Promise<void>;
}

interface OpenImport {
	session: ForeignSession;
	ledger: ImportLedger;
}

/**
 * Counts and rejects are those of the rows in their order, however many are in flight. What concerns more than a row
 * (the list is gone, the token, the network) rejects the batch; its rows may have been written, and are counted as what
 * they were when they are put again: who was about to be created and is there by then is `created`.
 */
export function createForeignImports(api: Api, options: ForeignImportOptions): ForeignImports {
	const { concurrency, rowsPerSecond, kept, signal, sleep } = options;
	const imports = new Map<string, OpenImport>();
	let listener: (ms: number) => void = () => {};
	let reasonsLeftOut = 0;
	const pace = createPace({
		ceiling: concurrency,
		...(rowsPerSecond !== undefined && { rowsPerSecond }),
		...(signal !== undefined && { signal }),
		...(sleep !== undefined && { sleep }),
		onPause: (ms) => listener(ms),
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
			const ledger = kept === null ? noImportLedger() : await openKept(kept, key);
			try {
				const session = await openSession(api, { spec, ledger, pace, concurrency });
				imports.set(key, { session, ledger });
				return sessionOf(key, session);
			} catch (error) {
				await ledger.close();
				throw error;
			}
		},
		put: async (id, batch) => find(id).session.put(batch),
		finish: async (id) => {
			const { session, ledger } = find(id);
			await ledger.remove();
			imports.delete(id);
			reasonsLeftOut += session.reasonsLeftOut;
			return session.totals;
		},
		onPause: (heard) => {
			listener = heard;
		},
		close: async () => {
			for (const { ledger } of imports.values()) await ledger.close();
			imports.clear();
		},
	};
}

function sessionOf(id: string, { position, totals }: ForeignSession): Session {
	return { id, position, counts: totals };
}

async function openKept({ folder, deployment, earlier }: KeptWhere, key: string): Promise<ImportLedger> {
	// A key holds no address of a service, and the same file may be imported into two of them.
	const name = createHash('sha256')
		.update(JSON.stringify([deployment, key]))
		.digest('hex');
	const path = ledgerPath(folder, `import-${name.slice(0, 32)}`);
	if (earlier === 'forget') await removeLedger(path);
	return openImportLedger(path, { deployment, key });
}
