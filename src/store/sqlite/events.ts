/** What happens to a message after it was sent, and what that changes for its recipient. */
import type { Micros } from '../../api/datetime.js';
import type { MessageState, Uuid } from '../../api/records.js';
import { erasedAddress } from '../../engine/rules/erasure.js';
import { isTooSoon } from '../../engine/rules/events.js';
import type { TrackedEvent } from '../store.js';
import { countEvent, softBounce } from './counting.js';
import { createTally, type Tally } from './figures.js';
import { flag } from './rows.js';
import type { Sql } from './sql.js';
import { deactivate, suppress } from './suppressions.js';
import type { Operations } from './sync.js';
import { cancelMessage } from './waiting.js';

interface TrackedRow {
	id: number;
	to_key: string;
	list_id: number | null;
	subscriber_id: number | null;
	campaign: Uuid | null;
	state: MessageState;
	sent_at: Micros | null;
}

/** In one transaction of the caller; figures are written once, after all events. */
export function createEvents(sql: Sql): Pick<Operations, 'recordEvents'> {
	return {
		recordEvents: ({ events }) => {
			const tally = createTally(sql);
			for (const event of events) recordEvent(sql, tally, event);
			tally.write();
		},
	};
}

/** One event with all that follows from it; an unknown message is skipped. The caller writes the tally. */
export function recordEvent(sql: Sql, tally: Tally, reported: TrackedEvent): void {
	const message = sql.get<TrackedRow>(
		`SELECT m.id, m.to_key, m.list_id, m.subscriber_id, s.campaign, m.state, m.sent_at
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		WHERE m.uuid = ?`,
		reported.message,
	);
	// Of an erased person nothing is recorded any more, whoever follows an old link.
	if (message === undefined || message.to_key === erasedAddress) return;
	const event = { ...reported, machine: reported.machine || isTooSoon(message, reported) };
	writeEvent(sql, message.id, event);
	const isFirst = countEvent(sql, tally, message, event);
	changeRecipient(sql, message, event, isFirst);
}

function writeEvent(sql: Sql, message_id: number, event: TrackedEvent): void {
	sql.run(
		`INSERT INTO events (message_id, type, at, link, machine, ip, user_agent, url, smtp_code, diagnostic)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		message_id,
		event.type,
		event.at,
		event.link,
		flag(event.machine),
		event.ip,
		event.user_agent,
		event.url,
		event.smtp_code,
		event.diagnostic,
	);
}

function changeRecipient(sql: Sql, message: TrackedRow, event: TrackedEvent, isFirst: boolean): void {
	const { to_key: address, list_id, subscriber_id } = message;
	switch (event.type) {
		case 'UNSUBSCRIBED':
			// Each time, not the first only: somebody may have come back in between.
			suppress(sql, { address, reason: 'UNSUBSCRIBED', source: 'RECIPIENT', now: event.at });
			deactivate(sql, { address, list_id, subscriber_id }, 'UNSUBSCRIBED');
			return;
		case 'HARDBOUNCED':
			suppress(sql, { address, reason: 'HARDBOUNCED', source: 'BOUNCE', now: event.at });
			deactivate(sql, { address, list_id: null, subscriber_id: null }, 'HARDBOUNCED');
			stopWaiting(sql, message.id);
			return;
		case 'SOFTBOUNCED':
			if (isFirst) softBounce(sql, address, event.at);
			return;
		case 'OPENED':
		case 'REDIRECTED':
			return;
	}
}

// A report may come before the next attempt: there is no point in making it.
function stopWaiting(sql: Sql, id: number): void {
	const row = sql.get<{ state: string }>('SELECT state FROM messages WHERE id = ?', id);
	if (row?.state === 'deferred' || row?.state === 'queued') cancelMessage(sql, id, null);
}
