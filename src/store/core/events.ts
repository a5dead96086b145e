/** Events after a message was sent: what they change for the recipient, and what they add to counts and figures. */

import type { Micros } from '../../api/datetime.js';
import type { MessageState, Uuid } from '../../api/records.js';
import { erasedAddress } from '../../engine/rules/erasure.js';
import { type Firsts, figureMoves, isTooSoon } from '../../engine/rules/events.js';
import { suppressedList } from '../../engine/rules/suppressions.js';
import type { Operations } from '../operations.js';
import type { TrackedEvent } from '../store.js';
import { findList } from './lists.js';
import { cancelMessage } from './messages/actions.js';
import type { NoticedEvent } from './notifications.js';
import { findOld } from './retention/old-messages.js';
import { flag } from './rows.js';
import { softBounce } from './soft-bounces.js';
import type { Sql } from './sql.js';
import { stopMail, unsubscribeScope } from './suppressions.js';
import { createTally, type Tally } from './tally.js';

interface TrackedRow {
	id: number;
	to_key: string;
	list_id: number | null;
	subscriber_id: number | null;
	campaign: Uuid | null;
	content_sha256: string;
	state: MessageState;
	sent_at: Micros | null;
}

/** Runs in one transaction of the caller; figures are written once, after all events. */
export function createEvents(sql: Sql) {
	return {
		recordEvents: async ({ events }) => {
			const tally = await createTally(sql);
			// Opens and clicks touch nothing but their message; others may be of one person.
			const ofMessages = new Map<Uuid, TrackedEvent[]>();
			for (const event of events.filter(isReading))
				ofMessages.set(event.message, [...(ofMessages.get(event.message) ?? []), event]);
			await sql.together(
				// In one order, as each locks the row of its message.
				[...ofMessages]
					.toSorted(([one], [other]) => (one < other ? -1 : 1))
					.map(([, ofOne]) => async () => {
						for (const event of ofOne) await recordEvent(sql, tally, event);
					}),
			);
			for (const event of events) if (!isReading(event)) await recordEvent(sql, tally, event);
			tally.write();
		},
	} satisfies Partial<Operations>;
}

/** It changes nothing but the counts of its message. */
export function isReading({ type }: TrackedEvent): boolean {
	return type === 'OPENED' || type === 'REDIRECTED';
}

/** Records one event with its effects; of an unknown message only that a person unsubscribes. The caller writes the tally. */
export async function recordEvent(sql: Sql, tally: Tally, reported: TrackedEvent): Promise<void> {
	const message = await sql.get<TrackedRow>(
		`SELECT m.id, m.to_key, m.list_id, m.subscriber_id, s.campaign, s.content_sha256, m.state, m.sent_at
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		WHERE m.uuid = ?
		${sql.dialect.lockRows('m')}`,
		reported.message,
	);
	if (message === undefined) return await recordOld(sql, reported);
	// Nothing is recorded of an erased person, even when an old link is followed.
	if (message.to_key === erasedAddress) return;
	const event = { ...reported, machine: reported.machine || isTooSoon(message, reported) };
	writeEvent(sql, message.id, event);
	const isFirst = await countEvent(sql, tally, message, event);
	await changeRecipient(sql, message, event, isFirst);
}

/** The message is deleted, its figures are final: unsubscribing goes on working. */
async function recordOld(sql: Sql, event: TrackedEvent): Promise<void> {
	if (event.type !== 'UNSUBSCRIBED') return;
	const old = await findOld(sql, event.message);
	if (old === undefined) return;
	await unsubscribe(sql, { ...old, to_key: old.to }, event);
}

function writeEvent(sql: Sql, message_id: number, event: TrackedEvent): void {
	sql.write(
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

async function changeRecipient(
	sql: Sql,
	message: TrackedRow,
	event: TrackedEvent,
	isFirst: boolean,
): Promise<void> {
	switch (event.type) {
		case 'UNSUBSCRIBED':
			// Each time, not only the first: the address may have been subscribed again in between.
			await unsubscribe(sql, message, event);
			return;
		case 'HARDBOUNCED':
			await stopMail(sql, {
				...{ address: message.to_key, list_id: null, now: event.at },
				...{ reason: 'HARDBOUNCED', source: 'BOUNCE' },
			});
			await stopWaiting(sql, message.id);
			return;
		case 'SOFTBOUNCED':
			if (isFirst) await softBounce(sql, message.to_key, event.at);
			return;
		case 'OPENED':
		case 'REDIRECTED':
			return;
	}
}

/**
 * Applies to both addresses where the subscriber's address has changed since: the person who followed the link leaves
 * the list.
 */
async function unsubscribe(
	sql: Sql,
	{ to_key, list_id, subscriber_id }: Pick<TrackedRow, 'to_key' | 'list_id' | 'subscriber_id'>,
	event: TrackedEvent,
): Promise<void> {
	const list = list_id === null || (await findList(sql, list_id)) === null ? null : list_id;
	const scope = event.from_all_lists === true ? 'all' : await unsubscribeScope(sql);
	const moved = await sql.get<{ email_key: string }>(
		'SELECT email_key FROM subscribers WHERE id = ?',
		subscriber_id,
	);
	for (const address of new Set([to_key, moved?.email_key ?? to_key])) {
		await stopMail(sql, {
			...{ address, list_id: suppressedList('UNSUBSCRIBED', list, scope), now: event.at },
			...{ reason: 'UNSUBSCRIBED', source: 'RECIPIENT' },
		});
	}
}

// A report may come before the next attempt, which is then pointless.
async function stopWaiting(sql: Sql, id: number): Promise<void> {
	const row = await sql.get<{ state: string }>('SELECT state FROM messages WHERE id = ?', id);
	if (row?.state === 'deferred' || row?.state === 'queued') cancelMessage(sql, id, null);
}

export interface CountedEvent extends NoticedEvent {
	link: number | null;
}

/** The message of an event. Clicks are counted by link where its content is given. */
export interface CountedMessage {
	id: number;
	campaign: Uuid | null;
	to_key: string;
	content_sha256?: string;
}

/**
 * True for the first event of its type that this message had. Webhooks receive the first of each (type, link) by
 * machine and by human. Later events change only an internal count.
 */
export async function countEvent(
	sql: Sql,
	tally: Tally,
	message: CountedMessage,
	event: CountedEvent,
): Promise<boolean> {
	const firsts = await findFirsts(sql, message.id, event);
	for (const { audience, from, to } of figureMoves(firsts, event)) {
		const figure = { campaign: message.campaign, type: event.type, audience };
		if (from !== null) tally.add({ ...figure, at: from, by: -1 });
		tally.add({ ...figure, at: to });
	}
	const [counted] = await sql.tuples<[count: number]>(
		`INSERT INTO message_firsts (message_id, type, link, machine, first_at, count)
		VALUES (?, ?, ?, ?, ?, 1)
		ON CONFLICT (message_id, type, link, machine) DO UPDATE
		SET first_at = ${sql.dialect.least}(message_firsts.first_at, excluded.first_at), count = message_firsts.count + 1
		RETURNING count`,
		message.id,
		event.type,
		event.link ?? -1,
		flag(event.machine),
		event.at,
	);
	if (counted?.[0] === 1) await tally.notices.add(message.id, event);
	countDetails(tally, message, event, firsts);
	return firsts.all === null;
}

function countDetails(
	tally: Tally,
	{ campaign, content_sha256: content, to_key: address }: CountedMessage,
	{ type, at, link, machine, smtp_code }: CountedEvent,
	firsts: LinkFirsts,
): void {
	if (type === 'SOFTBOUNCED' || type === 'HARDBOUNCED') {
		if (firsts.all === null) tally.addBounce({ at, campaign, type, address, code: smtp_code ?? null });
	} else if (type === 'REDIRECTED' && campaign !== null && link !== null && content !== undefined) {
		const click = { campaign, content, link };
		tally.addClick({ ...click, audience: 'all', messages: firsts.of_link === 0 ? 1 : 0 });
		if (!machine)
			tally.addClick({ ...click, audience: 'human', messages: firsts.human_of_link === 0 ? 1 : 0 });
	}
}

/** The firsts of one type, and how many of them are of the event's link. */
interface LinkFirsts extends Firsts {
	of_link: number;
	human_of_link: number;
}

async function findFirsts(sql: Sql, message_id: number, { type, link }: CountedEvent): Promise<LinkFirsts> {
	const row = await sql.get<LinkFirsts>(
		`SELECT min(first_at) AS "all", min(CASE machine WHEN 0 THEN first_at END) AS human,
			count(CASE link WHEN ? THEN 1 END) AS of_link,
			count(CASE WHEN link = ? AND machine = 0 THEN 1 END) AS human_of_link
		FROM message_firsts
		WHERE message_id = ? AND type = ?`,
		link,
		link,
		message_id,
		type,
	);
	return row ?? { all: null, human: null, of_link: 0, human_of_link: 0 };
}
