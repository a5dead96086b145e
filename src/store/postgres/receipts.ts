/**
 * Recovers a write whose COMMIT got no answer. The transaction also stores its result in the table `outcomes`. The next
 * try returns the stored result, or repeats the write if none is stored.
 */
import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { type Clock, type Micros, microsPerDay } from '../../api/datetime.js';
import type { Sql } from '../core/sql.js';
import { traitsOf } from '../operations.js';

export interface Receipt {
	put(sql: Sql, answer: unknown): void;
	find(sql: Sql): Promise<{ answer: unknown } | null>;
	settle(): void;
}

interface Receipts {
	receiptFor(operation: string): Receipt | null;
}

/** Answers contain addresses and secrets, so a key in this process's memory encrypts them. */
export function createReceipts(clock: Clock): Receipts {
	const key = randomBytes(32);
	const settled: string[] = [];
	return {
		receiptFor: (operation) => {
			if (traitsOf(operation).repeatable) return null;
			const op = randomUUID();
			const deleting: string[] = [];
			return {
				put: (sql, answer) => {
					deleting.push(...settled.splice(0));
					const sealed = seal(key, answer);
					sql.write('INSERT INTO outcomes (op, answer, at) VALUES (?, ?, ?)', [op, sealed, clock.now()]);
					for (const one of deleting) sql.write('DELETE FROM outcomes WHERE op = ?', [one]);
				},
				find: async (sql) => {
					const row = await sql.get<{ answer: Uint8Array }>(
						'UPDATE outcomes SET at = ? WHERE op = ? RETURNING answer',
						[clock.now(), op],
					);
					return row === undefined ? null : { answer: unseal(key, row.answer) };
				},
				settle: () => void settled.push(op),
			};
		},
	};
}

const algorithm = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

function seal(key: Buffer, answer: unknown): Buffer {
	const iv = randomBytes(ivBytes);
	const cipher = createCipheriv(algorithm, key, iv);
	const sealed = Buffer.concat([cipher.update(serialize(answer)), cipher.final()]);
	return Buffer.concat([iv, cipher.getAuthTag(), sealed]);
}

function unseal(key: Buffer, bytes: Uint8Array): unknown {
	const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, ivBytes));
	decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
	const opened = Buffer.concat([decipher.update(bytes.subarray(ivBytes + tagBytes)), decipher.final()]);
	return deserialize(opened);
}

export async function dropReceipts(sql: Sql, { now, limit }: { now: Micros; limit: number }) {
	return await sql.run(
		'DELETE FROM outcomes WHERE op IN (SELECT op FROM outcomes WHERE at <= ? ORDER BY at, op LIMIT ?)',
		[now - microsPerDay, limit],
	);
}
