/**
 * Measures the server's clock and sends heartbeats. The leading process also deletes expired data. Each heartbeat of
 * the leader extends its term in the table `leaders`. When a term expires, another process may lead. A session-level
 * advisory lock would not work through a pooler.
 */
import { type Clock, type Micros, microsPerMs, microsPerSecond, steadyOf } from '../../api/datetime.js';
import {
	beat,
	endBeat,
	heartbeatEveryMicros,
	heartbeatFreshMicros,
	type ProcessIdentity,
	processPlace,
	provenTime,
	proveTime,
	reclaimLeases,
} from '../core/processes.js';
import { expiries, whileFull } from '../core/retention.js';
import type { Sql } from '../core/sql.js';
import { dropInSlices } from '../slices.js';
import type { Database } from './connection.js';
import { dropReceipts } from './receipts.js';

export class Upkeep {
	readonly #database: Database;
	readonly #me: ProcessIdentity;
	readonly #clock: DatabaseClock;
	#isTold: boolean;
	readonly #leads: boolean;
	readonly #timer: NodeJS.Timeout;
	#ticking = Promise.resolve();
	#leadsUntil: Micros = 0;
	#nextExpiry: Micros = Number.NEGATIVE_INFINITY;
	#expiring: Promise<void> | null = null;

	constructor(database: Database, { me, clock }: { me: ProcessIdentity; clock: DatabaseClock }) {
		this.#database = database;
		this.#me = me;
		this.#clock = clock;
		this.#leads = me.role !== 'cli';
		this.#isTold = this.#leads;
		if (this.#isTold) this.#run();
		this.#timer = setInterval(() => this.#run(), heartbeatEveryMicros / microsPerMs).unref();
	}

	async tellSending(): Promise<void> {
		if (this.#isTold) return;
		this.#me.role = 'send';
		this.#isTold = true;
		this.#run();
		await this.#ticking;
	}

	/**
	 * Deletes this process's heartbeat and its term as leader, so that no process waits for the term to expire. Never
	 * rejects.
	 */
	async end(): Promise<void> {
		clearInterval(this.#timer);
		await this.#ticking;
		this.#leadsUntil = 0;
		await this.#expiring;
		if (!this.#isTold) return;
		const leave = async (sql: Sql) => {
			endBeat(sql, this.#me);
			await resign(sql, this.#me.id);
		};
		await this.#database.write(({ sql }) => leave(sql)).catch(() => undefined);
	}

	#run(): void {
		this.#ticking = this.#tick().catch(() => undefined);
	}

	async #tick(): Promise<void> {
		if (this.#isTold) await this.#beat();
		await this.#database.read(({ sql }) => this.#clock.measure(sql));
	}

	async #beat(): Promise<void> {
		const me = this.#me;
		const now = this.#clock.now();
		const isLeader = await this.#database.write(async ({ sql }) => {
			beat(sql, me, now);
			// Processes on a cloned machine have the same boot id, so `isLost` may be wrong about them. Therefore reclaim
			// leases only after their owner's heartbeat has expired.
			await reclaimLeases(sql, { me, heardBefore: now - heartbeatFreshMicros, now });
			const isLeader = this.#leads && (await lead(sql, { holder: me.id, now }));
			const steady = this.#clock.steady?.();
			if (isLeader && steady !== undefined) await proveTime(sql, { now, steady, boot: processPlace() });
			return isLeader;
		});
		this.#leadsUntil = isLeader ? now + term : 0;
		if (!isLeader) this.#nextExpiry = Number.NEGATIVE_INFINITY;
		const steady = steadyOf(this.#clock);
		if (!isLeader || this.#expiring !== null || steady < this.#nextExpiry) return;
		this.#nextExpiry = steady + expireEvery;
		this.#expiring = this.#dropExpired()
			.catch(() => {
				this.#nextExpiry = Number.NEGATIVE_INFINITY;
			})
			.finally(() => {
				this.#expiring = null;
			});
	}

	async #dropExpired(): Promise<void> {
		const now = await this.#database.read(({ sql }) => provenTime(sql, this.#clock.now()));
		await dropInSlices(dropped, now, async (drop, command) => {
			if (this.#clock.now() >= this.#leadsUntil) return { next: null };
			return await this.#database.write(({ sql }) => drop(sql, command));
		});
	}
}

const term: Micros = heartbeatFreshMicros;
const role = 'upkeep';

export async function lead(sql: Sql, { holder, now }: { holder: string; now: Micros }): Promise<boolean> {
	const { changes } = await sql.run(
		`INSERT INTO leaders AS mine (role, holder, until_at)
		VALUES (?, ?, ?)
		ON CONFLICT (role) DO UPDATE SET holder = excluded.holder, until_at = excluded.until_at
		WHERE mine.holder = excluded.holder OR mine.until_at <= ?`,
		[role, holder, now + term, now],
	);
	return changes === 1;
}

export async function resign(sql: Sql, holder: string): Promise<void> {
	await sql.run('DELETE FROM leaders WHERE role = ? AND holder = ?', [role, holder]);
}

const expireEvery: Micros = 3_600 * microsPerSecond;
const dropped = [...expiries, { drop: whileFull(dropReceipts), slice: 1_000 }];

export interface DatabaseClock extends Clock {
	measure(sql: Sql): Promise<void>;
}

/** Follows the machine's clock until `measure` has read the server's. A fixed clock (`--now`) stays fixed. */
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
			// The server read its clock between `asked` and now, so the offset is between `least` and `most`. Keep the
			// previous offset if it is in this range, so that the clock does not jump.
			const [least, most] = [found - steady(), found - asked];
			if (ahead === null || ahead < least || ahead > most) ahead = Math.round((least + most) / 2);
		},
	};
}

export const serverClock = 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)';
