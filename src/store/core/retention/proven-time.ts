/** The time by which data is deleted. A clock may start years ahead: its time counts once the database has seen it pass. */
import { type Micros, microsPerDay, microsPerSecond } from '../../../api/datetime.js';
import { parseStored } from '../../errors.js';
import type { Operations } from '../../operations.js';
import { insertInto, type Sql } from '../sql.js';

interface Proven {
	at: Micros;
	boot: string;
	steady: Micros;
	/** How far the clock was ahead, and how long it has run since it was not. */
	ahead: Micros;
	agreed: Micros;
}

/** A machine that was off for this long needs no proof. */
const slack: Micros = 3_600 * microsPerSecond;

export function createProvenTime(sql: Sql) {
	return {
		clockAhead: async ({ now }) => now - (await provenTime(sql, now)),
	} satisfies Partial<Operations>;
}

/** The clock's time, or the proven one where the clock is more than `most` ahead of it. */
export async function provenTime(sql: Sql, now: Micros, most: Micros = slack): Promise<Micros> {
	const kept = await read(sql);
	return kept !== null && now - kept.at > most ? kept.at : now;
}

/** A clock that is far ahead is right after a day beside the steady one in which a message was recorded. */
export async function proveTime(
	sql: Sql,
	{ now, steady, boot }: { now: Micros; steady: Micros; boot: string },
): Promise<void> {
	const kept = await read(sql);
	const newest = await sql.get<{ at: Micros }>(
		'SELECT created_at AS at FROM messages ORDER BY id DESC LIMIT 1',
	);
	const passed = kept?.boot === boot ? Math.max(0, steady - kept.steady) : 0;
	const at = kept === null ? (newest?.at ?? now) : kept.at + passed;
	const ahead = now - at;
	const isSame = kept !== null && Math.abs(ahead - kept.ahead) < microsPerDay;
	const agreed = isSame ? kept.agreed + passed : 0;
	const isRight =
		ahead <= slack || (agreed >= microsPerDay && newest !== undefined && newest.at > now - microsPerDay);
	const next: Proven = isRight
		? { at: now, boot, steady, ahead: 0, agreed: 0 }
		: { at, boot, steady, ahead, agreed };
	const row = { id: 1, boot: '', ahead: 0, proven: JSON.stringify(next) };
	insertInto(sql, 'clock', row, 'ON CONFLICT (id) DO UPDATE SET proven = excluded.proven');
}

async function read(sql: Sql): Promise<Proven | null> {
	const row = await sql.get<{ proven: string | null }>('SELECT proven FROM clock');
	return row?.proven == null ? null : (parseStored(row.proven) as Proven);
}
