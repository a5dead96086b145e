import { expect, it } from 'vitest';
import { microsPerDay } from '../../../src/api/datetime.js';
import { dropDeliveries } from '../../../src/store/sqlite/core.js';
import { memoryStore } from '../../support/memory-store.js';

const now = 100 * microsPerDay;

it('the log of notifications is kept for 30 days, and deleted in slices', () => {
	const { sql } = memoryStore();
	const hook = (id: number, stopped_at: number | null) =>
		sql.run(
			`INSERT INTO webhooks (id, url, type, is_auth_enabled, login, password, created_at, stopped_at)
			VALUES (?, 'https://hooks.example.com/', 'OPENED', 0, '', '', 0, ?)`,
			[id, stopped_at],
		);
	hook(1, null);
	hook(2, now);
	const add = (name: string, webhook_id: number, days: number, due_at: number | null) =>
		sql.run(
			`INSERT INTO webhook_deliveries (uuid, webhook_id, payload, state, due_at, created_at)
			VALUES (?, ?, '{}', 'pending', ?, ?)`,
			[name, webhook_id, due_at, now - days * microsPerDay],
		);
	add('fresh', 1, 29, null);
	add('old', 1, 30, null);
	add('older', 1, 40, null);
	add('old and waiting', 1, 40, now);
	add('old and stopped', 2, 40, now);
	add('fresh and stopped', 2, 2, now);
	add('of a deleted webhook', 3, 0, now);
	sql.run(
		"INSERT INTO webhook_attempts SELECT id, 1, 0, 200, NULL, 1 FROM webhook_deliveries WHERE uuid = 'old'",
	);
	expect(dropDeliveries(sql, { now, limit: 2 }).changes).toBe(2);
	expect(dropDeliveries(sql, { now, limit: 99 }).changes).toBe(2);
	expect(dropDeliveries(sql, { now, limit: 99 }).changes).toBe(0);
	const left = sql.all<{ uuid: string }>('SELECT uuid FROM webhook_deliveries ORDER BY id');
	expect(left.map(({ uuid }) => uuid)).toEqual(['fresh', 'old and waiting', 'fresh and stopped']);
	expect(sql.number('SELECT count(*) FROM webhook_attempts')).toBe(0);
});
