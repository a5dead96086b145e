// Fills a database with a year of use through SQL, in a few seconds per million messages.
import Database from 'better-sqlite3';
import { microsPerDay, systemClock } from '../../src/api/datetime.js';

export interface Year {
	messages: number;
	subscribers: number;
}

export const peopleOfLast = 20_000;

const block = 25_000;
const inCampaign = 20_000;
const submissionsOfBlock = 1 + block - inCampaign;
const waiting = 1_000;

export function fillYear(path: string, { messages, subscribers }: Year): void {
	const db = new Database(path);
	db.pragma('synchronous = OFF');
	db.pragma('journal_mode = MEMORY');
	db.pragma('cache_size = -1000000');
	db.pragma('foreign_keys = OFF');
	const indexes = db
		.prepare<[], { name: string; sql: string }>(
			"SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL",
		)
		.all();
	for (const { name } of indexes) db.exec(`DROP INDEX ${name}`);
	const until = systemClock.now();
	const from = until - 365 * microsPerDay;
	const step = Math.floor((until - from) / messages);
	db.transaction(() => {
		db.exec(peopleOf(subscribers, from, until));
		db.exec(mailOf({ messages, people: subscribers, from, step }));
		db.exec(eventsOf(from));
		db.exec(figures);
	})();
	for (const { sql } of indexes) db.exec(sql);
	db.pragma('journal_mode = WAL');
	db.close();
}

function numbers(count: number): string {
	return `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})`;
}

const addressOf = (number: string) => `printf('p%d@d%d.example', ${number}, ${number} % 50)`;

function peopleOf(subscribers: number, from: number, until: number): string {
	const row = (id: string, list: string, number: string) => `
		SELECT ${id}, ${list}, '', ${addressOf(number)}, 'Person ' || i, i % 20 <> 0,
			iif(i % 20 = 0, 'UNSUBSCRIBED', NULL), printf('{"city":"City %d","plan":"%s"}', i % 900, iif(i % 3, 'free', 'paid')),
			'IMPORT', ${from} + i * ${Math.floor((until - from) / subscribers)}
		FROM n`;
	const columns = 'id, list_id, email, email_key, name, is_active, disable_reason, meta, source, created_at';
	return `
		${numbers(99)} INSERT INTO lists (name, email_reason, created_at) SELECT 'List ' || (i + 2), 'asked', ${from} FROM n;
		INSERT INTO fields (variable, name, created_at) VALUES ('city', 'City', ${from}), ('plan', 'Plan', ${from});
		${numbers(subscribers)} INSERT INTO subscribers (${columns}) ${row('i + 1', '1', 'i')};
		${numbers(subscribers)} INSERT INTO subscribers (${columns})
			${row(`${subscribers} + i + 1`, '2 + i % 98', 'i')};
		${numbers(peopleOfLast)} INSERT INTO subscribers (${columns}) ${row(`${2 * subscribers} + i + 1`, '100', 'i')};
		UPDATE id_sequences SET last = ${2 * subscribers + peopleOfLast} WHERE name = 'subscribers';
		INSERT INTO list_counters
			SELECT list_id, 0, sum(is_active), sum(1 - is_active) FROM subscribers GROUP BY list_id;
		INSERT INTO list_joined
			SELECT list_id, created_at / 900000000, 0, count(*) FROM subscribers GROUP BY 1, 2;`;
}

interface Mail {
	messages: number;
	people: number;
	from: number;
	step: number;
}

function mailOf({ messages, people, from, step }: Mail): string {
	const at = (number: string) => `(${from} + (${number}) * ${step})`;
	const blocks = messages / block;
	const name = (first: string, number: string) => `printf('${first}0000000-0000-4000-8000-%012x', ${number})`;
	const envelope = `'{"from":"desk@example.org","reply_to":[],"cc":[],"bcc":[],"headers":{}}'`;
	const person = `(i * 7919 % ${people})`;
	const isCampaign = `(i % ${block} < ${inCampaign})`;
	const isOfBlock = `(i / ${block})`;
	const last = messages - waiting;
	return `
		${numbers(blocks)} INSERT INTO contents (sha256, subject, text, disable_inline, used_at)
			SELECT printf('%064x', i + 1), 'News ' || i, 'Hello #name#, this is news ' || i, 0, ${at(`i * ${block}`)} FROM n;
		${numbers(100)} INSERT INTO contents (sha256, subject, text, disable_inline, used_at)
			SELECT printf('a%063x', i), 'Receipt', 'Hello #name#, receipt ' || i, 0, ${at(String(messages))} FROM n;
		${numbers(blocks)} INSERT INTO campaigns
			(seq, id, key, spec, strict_vars, state, staged, created_at, released_at, is_complete, last_leased_at)
			SELECT i + 1, ${name('c', 'i')}, 'news-' || i, '{"from":"desk@example.org","subject":"News","type":"BULK"}', 1, 'released',
				${inCampaign}, ${at(`i * ${block}`)} - 1, ${at(`i * ${block}`)}, 1, 1 FROM n;
		${numbers(blocks)} INSERT INTO campaign_lists (campaign_seq, list_id, after_id, counts) SELECT i + 1, 1, ${people}, '{}' FROM n;
		${numbers(blocks)} INSERT INTO submissions
			(seq, id, type, envelope, tag, campaign, content_sha256, context, variables, list_id, campaign_seq, created_at)
			SELECT i * ${submissionsOfBlock} + 1, ${name('5', `i * ${submissionsOfBlock}`)}, 'BULK', ${envelope}, 'news',
				${name('c', 'i')}, printf('%064x', i + 1), '{}', '["name"]', 1, i + 1, ${at(`i * ${block}`)} FROM n;
		${numbers(blocks * (block - inCampaign))} INSERT INTO submissions
			(seq, id, type, envelope, tag, content_sha256, context, variables, created_at)
			SELECT i / 5000 * ${submissionsOfBlock} + 2 + i % 5000, ${name('5', `i / 5000 * ${submissionsOfBlock} + 1 + i % 5000`)},
				'TRANSACTIONAL', ${envelope}, iif(i % 1000 = 0, 'rare', 'receipt'), printf('a%063x', i % 100), '{}', '["name"]',
				${at(`i / 5000 * ${block} + ${inCampaign} + i % 5000`)} FROM n;
		${numbers(messages)} INSERT INTO messages (id, uuid, submission_seq, lane, to_email, to_key, list_id, subscriber_id, variables,
			state, attempts, due_at, wake_at, created_at, sent_at, last_reply)
			SELECT i + 1, printf('%08x-0000-4000-8000-%012x', i * 2654435761 % 4294967296, i),
				${isOfBlock} * ${submissionsOfBlock} + iif(${isCampaign}, 1, 2 + i % ${block} - ${inCampaign}),
				iif(${isCampaign}, ${isOfBlock} + 1, 0), ${addressOf(person)}, ${addressOf(person)},
				iif(${isCampaign}, 1, NULL), ${person} + 1, printf('{"name":"Person %d"}', ${person}),
				CASE WHEN i >= ${last} THEN 'deferred' WHEN i % 50 = 7 THEN 'bounced' WHEN i % 100 = 9 THEN 'failed'
					WHEN i % 1000 = 11 THEN 'canceled' ELSE 'sent' END,
				i % 1000 <> 11, ${at('i')}, iif(i >= ${last}, ${at('i')} + 86400000000, NULL),
				iif(${isCampaign}, ${at(`${isOfBlock} * ${block}`)}, ${at('i')}),
				iif(i >= ${last} OR i % 50 = 7 OR i % 100 = 9 OR i % 1000 = 11, NULL, ${at('i')}),
				iif(i % 50 = 7, '550 5.1.1 No such user', '250 2.0.0 Ok: queued as 4bXyZw1234')
			FROM n;
		INSERT INTO counters VALUES ('messages', 0, ${messages});
		INSERT INTO attempts
			SELECT id, 1, due_at, state, iif(state = 'sent', 'answer', 'rcpt'), iif(state = 'sent', 250, 550),
				iif(state = 'sent', '2.0.0', '5.1.1'), iif(state = 'sent', 'Ok: queued as 4bXyZw1234', 'No such user')
			FROM messages WHERE attempts > 0;`;
}

function eventsOf(from: number): string {
	return `
		INSERT INTO events (message_id, type, at, link, machine, ip, user_agent)
			SELECT id, 'OPENED', sent_at + 600000000, NULL, id % 10 = 1, '192.0.2.7', 'Mozilla/5.0 (X11; Linux x86_64)'
			FROM messages WHERE sent_at IS NOT NULL AND id % 10 IN (1, 3, 6, 8);
		INSERT INTO events (message_id, type, at, link, machine, url)
			SELECT id, 'REDIRECTED', sent_at + 660000000, id / 20 % 3, 0, 'https://example.org/' || (id / 20 % 3)
			FROM messages WHERE sent_at IS NOT NULL AND id % 20 = 3;
		INSERT INTO events (message_id, type, at, machine, smtp_code, diagnostic)
			SELECT id, 'HARDBOUNCED', due_at, 0, '5.1.1', '550 5.1.1 No such user' FROM messages WHERE state = 'bounced';
		INSERT INTO message_firsts
			SELECT message_id, type, coalesce(link, -1), machine, at, 1 FROM events;
		INSERT INTO suppressions (email_key, reason, list_id, source, created_at)
			SELECT to_key, 'HARDBOUNCED', 0, 'DELIVERY', min(due_at) FROM messages WHERE state = 'bounced' GROUP BY to_key;
		INSERT INTO webhooks (url, type, is_auth_enabled, login, password, created_at)
			VALUES ('http://127.0.0.1:9/hook', 'HARDBOUNCED', 0, '', '', ${from});
		INSERT INTO webhook_deliveries (uuid, webhook_id, message_id, payload, state, attempts, status_code, created_at, finished_at, type)
			SELECT printf('d0000000-0000-4000-8000-%012x', id), 1, id, '{"type":"HARDBOUNCED","email":"' || to_email || '"}', 'delivered', 1, 200,
				due_at, due_at, 'HARDBOUNCED'
			FROM messages WHERE state = 'bounced' AND due_at > ${from} + 335 * 86400000000;`;
}

const figures = `
	CREATE TEMP TABLE counted AS
	SELECT s.campaign, 'CREATED' AS type, 'all' AS audience, m.created_at / 900000000 AS quarter, count(*) AS count
	FROM messages m JOIN submissions s ON s.seq = m.submission_seq GROUP BY 1, 4
	UNION ALL
	SELECT s.campaign, 'SENT', 'all', m.sent_at / 900000000, count(*)
	FROM messages m JOIN submissions s ON s.seq = m.submission_seq WHERE m.sent_at IS NOT NULL GROUP BY 1, 4
	UNION ALL
	SELECT s.campaign, f.type, a.audience, f.first_at / 900000000, count(*)
	FROM message_firsts f
	JOIN (SELECT 'all' AS audience, 1 AS machine UNION ALL SELECT 'human', 0) a ON f.machine <= a.machine
	JOIN messages m ON m.id = f.message_id
	JOIN submissions s ON s.seq = m.submission_seq
	GROUP BY 1, 2, 3, 4;
	INSERT INTO quarter_figures
	SELECT scope, quarter, type, audience, 0, sum(count)
	FROM (SELECT '' AS scope, * FROM counted UNION ALL SELECT campaign, * FROM counted WHERE campaign IS NOT NULL)
	GROUP BY 1, 2, 3, 4;
	INSERT INTO daily_figures
	SELECT scope, date(quarter * 900, 'unixepoch'), type, audience, 0, sum(count)
	FROM quarter_figures
	GROUP BY 1, 2, 3, 4;
	DROP TABLE counted;
	INSERT INTO link_figures
	SELECT s.campaign, s.content_sha256, f.link, a.audience, 0, count(*), count(*)
	FROM message_firsts f
	JOIN (SELECT 'all' AS audience, 1 AS machine UNION ALL SELECT 'human', 0) a ON f.machine <= a.machine
	JOIN messages m ON m.id = f.message_id
	JOIN submissions s ON s.seq = m.submission_seq
	WHERE f.type = 'REDIRECTED' AND s.campaign IS NOT NULL
	GROUP BY 1, 2, 3, 4;
	CREATE TEMP TABLE bounced AS
	SELECT s.campaign, m.due_at / 900000000 AS quarter, substr(m.to_key, instr(m.to_key, '@') + 1) AS domain, count(*) AS count
	FROM messages m JOIN submissions s ON s.seq = m.submission_seq WHERE m.state = 'bounced' GROUP BY 1, 2, 3;
	INSERT INTO bounce_figures
	SELECT scope, quarter, domain, 'HARDBOUNCED', '5.1.1', 0, sum(count)
	FROM (SELECT '' AS scope, * FROM bounced UNION ALL SELECT campaign, * FROM bounced WHERE campaign IS NOT NULL)
	GROUP BY 1, 2, 3;
	DROP TABLE bounced;
	INSERT INTO bounced_figures
	SELECT m.due_at / 900000000, -1, coalesce(m.sent_at / 900000000, -1), coalesce(s.campaign, ''), coalesce(s.tag, ''), 0, count(*)
	FROM messages m JOIN submissions s ON s.seq = m.submission_seq WHERE m.state = 'bounced' GROUP BY 1, 3, 4, 5;`;
