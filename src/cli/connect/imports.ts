import { stat } from 'node:fs/promises';
import type { Clock } from '../../api/datetime.js';
import type { ReadBundles } from '../../jobs/import-bundles.js';
import { jobFiles } from '../../jobs/job-files.js';
import type { KeepImport, KeptImport } from '../../jobs/single-imports.js';
import { openStore } from '../../store/open.js';
import type { RowImport, Store } from '../../store/store.js';
import type { TableOptions } from '../../tables/read-table.js';

export interface KeptWhere {
	folder: string;
	deployment: string;
	clock: Clock;
	earlier: 'resume' | 'forget';
}

const slice = 10_000;

export function keepImports({ folder, deployment, clock, earlier }: KeptWhere): KeepImport {
	const files = jobFiles(folder, deployment);
	return async (key) => {
		const lock = await files.hold(`import ${key}`, `this job (the import ${key.slice(0, 12)})`);
		let store: Store | null = null;
		try {
			store = await openStore(files.database, { clock, mode: 'create', hasShortLog: true });
			const { writes } = store;
			const known = await writes.openRowImport({ key, now: clock.now() });
			const isForgotten = earlier === 'forget' && (known.position > 0 || known.intents.length > 0);
			if (isForgotten) await writes.dropRowImport(known);
			const kept = isForgotten ? await writes.openRowImport({ key, now: clock.now() }) : known;
			return keptImport(store, kept, lock.release);
		} catch (error) {
			await store?.close();
			await lock.release();
			throw error;
		}
	};
}

function keptImport(store: Store, kept: RowImport, release: () => Promise<void>): KeptImport {
	const { reads, writes } = store;
	const { import: number, position, counts, reasons_left_out, last, intents } = kept;
	const close = async () => {
		await store.close();
		await release();
	};
	return {
		position,
		counts,
		reasonsLeftOut: reasons_left_out,
		last,
		begun: new Map(intents.map(({ row, intent }) => [row, intent])),
		taken: async function* () {
			for (let after = ''; ; ) {
				const found = await reads.sliceImportAddresses({ import: number, after, limit: slice });
				yield* found;
				const end = found.at(-1);
				if (end === undefined) return;
				after = end;
			}
		},
		declare: (row, intent) => writes.declareRow({ import: number, row, intent }),
		acknowledge: ({ first, ack, reasonsLeftOut, taken }) =>
			writes.acknowledgeRows({ import: number, first, ack, reasons_left_out: reasonsLeftOut, taken }),
		close,
		remove: async () => {
			await writes.dropRowImport({ import: number });
			await close();
		},
	};
}

/** Starting a thread takes longer than reading a smaller file. */
const minBytes = 1024 * 1024;

/** Returns null if this thread should read the rows. Takes the options with which the caller opened the table. */
export async function bundlesOf(
	path: string,
	{ encoding = 'auto', delimiter = 'auto' }: TableOptions,
	signal: AbortSignal,
): Promise<ReadBundles | null> {
	const file = await stat(path).catch(() => null);
	// A named pipe cannot be opened a second time.
	if (file === null || !file.isFile() || file.size < minBytes) return null;
	const { readInThread } = await import('../../threads/table-reader.js');
	return (request) => readInThread({ path, encoding, delimiter, request }, signal);
}
