import { setImmediate } from 'node:timers/promises';
import type Database from 'better-sqlite3';
import { type Micros, microsPerMs, monotonicMicros } from '../../api/datetime.js';
import type { WrappingKey } from '../keys.js';
import { driverOf } from '../operations.js';
import type { Reads } from '../store.js';
import { openConnection } from './connection.js';
import { type Core, carryOut, createCore } from './core.js';
import { endsTransaction, isBusy, translateFailure } from './failures.js';
import { createSql } from './sql.js';

export interface Reader {
	readonly reads: Reads;
	close(): Promise<void>;
}

const busyTimeoutMs = 1_000;

export function openSqliteReader(path: string, keys: readonly WrappingKey[] = []): Reader {
	const db = openConnection({ path, mode: 'existing', role: 'reader', busyTimeoutMs });
	return {
		reads: createReads({ db, path, core: createCore(createSql(db, keys)), inSnapshot: turnSnapshots(db) }),
		close: async () => void db.close(),
	};
}

interface ReadingConnection {
	db: Database.Database;
	path: string;
	core: Core;
	inSnapshot?: InSnapshot;
}

type InSnapshot = <R>(read: () => R) => R;

/** A walk of thousands of reads would otherwise block signals and progress. */
const longestTurn: Micros = 50 * microsPerMs;

export function createReads({ db, path, core, inSnapshot = snapshots(db) }: ReadingConnection): Reads {
	let turnBegan = 0;
	return driverOf('reads', async (name, command) => {
		if (monotonicMicros() - turnBegan > longestTurn) {
			await setImmediate();
			turnBegan = monotonicMicros();
		}
		try {
			return inSnapshot(() => carryOut(core, name, command));
		} catch (error) {
			throw isBusy(error) || endsTransaction(error) ? translateFailure(error, path) : error;
		}
	});
}

function snapshots(db: Database.Database): InSnapshot {
	const transact = db.transaction((read: () => unknown) => read());
	return (read) => transact.deferred(read) as ReturnType<typeof read>;
}

/** All reads of a turn share one: a snapshot costs more than a short read. */
function turnSnapshots(db: Database.Database): InSnapshot {
	const begin = db.prepare('BEGIN');
	const commit = db.prepare('COMMIT');
	const end = () => {
		if (db.inTransaction) commit.run();
	};
	return (read) => {
		if (!db.inTransaction) {
			begin.run();
			process.nextTick(end);
		}
		return read();
	};
}
