/**
 * What a process does again and again beside its work: it measures the clock, tells others that it lives, and deletes
 * expired data where it leads. One process leads, for a term that it renews with each heartbeat; after its end, or when
 * it resigns, the next heartbeat of another takes over. No session holds the lead: a pooler may stand between.
 */
import { setTimeout } from 'node:timers/promises';
import { type Clock, type Micros, microsPerMs, microsPerSecond, steadyOf } from '../../api/datetime.js';
import { expiries, type SliceOfExpired, whileFull } from '../core/expired.js';
import {
	beat,
	endBeat,
	heartbeatEveryMicros,
	heartbeatFreshMicros,
	type ProcessIdentity,
	processPlace,
	reclaimLeases,
} from '../core/processes.js';
import { provenTime, proveTime } from '../core/retention/proven-time.js';
import type { Sql } from '../core/sql.js';
import type { Database } from './connection.js';
import { dropOutcomes } from './outcomes.js';

export interface Upkeep {
	/** From now on others hear of this command, as one that sends. */
	tellSending(): Promise<void>;
	/** Other processes need not wait for its heartbeat to grow old, nor for the end of its term. Never rejects. */
	end(): Promise<void>;
}

/** Commands only measure the clock: they live for a few seconds. */
export function startUpkeep(
	database: Database,
	{ me, clock }: { me: ProcessIdentity; clock: DatabaseClock },
): Upkeep {
	const leads = me.role !== 'cli';
	let isTold = leads;
	const expiry = createExpiry(database, clock);
	const tick = async () => {
		if (isTold) {
			const now = clock.now();
			const isLeader = await database.write(async ({ sql }) => {
				beat(sql, me, now);
				// A clone of a virtual machine has the same boot: what lives there was heard of.
				await reclaimLeases(sql, { me, heardBefore: now - heartbeatFreshMicros, now });
				const isLeader = leads && (await lead(sql, { holder: me.id, now }));
				const steady = clock.steady?.();
				if (isLeader && steady !== undefined) await proveTime(sql, { now, steady, boot: processPlace() });
				return isLeader;
			});
			expiry.follow({ isLeader, until: now + term });
		}
		await database.read(({ sql }) => clock.measure(sql));
	};
	// A failure is repeated the next time.
	let ticking = Promise.resolve();
	const run = () => {
		ticking = tick().catch(() => undefined);
	};
	if (isTold) run();
	const timer = setInterval(run, heartbeatEveryMicros / microsPerMs).unref();
	return {
		tellSending: async () => {
			if (isTold) return;
			me.role = 'send';
			isTold = true;
			run();
			await ticking;
		},
		end: async () => {
			clearInterval(timer);
			await ticking;
			await expiry.stop();
			const leave = async (sql: Sql) => {
				endBeat(sql, me);
				await resign(sql, me.id);
			};
			if (isTold) await database.write(({ sql }) => leave(sql)).catch(() => undefined);
		},
	};
}

const term: Micros = heartbeatFreshMicros;
const role = 'upkeep';

/** Begins a term or renews it; false: it is another's, and not over. */
export async function lead(sql: Sql, { holder, now }: { holder: string; now: Micros }): Promise<boolean> {
	const { changes } = await sql.run(
		`INSERT INTO leaders AS mine (role, holder, until_at)
		VALUES (?, ?, ?)
		ON CONFLICT (role) DO UPDATE SET holder = excluded.holder, until_at = excluded.until_at
		WHERE mine.holder = excluded.holder OR mine.until_at <= ?`,
		role,
		holder,
		now + term,
		now,
	);
	return changes === 1;
}

/** Ends the term of this holder, if it leads. */
export async function resign(sql: Sql, holder: string): Promise<void> {
	await sql.run('DELETE FROM leaders WHERE role = ? AND holder = ?', role, holder);
}

const expireEvery: Micros = 3_600 * microsPerSecond;
const dropped = [...expiries, { drop: whileFull(dropOutcomes), slice: 1_000 }];

/** Deletes expired data as this process begins to lead, and each hour while it does. */
function createExpiry(database: Database, clock: Clock) {
	let leadsUntil: Micros = 0;
	let next: Micros = Number.NEGATIVE_INFINITY;
	let working: Promise<void> | null = null;
	const dropExpired = async () => {
		const now = await database.read(({ sql }) => provenTime(sql, clock.now()));
		// The HTML parser is loaded for this alone.
		const { onlyLinks } = await import('../../content/only-links.js');
		for (const { drop, slice } of dropped) {
			let after: number | null = 0;
			while (after !== null && clock.now() < leadsUntil) {
				const command: SliceOfExpired = { now, limit: slice, after, onlyLinks };
				const began = performance.now();
				after = (await database.write(({ sql }) => drop(sql, command))).next;
				// Others have half of the time at least.
				if (after !== null) await setTimeout(performance.now() - began);
			}
		}
	};
	return {
		follow: ({ isLeader, until }: { isLeader: boolean; until: Micros }) => {
			const steady = steadyOf(clock);
			leadsUntil = isLeader ? until : 0;
			if (!isLeader) next = Number.NEGATIVE_INFINITY;
			if (!isLeader || working !== null || steady < next) return;
			next = steady + expireEvery;
			working = dropExpired()
				.catch(() => {
					next = Number.NEGATIVE_INFINITY;
				})
				.finally(() => {
					working = null;
				});
		},
		stop: async () => {
			leadsUntil = 0;
			await working;
		},
	};
}

export interface DatabaseClock extends Clock {
	/** Compares the clock of the server with this machine's steady one. Rejects as the question does. */
	measure(sql: Sql): Promise<void>;
}

/** That of the machine until it is measured. A clock that stands still (`--now`) stays as it is. */
export function createDatabaseClock(machine: Clock): DatabaseClock {
	const { steady } = machine;
	let ahead: Micros | null = null;
	return {
		now: () => (ahead === null ? machine.now() : steadyOf(machine) + ahead),
		...(steady !== undefined && { steady }),
		measure: async (sql) => {
			if (steady === undefined) return;
			const asked = steady();
			const found = await sql.number(serverClock);
			// The server read its clock between question and answer. A difference that fits both stays: time does not jump to
			// and fro by a round trip. Another one is taken from the middle.
			const [least, most] = [found - steady(), found - asked];
			if (ahead === null || ahead < least || ahead > most) ahead = Math.round((least + most) / 2);
		},
	};
}

/** Yields its time, in microseconds. */
export const serverClock = 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)';
