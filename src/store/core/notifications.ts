import { randomUUID } from 'node:crypto';
import type { Uuid } from '../../api/records.js';
import { formatNotification } from '../../api/webhook-calls.js';
import type { Operations } from '../operations.js';
import type { DeliverySettled, DeliverySettlement, LeaseDeliveries, LeasedDelivery } from '../queue.js';
import type { TrackedEvent } from '../store.js';
import { findKeys } from './keys.js';
import {
	each,
	exists,
	type Insertion,
	insertInto,
	readEnvelope,
	type Sql,
	type SqlValue,
	subjectOf,
} from './sql.js';
import { webhookPassword } from './webhooks.js';

export function createNotifications(sql: Sql) {
	return {
		leaseDeliveries: async (command) => ({
			deliveries: await lease(sql, command),
			secrets: (await findKeys(sql, 'webhooks', command.now)).map(({ secret }) => secret),
		}),
		settleDeliveries: async ({ settlements }) => {
			if (settlements.some(({ result }) => result.kind === 'gone')) sql.alone();
			const rows = await sql.all<SendingRow>(
				// The query does not find a delivery whose webhook was deleted, so the worker gets `lost_lease`.
				`SELECT d.uuid, d.fence, d.id, d.webhook_id, d.attempts, w.url
				FROM ${sql.dialect.table({ delivery: 'TEXT', at_fence: 'BIGINT' }, 'held')}
				CROSS JOIN webhook_deliveries d
				CROSS JOIN webhooks w
				WHERE d.uuid = held.delivery AND d.fence = held.at_fence AND d.state = 'sending' AND w.id = d.webhook_id`,
				[JSON.stringify(settlements.map(({ delivery, fence }) => ({ delivery, at_fence: fence })))],
			);
			const sending = new Map(rows.map((row) => [row.uuid, row]));
			return settlements.map((settlement) => {
				const row = sending.get(settlement.delivery);
				if (row === undefined || row.fence !== settlement.fence) return 'lost_lease';
				sending.delete(settlement.delivery);
				return settleOne(sql, row, settlement);
			});
		},
	} satisfies Partial<Operations>;
}

type Hooked = Record<'id' | 'is_auth_enabled', number> & Record<'url' | 'login' | 'password', string>;

interface DueRow {
	id: number;
	uuid: string;
	payload: string;
	attempts: number;
	attempts_before: number;
	fence: number;
}

async function lease(sql: Sql, command: LeaseDeliveries): Promise<LeasedDelivery[]> {
	// Usually no delivery is due, so first check only the index webhook_deliveries_due.
	const due = 'SELECT 1 FROM webhook_deliveries WHERE due_at IS NOT NULL AND due_at <= ?';
	if (!(await exists(sql, due, [command.now]))) return [];
	const shares = new Map(command.shares.map(({ webhook_id, max }) => [webhook_id, max]));
	const hooks = await sql.all<Hooked>(
		`SELECT id, url, is_auth_enabled, login, password
		FROM webhooks
		WHERE stopped_at IS NULL
		ORDER BY id`,
	);
	const found = await each(sql, hooks, (hook) =>
		findDue(sql, hook.id, shares.get(hook.id) ?? command.each, command),
	);
	let room = command.max;
	const leased = hooks.flatMap((hook, at) => {
		const rows = (found[at] ?? []).slice(0, room);
		room -= rows.length;
		return rows.map((row) => ({ hook, row }));
	});
	if (leased.length > 0)
		sql.write(
			`UPDATE webhook_deliveries
			SET state = 'sending', lease_owner = ?, due_at = ?, fence = fence + 1
			WHERE ${sql.dialect.oneOf('id')}`,
			[command.owner, command.until, JSON.stringify(leased.map(({ row }) => row.id))],
		);
	const credentials = new Map(
		leased.map(({ hook: { is_auth_enabled, login, ...hook } }) => [
			hook.id,
			is_auth_enabled === 1 ? { login, password: webhookPassword(sql, hook) } : null,
		]),
	);
	return leased.map(({ hook, row }) => ({
		delivery: row.uuid,
		fence: row.fence + 1,
		webhook_id: hook.id,
		url: hook.url,
		credentials: credentials.get(hook.id) ?? null,
		payload: row.payload,
		attempts: row.attempts - row.attempts_before,
	}));
}

async function findDue(
	sql: Sql,
	hook: number,
	share: number,
	{ now, max }: LeaseDeliveries,
): Promise<DueRow[]> {
	const limit = Math.min(share, max);
	if (limit <= 0) return [];
	return await sql.all<DueRow>(
		`SELECT id, uuid, payload, attempts, attempts_before, fence
		FROM webhook_deliveries ${sql.dialect.using('webhook_deliveries_turn')}
		WHERE webhook_id = ? AND due_at IS NOT NULL AND due_at <= ?
		ORDER BY due_at, id
		LIMIT ?`,
		[hook, now, limit],
	);
}

interface SendingRow {
	uuid: string;
	fence: number;
	id: number;
	webhook_id: number;
	attempts: number;
	url: string;
}

function settleOne(
	sql: Sql,
	{ id, webhook_id, attempts, url }: SendingRow,
	{ at, result }: DeliverySettlement,
): DeliverySettled {
	if (result.kind === 'released') {
		const released =
			"UPDATE webhook_deliveries SET state = 'pending', due_at = ?, lease_owner = NULL WHERE id = ?";
		sql.write(released, [at, id]);
		return 'recorded';
	}
	const isGone = result.kind === 'gone';
	// The user may have changed the URL while the worker called the old one.
	const isMoved = isGone && url !== result.url;
	if (isGone && !isMoved) sql.write('UPDATE webhooks SET stopped_at = ? WHERE id = ?', [at, webhook_id]);
	const again = isMoved ? at : null;
	const due_at = result.kind === 'again' ? result.due_at : again;
	const final = isGone || result.kind === 'again' ? 'failed' : result.kind;
	const { status: status_code, error, answer, duration_ms } = result.answer;
	sql.write(
		`UPDATE webhook_deliveries
		SET state = ?, due_at = ?, lease_owner = NULL, attempts = attempts + 1, attempted_at = ?,
			status_code = ?, error = ?, answer = ?, finished_at = ?
		WHERE id = ?`,
		[
			...[due_at === null ? final : 'pending', due_at, at],
			...[status_code, error, answer, due_at === null ? at : null, id],
		],
	);
	const attempt = { delivery_id: id, number: attempts + 1, at, status_code, error, duration_ms };
	insertInto(sql, 'webhook_attempts', attempt);
	return isMoved ? 'moved' : 'recorded';
}

export type NoticedEvent = Omit<TrackedEvent, 'message'>;

export interface Hook {
	id: number;
	type: string;
}

export class Notices {
	readonly #sql: Sql;
	readonly #hooks: readonly Hook[];
	#told: Told[] = [];

	constructor(sql: Sql, hooks: readonly Hook[]) {
		this.#sql = sql;
		this.#hooks = hooks;
	}

	add(message: number, event: NoticedEvent): void {
		for (const { id, type } of this.#hooks)
			if (type === event.type) this.#told.push({ hook: id, message, event });
	}

	async write(): Promise<void> {
		const told = this.#told;
		if (told.length === 0) return;
		this.#told = [];
		const about = await readMessages(this.#sql, [...new Set(told.map(({ message }) => message))]);
		const deliveries = told.map((one) => deliveryOf(one, about));
		this.#sql.writeAll(intoDeliveries, deliveries);
	}
}

interface Told {
	hook: number;
	message: number;
	event: NoticedEvent;
}

type About = Parameters<typeof formatNotification>[0]['message'];

async function readMessages(sql: Sql, ids: readonly number[]): Promise<ReadonlyMap<number, About>> {
	const rows = await sql.all<
		Pick<About, 'id' | 'to' | 'subject' | 'tag'> &
			Record<'own' | 'envelope' | 'shared', string> & {
				number: number;
				campaign: Uuid | null;
			}
	>(
		`SELECT m.id AS number, m.uuid AS id, m.to_email AS "to", m.variables AS own, s.envelope, s.context AS shared,
			c.subject, s.tag, s.campaign
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		JOIN contents c ON c.sha256 = s.content_sha256
		WHERE ${sql.dialect.oneOf('m.id')}`,
		[JSON.stringify(ids)],
	);
	return new Map(
		rows.map(({ number, id, to, own, envelope, shared, subject, tag, campaign }) => {
			const { from } = readEnvelope(envelope);
			const read = subjectOf(subject, { to, own, shared });
			return [number, { id, to, from, subject: read, tag, campaign_unique_id: campaign }];
		}),
	);
}

const intoDeliveries: Insertion = {
	table: 'webhook_deliveries',
	columns: {
		...{ uuid: 'TEXT', webhook_id: 'BIGINT', message_id: 'BIGINT', type: 'TEXT' },
		...{ payload: 'TEXT', state: 'TEXT', due_at: 'BIGINT', created_at: 'BIGINT' },
	},
	conflict: '',
};

function deliveryOf({ hook, message, event }: Told, messages: ReadonlyMap<number, About>): SqlValue[] {
	const about = messages.get(message);
	if (about === undefined) throw new Error(`message ${message} of an event is missing`);
	const { type, at, machine, ip, user_agent, url, smtp_code, diagnostic } = event;
	const id = randomUUID();
	const data = { url, ip, user_agent, machine, smtp_code, diagnostic };
	const payload = formatNotification({ id, type, at, message: about, data });
	return [id, hook, message, type, payload, 'pending', at, at];
}
