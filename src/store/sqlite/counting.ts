/** Counts an event of a message: its first time, its number, and the figure of its day. */
import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { EventType, Uuid } from '../../api/records.js';
import { type Firsts, figureMoves } from '../../engine/rules/events.js';
import { isSoftBounceLimit } from '../../engine/rules/subscription.js';
import type { Tally } from './figures.js';
import type { NoticedEvent } from './notices.js';
import { flag } from './rows.js';
import type { Sql } from './sql.js';
import { deactivate, suppress } from './suppressions.js';

export interface CountedEvent extends NoticedEvent {
	link: number | null;
}

/**
 * True for the first event of its type that this message ever had. Webhooks are told of the first of each (type, link)
 * by machine and by human: later ones change a count that nobody outside sees.
 */
export function countEvent(
	sql: Sql,
	tally: Tally,
	message: { id: number; campaign: Uuid | null },
	event: CountedEvent,
): boolean {
	const firsts = findFirsts(sql, message.id, event.type);
	for (const { audience, from, to } of figureMoves(firsts, event)) {
		const figure = { campaign: message.campaign, type: event.type, audience };
		if (from !== null) tally.add({ ...figure, at: from, by: -1 });
		tally.add({ ...figure, at: to });
	}
	const [counted] = sql.tuples<[count: number]>(
		`INSERT INTO message_firsts (message_id, type, link, machine, first_at, count)
		VALUES (?, ?, ?, ?, ?, 1)
		ON CONFLICT DO UPDATE SET first_at = min(first_at, excluded.first_at), count = count + 1
		RETURNING count`,
		message.id,
		event.type,
		event.link ?? -1,
		flag(event.machine),
		event.at,
	);
	if (counted?.[0] === 1) tally.notices.add(message.id, event);
	return firsts.all === null;
}

function findFirsts(sql: Sql, message_id: number, type: EventType): Firsts {
	const row = sql.get<Firsts>(
		`SELECT min(first_at) AS "all", min(CASE machine WHEN 0 THEN first_at END) AS human
		FROM message_firsts
		WHERE message_id = ? AND type = ?`,
		message_id,
		type,
	);
	return row ?? { all: null, human: null };
}

interface RunRow {
	id: number;
	soft_bounces: number;
	soft_bounced_since: Micros | null;
}

/** One more soft bounce in a row for an address; enough of them over enough time disable it. */
export function softBounce(sql: Sql, address: EmailKey, at: Micros): void {
	sql.run(
		`UPDATE subscribers
		SET soft_bounces = soft_bounces + 1, soft_bounced_since = coalesce(soft_bounced_since, ?)
		WHERE email_key = ? AND is_active = 1`,
		at,
		address,
	);
	const runs = sql.all<RunRow>(
		'SELECT id, soft_bounces, soft_bounced_since FROM subscribers WHERE email_key = ? AND soft_bounces > 0',
		address,
	);
	const isOver = runs.some((run) =>
		isSoftBounceLimit({ count: run.soft_bounces, since: run.soft_bounced_since ?? at }, at),
	);
	if (!isOver) return;
	suppress(sql, { address, reason: 'SOFTBOUNCED', source: 'DELIVERY', now: at });
	deactivate(sql, { address, list_id: null, subscriber_id: null }, 'SOFTBOUNCED');
}
