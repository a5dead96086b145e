/** Leasing and settling of webhook deliveries. */
import type { Micros } from '../../api/datetime.js';
import type {
	DeliveryAnswer,
	DeliverySettled,
	DeliverySettlement,
	LeaseDeliveries,
	LeasedDelivery,
} from '../notifications.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';
import { signingSecrets } from './webhook-secrets.js';

/** In the caller’s transaction. A lease raises the fence: what is settled under an older one is `lost_lease`. */
export function createNotifications(sql: Sql): Pick<Operations, 'leaseDeliveries' | 'settleDeliveries'> {
	return {
		leaseDeliveries: (command) => ({
			deliveries: lease(sql, command),
			secrets: signingSecrets(sql, command.now),
		}),
		settleDeliveries: ({ settlements }) => settlements.map((each) => settle(sql, each)),
	};
}

interface HookRow {
	id: number;
	url: string;
	is_auth_enabled: number;
	login: string;
	password: string;
}

interface DueRow {
	id: number;
	uuid: string;
	payload: string;
	attempts: number;
	attempts_before: number;
	fence: number;
}

/** Every webhook its share, whatever waits for the others. Rows of deleted and stopped webhooks are never looked at. */
function lease(sql: Sql, command: LeaseDeliveries): LeasedDelivery[] {
	// webhook_deliveries_due: mostly nothing is, and then nothing else is read.
	const isAnyDue = sql.number(
		'SELECT EXISTS (SELECT 1 FROM webhook_deliveries WHERE due_at IS NOT NULL AND due_at <= ?)',
		command.now,
	);
	if (isAnyDue === 0) return [];
	const shares = new Map(command.shares.map(({ webhook_id, max }) => [webhook_id, max]));
	const hooks = sql.all<HookRow>(
		`SELECT id, url, is_auth_enabled, login, password
		FROM webhooks
		WHERE stopped_at IS NULL
		ORDER BY id`,
	);
	const leased: LeasedDelivery[] = [];
	for (const hook of hooks) {
		const room = Math.min(shares.get(hook.id) ?? command.each, command.max - leased.length);
		if (room > 0) leased.push(...leaseHook(sql, hook, room, command));
	}
	return leased;
}

function leaseHook(
	sql: Sql,
	hook: HookRow,
	room: number,
	{ owner, now, until }: LeaseDeliveries,
): LeasedDelivery[] {
	const rows = sql.all<DueRow>(
		// webhook_deliveries_turn (webhook_id, due_at)
		`SELECT id, uuid, payload, attempts, attempts_before, fence
		FROM webhook_deliveries INDEXED BY webhook_deliveries_turn
		WHERE webhook_id = ? AND due_at IS NOT NULL AND due_at <= ?
		ORDER BY due_at, id
		LIMIT ?`,
		hook.id,
		now,
		room,
	);
	const credentials = hook.is_auth_enabled === 1 ? { login: hook.login, password: hook.password } : null;
	return rows.map((row) => {
		sql.run(
			`UPDATE webhook_deliveries
			SET state = 'sending', lease_owner = ?, due_at = ?, fence = fence + 1
			WHERE id = ?`,
			owner,
			until,
			row.id,
		);
		return {
			delivery: row.uuid,
			fence: row.fence + 1,
			webhook_id: hook.id,
			url: hook.url,
			credentials,
			payload: row.payload,
			attempts: row.attempts - row.attempts_before,
		};
	});
}

interface SendingRow {
	id: number;
	webhook_id: number;
	attempts: number;
}

function settle(sql: Sql, { delivery, fence, at, result }: DeliverySettlement): DeliverySettled {
	// A webhook that was deleted meanwhile takes its deliveries with it.
	const row = sql.get<SendingRow>(
		`SELECT id, webhook_id, attempts
		FROM webhook_deliveries
		WHERE uuid = ? AND fence = ? AND state = 'sending'
			AND EXISTS (SELECT 1 FROM webhooks w WHERE w.id = webhook_id)`,
		delivery,
		fence,
	);
	if (row === undefined) return 'lost_lease';
	switch (result.kind) {
		case 'released':
			sql.run(
				"UPDATE webhook_deliveries SET state = 'pending', due_at = ?, lease_owner = NULL WHERE id = ?",
				at,
				row.id,
			);
			return 'recorded';
		case 'again':
			record(sql, row, { at, answer: result.answer, state: 'pending', due_at: result.due_at });
			return 'recorded';
		case 'delivered':
		case 'failed':
			record(sql, row, { at, answer: result.answer, state: result.kind, due_at: null });
			return 'recorded';
		case 'gone':
			return settleGone(sql, row, { at, ...result });
	}
}

function settleGone(
	sql: Sql,
	row: SendingRow,
	{ at, answer, url }: { at: Micros; answer: DeliveryAnswer; url: string },
): DeliverySettled {
	const stop = 'UPDATE webhooks SET stopped_at = ? WHERE id = ? AND url = ?';
	// Somebody may have mended it while this call was on its way to where it led before.
	const isStopped = sql.run(stop, at, row.webhook_id, url).changes === 1;
	if (isStopped) record(sql, row, { at, answer, state: 'failed', due_at: null });
	else record(sql, row, { at, answer, state: 'pending', due_at: at });
	return isStopped ? 'recorded' : 'moved';
}

interface Outcome {
	at: Micros;
	answer: DeliveryAnswer;
	state: 'pending' | 'delivered' | 'failed';
	/** null: it is final. */
	due_at: Micros | null;
}

function record(sql: Sql, row: SendingRow, { at, answer, state, due_at }: Outcome): void {
	sql.run(
		`UPDATE webhook_deliveries
		SET state = ?, due_at = ?, lease_owner = NULL, attempts = attempts + 1, attempted_at = ?,
			status_code = ?, error = ?, answer = ?, finished_at = ?
		WHERE id = ?`,
		state,
		due_at,
		at,
		answer.status,
		answer.error,
		answer.answer,
		due_at === null ? at : null,
		row.id,
	);
	sql.run(
		`INSERT INTO webhook_attempts (delivery_id, number, at, status_code, error, duration_ms)
		VALUES (?, ?, ?, ?, ?, ?)`,
		row.id,
		row.attempts + 1,
		at,
		answer.status,
		answer.error,
		answer.duration_ms,
	);
}
