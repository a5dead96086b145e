/** The clock of the database's server: processes on all machines lease, fence and schedule by it. */
import { type Clock, type Micros, steadyOf } from '../../api/datetime.js';
import type { Sql } from '../core/sql.js';

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
