import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Clock } from '../../api/datetime.js';
import { isBounce } from '../../engine/rules/outcomes.js';
import { assertKeys } from '../core/keys.js';
import { findFresh, type ProcessIdentity, processMark } from '../core/processes.js';
import { DatabaseMissing } from '../errors.js';
import type { WrappingKey } from '../maintenance.js';
import {
	type Command,
	carryOut,
	driverOf,
	holdsOf,
	type Queue,
	traitsOf,
	type Writes,
} from '../operations.js';
import type { Settlement } from '../queue.js';
import { inSlices, leaseInSlices, type Steps } from '../slices.js';
import type { ImportAck, Store } from '../store.js';
import { shownDatabase } from '../url.js';
import { Database, type Habit, type Session } from './connection.js';
import { isDuplicate } from './failures.js';
import type { Listening } from './listen.js';
import { migrate, readVersion, schemaVersion } from './migrations.js';
import { type Place, readPlace } from './place.js';
import { createReceipts } from './receipts.js';
import { createDatabaseClock, type DatabaseClock, Upkeep } from './upkeep.js';

export interface PostgresOptions {
	url: string;
	clock: Clock;
	mode: 'create' | 'existing';
	role?: string;
	lockTimeoutMs?: number;
	isTrial?: boolean;
	keys?: readonly WrappingKey[];
	/** Aborting this signal rolls back the current write. Later writes, such as the cleanup of a job, still run. */
	stop?: AbortSignal | undefined;
	onWait?: (() => () => void) | undefined;
}

const sizes: Readonly<Record<string, number>> = { cli: 2, worker: 4, serve: 9, 'serve --no-worker': 9 };

export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
	const { role = 'cli', isTrial = false, keys = [], lockTimeoutMs = 10_000 } = options;
	const place = readPlace(options.url);
	const clock = createDatabaseClock(options.clock);
	const size = isTrial ? 1 : (place.pool ?? sizes[role] ?? 2);
	const { onWait } = options;
	const database = new Database({ place, size, role, keys, lockTimeoutMs, isTrial, onWait });
	try {
		await prepare(database, options, { clock, place, keys });
	} catch (error) {
		await database.close();
		throw error;
	}
	const id = `${processMark()}/${randomUUID()}`;
	const me: ProcessIdentity = { id, role, host: hostname(), pid: process.pid };
	const upkeep = isTrial ? null : new Upkeep(database, { me, clock });
	const receipts = createReceipts(clock);
	const setup: { name: string; command: unknown }[] = [];
	const leasing: Habit = { isAlone: false };
	const write = async (name: string, command: unknown) => {
		const traits = traitsOf(name);
		const operate = async ({ core }: Session) => {
			for (const earlier of setup) await carryOut(core, earlier.name, earlier.command);
			return await carryOut(core, name, command);
		};
		const means = isTrial
			? {}
			: {
					...{ holds: holdsOf(name, command), receipt: receipts.receiptFor(name) },
					habit: name === 'leaseSlice' ? leasing : null,
					stop: traits.records ? null : (options.stop ?? null),
				};
		const answer = await database.write(operate, means);
		if (!isTrial && traits.wakes) database.notify();
		if (isTrial && traits.prepares) setup.push({ name, command });
		return answer;
	};
	const steps: Steps = { step: write as Steps['step'], isTrial };
	const putBatch: PutBatch = (command) => steps.step('putImportBatch', command);
	const listeners = new Set<() => void>();
	let listening: Listening | null = null;
	let closing: Promise<void> | null = null;
	return {
		clock,
		reads: driverOf('reads', (name, command) =>
			database.read(({ core }) => carryOut(core, name, command) as Promise<unknown>),
		),
		writes: {
			...driverOf('writes', write),
			rewriteSecrets: (command) =>
				database.write(
					async ({ core, sql }) => {
						const others = await findFresh(sql, me, command.now);
						return others.length > 0 ? others : await core.rewriteSecrets(command);
					},
					{ stop: options.stop ?? null },
				),
			...inSlices(steps),
			putImportBatch: inOrder(isTrial ? putBatch : expectingNew(putBatch)),
		} satisfies Writes,
		queue: {
			...driverOf('queue', write),
			settle: (command) => settleApart(steps, command),
			lease: async (command) => {
				await upkeep?.tellSending();
				return leaseInSlices(() => steps.step('leaseSlice', command));
			},
		} satisfies Queue,
		onReady: (onReady) => {
			const one = () => onReady();
			listeners.add(one);
			if (!isTrial && role !== 'cli')
				listening ??= database.listen(() => {
					for (const tell of listeners) tell();
				});
			return () => void listeners.delete(one);
		},
		close: () => {
			listening?.stop();
			closing ??= Promise.resolve(upkeep?.end()).then(() => database.close());
			return closing;
		},
	};
}

async function prepare(
	database: Database,
	{ url, mode }: Pick<PostgresOptions, 'url' | 'mode'>,
	{ place, clock, keys }: { place: Place; clock: DatabaseClock; keys: readonly WrappingKey[] },
): Promise<void> {
	const { schema, name } = place;
	const found = await database.read(async ({ sql }) => {
		const [, version] = await sql.together([() => clock.measure(sql), () => readVersion(sql, name)]);
		if (version === schemaVersion) await assertKeys(sql, keys);
		return version;
	});
	if (found === 0 && mode === 'existing') throw new DatabaseMissing(shownDatabase(url));
	if (found === schemaVersion) return;
	await database.write(async (session) => {
		if (schema !== 'public') await session.sql.run(`CREATE SCHEMA IF NOT EXISTS "${schema}"`);
		await migrate(session, { name, now: clock.now() });
	});
	await database.read(({ sql }) => assertKeys(sql, keys));
}

/**
 * Recording a bounce locks the whole project, so record the other settlements first, without that lock. If the second
 * step fails, the caller repeats both.
 */
async function settleApart({ step }: Steps, { settlements }: Command<'settle'>) {
	const rest = settlements.filter(({ outcome }) => !isBounce(outcome));
	const bounces = settlements.filter(({ outcome }) => isBounce(outcome));
	const answers = new Map<Settlement, 'recorded' | 'lost_lease'>();
	for (const group of [rest, bounces]) {
		if (group.length === 0) continue;
		const each = await step('settle', { settlements: group });
		for (const [at, settlement] of group.entries()) answers.set(settlement, each[at] ?? 'lost_lease');
	}
	return settlements.map((settlement) => answers.get(settlement) ?? 'lost_lease');
}

type PutBatch = (command: Command<'putImportBatch'>) => Promise<ImportAck>;

/** Inserts without looking addresses up, which is a tenth faster while all rows are new. */
function expectingNew(put: PutBatch): PutBatch {
	return (command) =>
		put({ ...command, expects_new: true }).catch((error: unknown) => {
			if (isDuplicate(error)) return put(command);
			throw error;
		});
}

function inOrder(put: PutBatch): PutBatch {
	const last = new Map<string, Promise<unknown>>();
	return (command) => {
		const before = last.get(command.session)?.catch(() => undefined);
		const mine = before === undefined ? put(command) : before.then(() => put(command));
		last.set(command.session, mine);
		const forget = () => {
			if (last.get(command.session) === mine) last.delete(command.session);
		};
		mine.then(forget, forget);
		return mine;
	};
}
