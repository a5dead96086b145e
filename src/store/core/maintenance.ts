import { dayOf } from '../../api/datetime.js';
import type { CountCheck, WrongCounter } from '../maintenance.js';
import type { Operations } from '../operations.js';
import { countEverything, recountQuarters } from './figures/daily.js';
import {
	recountBounced,
	recountBounces,
	recountLinks,
	wrongBounced,
	wrongBounces,
	wrongLinks,
} from './figures/detail.js';
import { quarterHour, sumDays, timeZone, total } from './figures/tally.js';
import { listCounts, moveCounters, recountJoined, wrongJoined } from './list-counters.js';
import { settleRestored } from './restored.js';
import { recountStates, wrongStates } from './retention/sums.js';
import type { Sql } from './sql.js';
import { countMessages, messageCount } from './submissions.js';

export function createMaintenance(sql: Sql) {
	return {
		checkCounts: () => findWrong(sql),
		repairCounts: async () => {
			const found = await findWrong(sql);
			for (const { list_id, active, inactive } of found.lists)
				moveCounters(
					sql,
					list_id,
					{ active: active.counted - active.kept, inactive: inactive.counted - inactive.kept },
					null,
				);
			countMessages(sql, -(await surplusOfMessages(sql)));
			if (found.figures > 0) {
				await recountQuarters(sql);
				await sumDays(sql);
				recountLinks(sql, await wrongLinks(sql));
				recountBounces(sql, await wrongBounces(sql));
				if ((await wrongBounced(sql)) > 0) recountBounced(sql);
				for (const list_id of await wrongJoined(sql)) recountJoined(sql, list_id);
				await recountStates(sql, await wrongStates(sql));
			}
			for (const { seq } of await closedCampaigns(sql))
				sql.write('UPDATE campaigns SET has_open_work = 1 WHERE seq = ?', [seq]);
			return found;
		},
		settleRestored: (command) => settleRestored(sql, command),
	} satisfies Partial<Operations>;
}

async function findWrong(sql: Sql): Promise<CountCheck> {
	return {
		lists: await wrongLists(sql),
		figures:
			(await wrongFigures(sql)) +
			(await wrongLinks(sql)).length +
			(await wrongBounces(sql)).length +
			(await wrongBounced(sql)) +
			(await wrongJoined(sql)).length +
			(await wrongStates(sql)).length +
			((await surplusOfMessages(sql)) === 0 ? 0 : 1),
		campaigns: (await closedCampaigns(sql)).map(({ key }) => key),
	};
}

async function wrongLists(sql: Sql): Promise<WrongCounter[]> {
	const rows = await sql.all<{
		id: number;
		name: string;
		active_kept: number;
		inactive_kept: number;
		active: number;
		inactive: number;
	}>(
		`SELECT l.id, l.name, coalesce(c.active, 0) AS active_kept, coalesce(c.inactive, 0) AS inactive_kept,
			coalesce(s.active, 0) AS active, coalesce(s.every - s.active, 0) AS inactive
		FROM lists l
		LEFT JOIN ${listCounts} c ON c.list_id = l.id
		LEFT JOIN (
			SELECT list_id, sum(is_active) AS active, count(*) AS every FROM subscribers GROUP BY list_id
		) s ON s.list_id = l.id
		WHERE coalesce(c.active, 0) <> coalesce(s.active, 0)
			OR coalesce(c.inactive, 0) <> coalesce(s.every - s.active, 0)
		ORDER BY l.id`,
	);
	return rows.map(({ id, name, active_kept, inactive_kept, active, inactive }) => ({
		list_id: id,
		name,
		active: { kept: active_kept, counted: active },
		inactive: { kept: inactive_kept, counted: inactive },
	}));
}

async function surplusOfMessages(sql: Sql): Promise<number> {
	return (await messageCount(sql)) - (await sql.number('SELECT count(*) FROM messages'));
}

async function wrongFigures(sql: Sql): Promise<number> {
	const zone = await timeZone(sql);
	const left = new Map<string, number>();
	const add = (key: readonly (string | number)[], by: number) => {
		const name = JSON.stringify(key);
		left.set(name, (left.get(name) ?? 0) + by);
	};
	for (const { quarter, campaign, type, audience, count } of await countEverything(sql)) {
		const day = dayOf(quarter * quarterHour, zone);
		for (const scope of campaign === null ? [total] : [total, campaign]) {
			add([scope, day, type, audience], count);
			add([scope, quarter, type, audience], count);
		}
	}
	const kept = await sql.tuples<[scope: string, day: string, type: string, audience: string, count: number]>(
		'SELECT scope, day, type, audience, sum(count) FROM daily_figures GROUP BY scope, day, type, audience',
	);
	for (const [scope, day, type, audience, count] of kept) add([scope, day, type, audience], -count);
	const quarters = await sql.tuples<
		[scope: string, quarter: number, type: string, audience: string, count: number]
	>(
		`SELECT scope, quarter, type, audience, sum(count)
		FROM quarter_figures
		WHERE type <> 'COMPLAINED'
		GROUP BY scope, quarter, type, audience`,
	);
	for (const [scope, quarter, type, audience, count] of quarters)
		add([scope, quarter, type, audience], -count);
	return [...left.values()].filter((difference) => difference !== 0).length;
}

async function closedCampaigns(sql: Sql): Promise<{ seq: number; key: string }[]> {
	return await sql.all<{ seq: number; key: string }>(
		// messages_due (lane, wake_at)
		`SELECT seq, key
		FROM campaigns
		WHERE state = 'released' AND has_open_work = 0
			AND EXISTS (SELECT 1 FROM messages WHERE lane = campaigns.seq AND wake_at IS NOT NULL)
		ORDER BY seq`,
	);
}
