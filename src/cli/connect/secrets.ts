/** The stored secrets of a database, counted without their key. */
import { existsSync } from 'node:fs';
import { inspectStore } from '../../store/open.js';
import type { SecretCount } from '../frame/connection.js';
import type { LocalTarget } from './local.js';

/** None where the default database was not made yet. Nothing is made, migrated or written. Throws `DatabaseMissing`, `UnsupportedDatabase` and `StoreError`. */
export async function countSecrets({ url, create }: LocalTarget): Promise<SecretCount[]> {
	if (create && !existsSync(url)) return [];
	const found = inspectStore(url);
	try {
		return await found.reads.secretCounts();
	} finally {
		found.close();
	}
}
