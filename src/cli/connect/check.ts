/** A database file read from end to end; a server looks after its pages and references itself. */
import { StoreError } from '../../api/errors.js';
import { inspectStore } from '../../store/open.js';
import { isPostgres } from '../../store/url.js';

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
