import type { EmailKey } from '../../api/address.js';
import { dayOf } from '../../api/datetime.js';
import { restoredReason } from '../../api/pauses.js';
import type { Uuid } from '../../api/records.js';
import type { CountCheck, StoredErasures, WrongCounter } from '../maintenance.js';
import type { Operations } from '../operations.js';
import { countStates, waitingLanes } from './campaigns/rows.js';
import {
	addToQuarter,
	countedRows,
	type Figure,
	moveCounters,
	quarterHour,
	scopesOf,
	sharded,
	sumDays,
	timeZone,
} from './figures/tally.js';
import { insertKey } from './keys.js';
import { erase } from './people.js';
import { provenTime } from './processes.js';
import { createQueueState } from './queue-state.js';
import { settle } from './settle.js';
import { column, each, insertInto, type Row, type Sql, type SqlValue } from './sql.js';
import { countMessages, messageCount } from './submissions.js';
import { erasedHash, erasureKeys } from './suppressions.js';

export function createMaintenance(sql: Sql) {
	return {
		clockAhead: async ({ now }) => now - (await provenTime(sql, now)),
		checkCounts: () => findWrong(sql),
		repairCounts: async () => {
			const found = await findWrong(sql);
			for (const { list_id, active, inactive } of found.lists) {
				const move = { active: active.counted - active.kept, inactive: inactive.counted - inactive.kept };
				moveCounters(sql, list_id, move, null);
			}
			countMessages(sql, -(await surplusOfMessages(sql)));
			if (found.figures > 0) {
				sql.write("DELETE FROM quarter_figures WHERE type <> 'COMPLAINED'");
				for (const [quarter, campaign, type, audience, count] of await countEverything(sql))
					for (const scope of scopesOf(campaign))
						sql.write(addToQuarter, [scope, quarter, type, audience, sql.shard, count]);
				await sumDays(sql);
				for (const figure of sharded) await recount(sql, figure);
			}
			for (const { seq } of await closedCampaigns(sql))
				sql.write('UPDATE campaigns SET has_open_work = 1 WHERE seq = ?', [seq]);
			return found;
		},
		/** Prepares a restored database. Since the backup, the original may have sent queued messages and erased people. */
		settleRestored: async ({ backup, erasures, now }) => {
			const erased = erasures === null ? 0 : await sql.overwriting(() => eraseAgain(sql, erasures, now));
			const leased = await sql.all<{ message: string; fence: number }>(
				"SELECT uuid AS message, fence FROM messages WHERE wake_at IS NOT NULL AND state = 'leased' ORDER BY id",
			);
			const text = 'this message was being sent when the restored backup was made';
			const reply = { phase: 'answer', code: null, enhanced: null, text } as const;
			const settlements = leased.map((row) => ({
				...row,
				at: now,
				outcome: { kind: 'uncertain', reply } as const,
			}));
			await settle(sql, settlements);
			// A worker of the original held these leases, so end them. Receivers recognize a repeated call by its webhook-id.
			sql.write(
				`UPDATE webhook_deliveries SET due_at = ${sql.dialect.least}(due_at, ?) WHERE due_at IS NOT NULL AND state = ?`,
				[now, 'sending'],
			);
			const states = countStates(await waitingLanes(sql, null));
			const waiting = (states.get('queued') ?? 0) + (states.get('deferred') ?? 0);
			const reason = restoredReason(backup, waiting);
			await createQueueState(sql).pause({ kind: 'manual', reason, retry_at: null, now });
			return { uncertain: leased.length, waiting, erased };
		},
	} satisfies Partial<Operations>;
}

async function findWrong(sql: Sql): Promise<CountCheck> {
	const wrong = await each(sql, sharded, (figure) => wrongKeys(sql, figure));
	const surplus = (await surplusOfMessages(sql)) === 0 ? 0 : 1;
	return {
		lists: await wrongLists(sql),
		figures: (await wrongDaysAndQuarters(sql)) + wrong.flat().length + surplus,
		campaigns: (await closedCampaigns(sql)).map(({ key }) => key),
	};
}

async function wrongLists(sql: Sql): Promise<WrongCounter[]> {
	const rows = await sql.tuples<
		[list_id: number, name: string, active: number, inactive: number, active: number, inactive: number]
	>(
		`SELECT l.id, l.name, coalesce(c.active, 0), coalesce(c.inactive, 0),
			coalesce(s.active, 0), coalesce(s.every - s.active, 0)
		FROM lists l
		LEFT JOIN (
			SELECT list_id, sum(active) AS active, sum(inactive) AS inactive FROM list_counters GROUP BY list_id
		) c ON c.list_id = l.id
		LEFT JOIN (
			SELECT list_id, sum(is_active) AS active, count(*) AS every FROM subscribers GROUP BY list_id
		) s ON s.list_id = l.id
		WHERE coalesce(c.active, 0) <> coalesce(s.active, 0)
			OR coalesce(c.inactive, 0) <> coalesce(s.every - s.active, 0)
		ORDER BY l.id`,
	);
	return rows.map(([list_id, name, active, inactive, countedActive, countedInactive]) => ({
		list_id,
		name,
		active: { kept: active, counted: countedActive },
		inactive: { kept: inactive, counted: countedInactive },
	}));
}

async function surplusOfMessages(sql: Sql): Promise<number> {
	return (await messageCount(sql)) - (await sql.number('SELECT count(*) FROM messages'));
}

type Counted = readonly [quarter: number, Uuid | null, type: string, audience: string, count: number];

async function countEverything(sql: Sql): Promise<Counted[]> {
	return await sql.tuples<Counted>(
		`SELECT quarter, campaign, type, audience, sum(count)
		FROM (
			${countedRows()}
			UNION ALL
			SELECT tag, nullif(campaign, ''), type, audience, quarter, count FROM deleted_figures
		) e
		GROUP BY campaign, type, audience, quarter`,
	);
}

async function wrongDaysAndQuarters(sql: Sql): Promise<number> {
	const zone = await timeZone(sql);
	const left = new Map<string, number>();
	const add = (by: number, ...key: (string | number)[]) => {
		const name = JSON.stringify(key);
		left.set(name, (left.get(name) ?? 0) + by);
	};
	for (const [quarter, campaign, type, audience, count] of await countEverything(sql))
		for (const scope of scopesOf(campaign)) {
			add(count, scope, dayOf(quarter * quarterHour, zone), type, audience);
			add(count, scope, quarter, type, audience);
		}
	for (const [table, column] of [
		['daily_figures', 'day'],
		['quarter_figures', 'quarter'],
	]) {
		const kept = await sql.tuples<[count: number, ...key: (string | number)[]]>(
			`SELECT sum(count), scope, ${column}, type, audience
			FROM ${table}
			WHERE type <> 'COMPLAINED'
			GROUP BY scope, ${column}, type, audience`,
		);
		for (const [count, ...key] of kept) add(-count, ...key);
	}
	return [...left.values()].filter((difference) => difference !== 0).length;
}

async function wrongKeys(sql: Sql, { table, key, sums, counted }: Figure): Promise<SqlValue[][]> {
	const names = key.join(', ');
	return await sql.tuples<SqlValue[]>(
		`SELECT ${names}
		FROM (
			SELECT ${names}, ${sums.join(', ')} FROM ${table}
			UNION ALL
			SELECT ${names}, ${sums.map((sum) => `-${sum}`).join(', ')} FROM (${counted(sql.dialect)}) c
		) d
		GROUP BY ${names}
		HAVING ${sums.map((sum) => `sum(${sum}) <> 0`).join(' OR ')}
		ORDER BY ${names}`,
	);
}

async function recount(sql: Sql, figure: Figure): Promise<void> {
	const { table, columns, key, sums, counted } = figure;
	const wrong = await wrongKeys(sql, figure);
	if (wrong.length === 0) return;
	for (const one of wrong)
		sql.write(`DELETE FROM ${table} WHERE ${key.map((name) => `${name} = ?`).join(' AND ')}`, one);
	const names = columns.join(', ');
	const rows = await sql.all<Row>(
		`SELECT ${names}, ${sums.map((sum) => `sum(${sum}) AS ${sum}`).join(', ')}
		FROM (${counted(sql.dialect)}) c
		GROUP BY ${names}`,
	);
	const isWrong = new Set(wrong.map((one) => JSON.stringify(one)));
	for (const row of rows)
		if (isWrong.has(JSON.stringify(key.map((name) => row[name]))))
			insertInto(sql, table, { ...row, shard: 0 });
}

async function closedCampaigns(sql: Sql): Promise<{ seq: number; key: string }[]> {
	return await sql.all(
		`SELECT seq, key
		FROM campaigns
		WHERE state = 'released' AND has_open_work = 0
			AND EXISTS (SELECT 1 FROM messages WHERE lane = campaigns.seq AND wake_at IS NOT NULL)
		ORDER BY seq`,
	);
}

export async function storedErasures(sql: Sql): Promise<StoredErasures> {
	const [keys, hashes] = await sql.together([
		() => erasureKeys(sql),
		() => sql.all<StoredErasures['hashes'][number]>('SELECT email_hash, key_id, erased_at FROM erased'),
	]);
	return { keys, hashes };
}

/** Erases people whom the original erased after the backup. Ignores hashes of other databases, which have another key. */
async function eraseAgain(sql: Sql, { keys, hashes }: StoredErasures, now: number): Promise<number> {
	const own = new Map((await erasureKeys(sql)).map(({ id, secret }) => [id, secret]));
	const known = keys.filter(({ id, secret }) => (own.get(id) ?? secret) === secret);
	const ids = new Set(known.map(({ id }) => id));
	const there = new Set(await column<string>(sql, 'SELECT email_hash FROM erased'));
	const missing = hashes.filter(({ email_hash, key_id }) => ids.has(key_id) && !there.has(email_hash));
	const [fresh] = known;
	if (missing.length === 0 || fresh === undefined) return 0;
	for (const { id, secret, created_at } of known)
		if (!own.has(id)) insertKey(sql, { purpose: 'erasure', id, secret, now: created_at });
	const wanted = new Set(missing.map(({ email_hash }) => email_hash));
	const found = new Set<EmailKey>();
	for (const { table, name } of addressColumns) {
		const next = `SELECT DISTINCT ${name} FROM ${table} WHERE ${name} > ? ORDER BY ${name} LIMIT 10000`;
		for (let after: string | undefined = ''; after !== undefined; ) {
			const addresses: string[] = await column<string>(sql, next, [after]);
			for (const address of addresses)
				if (known.some(({ secret }) => wanted.has(erasedHash(secret, address)))) found.add(address);
			after = addresses.at(-1);
		}
	}
	for (const email_key of found) await erase(sql, { email_key, fresh, now });
	for (const { email_hash, key_id, erased_at } of missing)
		insertInto(sql, 'erased', { email_hash, key_id, erased_at }, 'ON CONFLICT DO NOTHING');
	return found.size;
}

const addressColumns = [
	{ table: 'subscribers', name: 'email_key' },
	{ table: 'messages', name: 'to_key' },
	{ table: 'old_messages', name: 'to_key' },
	{ table: 'suppressions', name: 'email_key' },
	{ table: 'campaign_left_out', name: 'to_key' },
];
