import type { Clock } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { inspectStore } from '../../store/open.js';
import type { Reads } from '../../store/store.js';
import { isMissingFile, isPostgres } from '../../store/url.js';
import type { SecretCount } from '../frame/connection.js';
import type { LocalTarget } from './local.js';

/**
 * Rows whose parent is missing, in words; a few. Changes nothing. Throws `DatabaseMissing` and `StoreError`: "damaged" in
 * SQLite's own words.
 */
export function readWhole(url: string): string[] {
	if (isPostgres(url)) return [];
	const found = inspectStore(url);
	try {
		const damage = found.findDamage('whole');
		if (damage.length > 0) throw new StoreError('damaged', `${url} is damaged: ${damage.join('; ')}`);
		return found.findOrphans();
	} finally {
		found.close();
	}
}

/**
 * None where the default database was not made yet. Nothing is made, migrated or written. Rejects with
 * `DatabaseMissing`, `UnsupportedDatabase` and `StoreError`.
 */
export async function countSecrets({ url, create }: LocalTarget, clock: Clock): Promise<SecretCount[]> {
	if (isPostgres(url)) {
		const { inspectPostgres } = await import('../../store/postgres/inspect.js');
		return await countedBy(await inspectPostgres(url, { keys: [], clock }));
	}
	if (create && isMissingFile(url)) return [];
	return await countedBy(inspectStore(url));
}

async function countedBy(found: {
	reads: Pick<Reads, 'secretCounts'>;
	close(): unknown;
}): Promise<SecretCount[]> {
	try {
		return await found.reads.secretCounts();
	} finally {
		await found.close();
	}
}
