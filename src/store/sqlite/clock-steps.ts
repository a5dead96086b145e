/**
 * Handles steps of the machine's clock while processes run (NTP, a machine that slept). The clock of all queue times
 * is kept in the database. The first process that writes by another clock moves the times over, so leases and waits
 * keep their lengths.
 */

import { readFileSync } from 'node:fs';
import { type Clock, type Micros, microsPerSecond } from '../../api/datetime.js';
import { setAside } from '../core/sql.js';
import { closeHolds, openLanes } from './core.js';
import type { Sql } from './sql.js';

const smallestStep: Micros = microsPerSecond;

const longestBehind: Micros = 600 * microsPerSecond;

export class KeptClock {
	readonly #clock: Clock;
	readonly #boot: string;
	/** False for a boot without a name: stored values may be of the previous boot. */
	#isKnown: boolean;
	#lastAhead: Micros | null = null;
	#step: { by: Micros; at: Micros } | null = null;

	constructor(clock: Clock) {
		this.#clock = clock;
		this.#boot = clock.steady === undefined ? '' : readBoot();
		this.#isKnown = this.#boot !== '';
	}

	/** `isBeat` stores small differences too, so that they never add up. */
	follow(sql: Sql, { isBeat }: { isBeat: boolean }): void {
		if (this.#clock.steady === undefined) return;
		const at = this.#clock.steady();
		const now = this.#clock.now();
		const ahead = now - at;
		const by = this.#lastAhead === null ? 0 : ahead - this.#lastAhead;
		if (Math.abs(by) >= smallestStep) this.#step = { by, at };
		this.#lastAhead = ahead;
		follow(sql, { now, ahead, boot: this.#boot, isKnown: this.#isKnown, isBeat });
		this.#isKnown = true;
	}

	timely<C>(command: C): C {
		if (this.#step === null || typeof command !== 'object' || command === null) return command;
		if ('settlements' in command && Array.isArray(command.settlements))
			return { ...command, settlements: command.settlements.map((each) => this.#timelyOutcome(each)) };
		if (!('now' in command) || typeof command.now !== 'number') return command;
		return moved(command, this.#behind(command.now), ['now', 'until', 'retry_at']);
	}

	#timelyOutcome<S extends { at: Micros; outcome?: object; result?: object }>(settlement: S): S {
		const by = this.#behind(settlement.at);
		const { outcome, result } = settlement;
		return {
			...moved(settlement, by, ['at']),
			...(outcome !== undefined && { outcome: moved(outcome, by, ['due_at']) }),
			...(result !== undefined && { result: moved(result, by, ['due_at']) }),
		};
	}

	#behind(asked: Micros): Micros {
		const { steady } = this.#clock;
		if (steady === undefined || this.#step === null || steady() - this.#step.at > longestBehind) return 0;
		const late = this.#clock.now() - asked;
		return Math.abs(late - this.#step.by) < Math.abs(late) ? this.#step.by : 0;
	}
}

function moved<O extends object>(record: O, by: Micros, times: readonly string[]): O {
	if (by === 0) return record;
	const entries = Object.entries(record).map(([name, value]) => [
		name,
		typeof value === 'number' && times.includes(name) ? value + by : value,
	]);
	return Object.fromEntries(entries) as O;
}

function readBoot(): string {
	try {
		return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
	} catch {
		return '';
	}
}

interface Reading {
	now: Micros;
	ahead: Micros;
	boot: string;
	isKnown: boolean;
	isBeat: boolean;
}

function follow(sql: Sql, { now, ahead, boot, isKnown, isBeat }: Reading): void {
	const kept = sql.get<{ boot: string; ahead: Micros }>('SELECT boot, ahead FROM clock');
	if (kept === undefined || kept.boot !== boot || !isKnown) {
		// After another boot only the clock tells how long the machine was off.
		sql.run(
			`INSERT INTO clock (id, boot, ahead) VALUES (1, ?, ?)
			ON CONFLICT (id) DO UPDATE SET boot = excluded.boot, ahead = excluded.ahead`,
			[boot, ahead],
		);
		return;
	}
	const by = ahead - kept.ahead;
	if (Math.abs(by) >= smallestStep) {
		moveTimes(sql, { now, by });
		sql.run('UPDATE clock SET ahead = ?, step = ?, stepped_at = ?', [ahead, by, now]);
	} else if (isBeat && by !== 0) sql.run('UPDATE clock SET ahead = ?', [ahead]);
}

/**
 * Due messages stay due, and future times stay as far off as before. When the clock goes back, messages queued since
 * the new time are moved too: a million rows take about six seconds, once.
 */
function moveTimes(sql: Sql, { now, by }: { now: Micros; by: Micros }): void {
	const before = now - by;
	const after = Math.min(before, now);
	closeHolds(sql, before);
	for (const lane of openLanes(sql)) {
		sql.run(
			// messages_due (lane, wake_at)
			`UPDATE messages
			SET due_at = due_at + ?, wake_at = CASE wake_at WHEN ${setAside} THEN wake_at ELSE wake_at + ? END
			WHERE id IN (
				SELECT id FROM messages INDEXED BY messages_due WHERE lane = ? AND wake_at IS NOT NULL AND wake_at > ?
			)`,
			[by, by, lane, after],
		);
	}
	sql.run('UPDATE webhook_deliveries SET due_at = due_at + ? WHERE due_at IS NOT NULL AND due_at > ?', [
		by,
		after,
	]);
	sql.run('UPDATE queue_pauses SET since = since + ?, retry_at = retry_at + ?', [by, by]);
	// Goes by way of negative numbers: a row must not collide with one that is still to be moved.
	sql.run('UPDATE limit_uses SET until = -(until + ?)', [by]);
	sql.run('UPDATE limit_uses SET until = -until');
	sql.run('UPDATE limit_rooms SET room_at = room_at + ?', [by]);
	sql.run(
		'UPDATE campaigns SET last_leased_at = last_leased_at + ? WHERE has_open_work = 1 AND last_leased_at > 0',
		[by],
	);
	sql.run('UPDATE processes SET started_at = started_at + ?, heartbeat_at = heartbeat_at + ?', [by, by]);
	// Kept for a day of elapsed time: a key forgotten sooner would let a repeated send go out again.
	sql.run('UPDATE idempotency_keys SET created_at = created_at + ?', [by]);
}
