/** Whether an address is that of an erased person: only keyed hashes of them are kept. */
import type { EmailKey } from '../../api/address.js';
import { erasedHash } from '../../engine/rules/erasure.js';
import type { StoredKey } from '../keys.js';
import type { Sql } from './sql.js';

/** For many addresses: the keys are read once. `null` where nobody was erased, which is nearly everywhere. */
export function openErased(sql: Sql): ((address: EmailKey) => boolean) | null {
	if (sql.number('SELECT EXISTS (SELECT 1 FROM erased)') === 0) return null;
	const keys = erasureKeys(sql);
	return (address) => keys.some(({ secret }) => isKept(sql, erasedHash(secret, address)));
}

/** Looks for erasures and reads their keys each time; for many addresses use `openErased`. */
export function isErased(sql: Sql, address: EmailKey): boolean {
	return openErased(sql)?.(address) ?? false;
}

/** Newest first. */
export function erasureKeys(sql: Sql): Pick<StoredKey, 'id' | 'secret'>[] {
	return sql.all<Pick<StoredKey, 'id' | 'secret'>>(
		"SELECT id, secret FROM keyring WHERE purpose = 'erasure' ORDER BY created_at DESC, id DESC",
	);
}

function isKept(sql: Sql, hash: string): boolean {
	return sql.number('SELECT EXISTS (SELECT 1 FROM erased WHERE email_hash = ?)', hash) === 1;
}
