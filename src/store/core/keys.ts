/**
 * The keyring, DKIM keys, hashes of API tokens, and the encryption (wrapping) of stored secrets by AES-256-GCM.
 *
 * Wrapping keys are not in the database, so a copy of the database reveals no secret. Each wrapped secret is bound to
 * its row. If someone moves a secret to a column that users see, unwrapping fails.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { StoreError } from '../../api/errors.js';
import type { StoredDkimKey, StoredKey, StoredToken, WrappingKey } from '../maintenance.js';
import type { Operations } from '../operations.js';
import { each, exists, insertInto, type Secrets, type Sql } from './sql.js';

const prefix = 'wrapped:v1:';
/** This prefix escapes a user's text that looks like a wrapped secret. */
const plainPrefix = 'plain:';
const algorithm = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

/** A secret's place is its table and row key. AES-GCM authenticates the place, so it must not change. */
const secretColumns = [
	{ table: 'settings', column: 'value', key: ['name'], where: "name = 'smtp_password'" },
	{ table: 'keyring', column: 'secret', key: ['purpose', 'id'], where: 'TRUE' },
	{ table: 'webhooks', column: 'password', key: ['id'], where: "password <> ''" },
] as const;

/** Wraps with the first key, unwraps with any. Without keys, secrets are plain text. */
export function secretsOf(keys: readonly WrappingKey[]): Secrets {
	const [current] = keys;
	return {
		wrap: (plain, place) => {
			if (current !== undefined) return wrapped(plain, place, current);
			return plain.startsWith(prefix) || plain.startsWith(plainPrefix) ? plainPrefix + plain : plain;
		},
		unwrap: (stored, place) => {
			if (stored.startsWith(plainPrefix)) return stored.slice(plainPrefix.length);
			return stored.startsWith(prefix) ? unwrapped(stored, place, keys) : stored;
		},
	};
}

function keyIdOf(stored: string): string | null {
	return stored.startsWith(prefix) ? (stored.slice(prefix.length).split(':')[0] ?? '') : null;
}

function wrapped(text: string, place: string, { id, bytes }: WrappingKey): string {
	const iv = randomBytes(ivBytes);
	const cipher = createCipheriv(algorithm, bytes, iv).setAAD(Buffer.from(`${id} ${place}`));
	const sealed = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
	return `${prefix}${id}:${sealed.toString('base64')}`;
}

function unwrapped(text: string, place: string, keys: readonly WrappingKey[]): string {
	const id = keyIdOf(text) ?? '';
	const key = keys.find((one) => one.id === id);
	if (key === undefined) throw keyMissing(id, keys);
	const sealed = Buffer.from(text.slice(prefix.length + id.length + 1), 'base64');
	try {
		const decipher = createDecipheriv(algorithm, key.bytes, sealed.subarray(0, ivBytes));
		decipher.setAAD(Buffer.from(`${id} ${place}`)).setAuthTag(sealed.subarray(-tagBytes));
		const plain = Buffer.concat([decipher.update(sealed.subarray(ivBytes, -tagBytes)), decipher.final()]);
		return plain.toString('utf8');
	} catch (cause) {
		const said = `a secret (${place}) was changed since it was wrapped with key ${id}`;
		throw new StoreError('key', said, { cause });
	}
}

function keyMissing(id: string, keys: readonly WrappingKey[]): StoreError {
	const names = keys.map((key) => key.id).join(', ');
	const given = names === '' ? 'no key is given' : `the key given is ${names}`;
	return new StoreError('key', `the secrets of this database are wrapped with key ${id}, and ${given}`);
}

export async function countSecrets(sql: Sql): Promise<Map<string | null, number>> {
	const counts = new Map<string | null, number>();
	const found = await each(sql, secretColumns, ({ table, column, where }) =>
		sql.tuples<[string]>(`SELECT ${column} FROM ${table} WHERE ${where} ORDER BY ${column}`),
	);
	for (const [text] of found.flat()) counts.set(keyIdOf(text), (counts.get(keyIdOf(text)) ?? 0) + 1);
	return counts;
}

export async function assertKeys(sql: Sql, keys: readonly WrappingKey[]): Promise<void> {
	for (const id of (await countSecrets(sql)).keys())
		if (id !== null && keys.every((key) => key.id !== id)) throw keyMissing(id, keys);
}

async function rewriteSecrets(sql: Sql, as: 'wrapped' | 'plain'): Promise<void> {
	for (const { table, column, key, where } of secretColumns) {
		const rows = await sql.tuples<[stored: string, ...key: (string | number)[]]>(
			`SELECT ${column}, ${key.join(', ')} FROM ${table} WHERE ${where}`,
		);
		const isOfKey = key.map((name) => `${name} = ?`).join(' AND ');
		for (const [stored, ...keys] of rows) {
			const place = [table, ...keys].join(' ');
			const plain = sql.secrets.unwrap(stored, place);
			const fresh = as === 'wrapped' ? sql.secrets.wrap(plain, place) : plain;
			sql.write(`UPDATE ${table} SET ${column} = ? WHERE ${isOfKey}`, [fresh, ...keys]);
		}
	}
}

export async function findKeys(
	sql: Sql,
	purpose: string,
	since = Number.MAX_SAFE_INTEGER,
): Promise<StoredKey[]> {
	const stored = await sql.all<StoredKey>(
		`SELECT id, secret, created_at, retired_at AS retires_at
		FROM keyring
		WHERE purpose = ? AND (retired_at IS NULL OR retired_at > ?)
		ORDER BY retired_at IS NOT NULL, created_at DESC, id DESC`,
		[purpose, since],
	);
	return readKeys(sql, purpose, stored);
}

function readKeys<Row extends { id: number; secret: string }>(
	{ secrets }: Sql,
	purpose: string,
	rows: readonly Row[],
): Row[] {
	return rows.map((row) => ({ ...row, secret: secrets.unwrap(row.secret, keyPlace(purpose, row.id)) }));
}

export function insertKey(
	sql: Sql,
	{ purpose, id, secret: plain, now }: { purpose: string; id: number; secret: string; now: number },
): void {
	const secret = sql.secrets.wrap(plain, keyPlace(purpose, id));
	insertInto(sql, 'keyring', { purpose, id, secret, created_at: now });
}

function keyPlace(purpose: string, id: number): string {
	return `keyring ${purpose} ${id}`;
}

export function createKeys(sql: Sql) {
	const selectTokens = async (rest: string, ...values: string[]) => {
		const rows = await sql.all<Omit<StoredToken, 'scopes'> & { scopes: string }>(
			`SELECT name, scopes, created_at, revoked_at FROM tokens ${rest}`,
			values,
		);
		return rows.map((row): StoredToken => ({ ...row, scopes: row.scopes.split(' ') }));
	};
	return {
		ensureKey: async ({ purpose, fresh, rotateAfter, now }) => {
			const keys = await findKeys(sql, purpose);
			const [newest] = keys;
			if (newest !== undefined && newest.created_at > now - rotateAfter) return keys;
			insertKey(sql, { purpose, ...fresh, now });
			return await findKeys(sql, purpose);
		},
		rewriteSecrets: async ({ as, isTrial }) => {
			if (!isTrial) await sql.overwriting(() => rewriteSecrets(sql, as));
			return [];
		},
		secretCounts: async () => [...(await countSecrets(sql))].map(([key, secrets]) => ({ key, secrets })),
		listTokens: () => selectTokens('ORDER BY created_at, sha256'),
		findToken: async ({ sha256 }) =>
			(await selectTokens('WHERE sha256 = ? AND revoked_at IS NULL', sha256))[0] ?? null,
		createToken: async ({ sha256, name, scopes, now }) => {
			if (await exists(sql, 'SELECT 1 FROM tokens WHERE name = ? AND revoked_at IS NULL', [name]))
				return false;
			insertInto(sql, 'tokens', { sha256, name, scopes: scopes.join(' '), created_at: now });
			return true;
		},
		revokeToken: async ({ name, now }) =>
			(await sql.run('UPDATE tokens SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL', [now, name]))
				.changes > 0,
		listDkimKeys: async () => {
			const stored = await sql.all<StoredDkimKey & { id: number }>(
				`SELECT d.id, d.domain, d.selector, d.type, k.secret, d.created_at
				FROM dkim_keys d
				JOIN keyring k ON k.purpose = 'dkim' AND k.id = d.id
				ORDER BY d.domain, d.id`,
			);
			return readKeys(sql, 'dkim', stored).map(({ id: _, ...key }) => key);
		},
		addDkimKey: async ({ domain, selector, type, secret, now }) => {
			const [added] = await sql.tuples<[id: number]>(
				`INSERT INTO dkim_keys (domain, selector, type, created_at)
				VALUES (?, ?, ?, ?)
				ON CONFLICT (domain, selector) DO NOTHING
				RETURNING id`,
				[domain, selector, type, now],
			);
			if (added === undefined) return false;
			insertKey(sql, { purpose: 'dkim', id: added[0], secret, now });
			return true;
		},
		removeDkimKey: async ({ domain, selector }) => {
			const [removed] = await sql.tuples<[id: number]>(
				'DELETE FROM dkim_keys WHERE domain = ? AND selector = ? RETURNING id',
				[domain, selector],
			);
			if (removed === undefined) return false;
			await sql.overwriting(() =>
				sql.run("DELETE FROM keyring WHERE purpose = 'dkim' AND id = ?", [removed[0]]),
			);
			return true;
		},
	} satisfies Partial<Operations>;
}
