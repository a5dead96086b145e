/** A database of an older schema with data in it: opened, migrated, gone on with. */
import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import type { DeliveryOutcome } from '../../../src/engine/rules/outcomes.js';
import { openStore } from '../../../src/store/open.js';
import { first } from '../../../src/store/sqlite/migrations/0001-first.js';
import { allMigrations, migrate, schemaVersion } from '../../../src/store/sqlite/migrations.js';
import {
	accepted250,
	busy451,
	deliver,
	eventOf,
	figures,
	fixedClock,
	hour,
	lease,
	noon,
	put,
	recipientOf,
	send,
	unknown550,
	verify,
} from '../../contract/store/fixture.js';

const uuid = (digit: number) => `00000000-0000-4000-8000-00000000000${digit}`;
const [staged, released] = [uuid(1), uuid(2)];

/** As version 1 left it: one campaign staged from a list, one released. */
const dataOfFirst = `
INSERT INTO lists VALUES (1, 'News', 'You read News', 3, 0, ${noon});
INSERT INTO subscribers (id, list_id, email, email_key, name, is_active, meta, source, created_at)
	VALUES (1, 1, 'a@example.org', 'a@example.org', 'Ann', 1, '{}', 'API', ${noon}),
		(2, 1, 'b@example.org', 'b@example.org', 'Bob', 1, '{}', 'API', ${noon}),
		(3, 1, 'c@example.org', 'c@example.org', 'Cy', 1, '{}', 'API', ${noon});
INSERT INTO senders (email, email_key, created_at) VALUES ('desk@example.org', 'desk@example.org', ${noon});
INSERT INTO contents VALUES ('hash', 'Hi', 'Hello #name#, #plan#', NULL, 0);
INSERT INTO mailings (seq, id, key, spec, strict_vars, state, has_open_work, staged, suppressed, rejected, created_at, released_at)
	VALUES (1, '${staged}', 'job', '{"from":"desk@example.org","subject":"Hi","text_body":"Hello","type":"BULK"}', 0, 'staged', 0, 2, 1, 0, ${noon}, NULL),
		(2, '${released}', 'other', '{}', 0, 'released', 1, 1, 0, 0, ${noon}, ${noon});
INSERT INTO mailing_lists VALUES (1, 1, 3);
INSERT INTO submissions (seq, id, type, envelope, campaign, content_sha256, context, variables, mailing_seq, created_at)
	VALUES (1, '${uuid(3)}', 'BULK', '{"from":"desk@example.org","reply_to":[],"cc":[],"bcc":[],"headers":{}}', '${staged}', 'hash', '{"plan":"all"}', '["name","plan"]', 1, ${noon}),
		(2, '${uuid(4)}', 'BULK', '{"from":"desk@example.org","reply_to":[],"cc":[],"bcc":[],"headers":{}}', '${released}', 'hash', '{"plan":"all"}', '["name","plan"]', 2, ${noon});
INSERT INTO messages (uuid, submission_seq, lane, to_email, to_key, list_id, subscriber_id, variables, state, due_at, wake_at, created_at)
	VALUES ('${uuid(5)}', 1, 1, 'a@example.org', 'a@example.org', 1, 1, '{"name":"Ann"}', 'staged', ${noon}, ${noon}, ${noon}),
		('${uuid(6)}', 1, 1, 'b@example.org', 'b@example.org', 1, 2, '{"name":"Bob"}', 'staged', ${noon}, ${noon}, ${noon}),
		('${uuid(7)}', 2, 2, 'c@example.org', 'c@example.org', 1, 3, '{"name":"Cy"}', 'staged', ${noon}, ${noon}, ${noon});
INSERT INTO suppressions VALUES ('gone@example.org', 'HARDBOUNCED', 1, 'delivery', ${noon}, NULL),
	('left@example.org', 'UNSUBSCRIBED', 1, 'RECIPIENT', ${noon}, ${noon + 1});
INSERT INTO daily_figures VALUES ('total', '2026-03-10', 'CREATED', 'all', 0, 1);
`;

describe('a database from before figures by link, hour and bounce', () => {
	it('has those figures of all that happened until then', async () => {
		const folder = mkdtempSync(join(tmpdir(), 'mailctl-migrate-'));
		const path = join(folder, 'mailctl.db');
		const store = await openStore(path, { clock: fixedClock, mode: 'create' });
		await verify(store);
		const to = ['a@example.org', 'b@example.org', 'c@b.example', 'd@example.org'];
		const sentTo = async (outcome: DeliveryOutcome, more = {}) => {
			await send(store, [to.pop() ?? ''], { campaign: 'c', ...more });
			return deliver(store, outcome);
		};
		const first = await sentTo({ kind: 'sent', reply: accepted250 });
		await sentTo({ kind: 'bounced', reply: unknown550, suppress: true });
		await sentTo({ kind: 'failed', reply: busy451 }, { campaign: null });
		const click = (link: number, machine: boolean) => eventOf(first, 'REDIRECTED', { link, machine });
		await store.writes.recordEvents({
			events: [
				click(0, true),
				click(0, false),
				click(1, false),
				eventOf(first, 'OPENED', { at: noon + hour }),
			],
		});
		await store.writes.recordReport({
			...{
				sha256: 'x',
				message: first,
				kind: 'complaint',
				at: noon + hour,
				matched: 'return_path',
				recipients: [],
			},
		});
		await store.close();
		const db = new Database(path);
		const tables = ['quarter_figures', 'link_figures', 'bounce_figures', 'bounced_figures'];
		const counted = tables.map((table) => db.prepare(`SELECT * FROM ${table}`).all());
		expect(counted.map((rows) => rows.length)).toEqual([20, 4, 3, 2]);
		for (const table of tables) db.exec(`DROP TABLE ${table}`);
		db.exec(
			"CREATE INDEX message_firsts_bounced ON message_firsts (first_at) WHERE type IN ('SOFTBOUNCED', 'HARDBOUNCED')",
		);
		// What later versions have added.
		db.exec('DROP TABLE content_attachments; DROP TABLE attachment_owners; DROP TABLE attachments');
		db.exec('DROP TABLE campaign_left_out; ALTER TABLE campaign_lists DROP COLUMN counts');
		for (const column of ['left_out', 'audience', 'starts_at', 'opens_at', 'send_window', 'time_zone'])
			db.exec(`ALTER TABLE campaigns DROP COLUMN ${column}`);
		db.exec('ALTER TABLE clock DROP COLUMN proven; ALTER TABLE lists DROP COLUMN public_name');
		db.exec('ALTER TABLE submissions DROP COLUMN tracking');
		for (const column of ['full_name', 'reply_to_email'])
			db.exec(`ALTER TABLE senders DROP COLUMN ${column}`);
		db.exec(
			"CREATE INDEX messages_uncertain ON messages (lane) WHERE state = 'uncertain'; DROP INDEX messages_over_of_lane; ALTER TABLE campaigns DROP COLUMN is_again; ALTER TABLE campaigns DROP COLUMN rate",
		);
		db.exec(
			'DROP INDEX messages_over; DROP TABLE list_joined; DROP TABLE list_counters; DROP TABLE counters',
		);
		for (const table of ['figures', 'links', 'bounces', 'bounced', 'states', 'joined'])
			db.exec(`DROP TABLE deleted_${table}`);
		db.exec(
			'DROP TABLE old_messages; DROP INDEX contents_by_use; ALTER TABLE contents DROP COLUMN used_at; ALTER TABLE contents DROP COLUMN dropped_at; ALTER TABLE campaigns DROP COLUMN dropped_at',
		);
		for (const index of ['submissions_of_content', 'submissions_with_copies', 'campaign_results_refused'])
			db.exec(`DROP INDEX ${index}`);
		for (const column of ['active_count', 'inactive_count'])
			db.exec(`ALTER TABLE lists ADD COLUMN ${column} INTEGER NOT NULL DEFAULT 0`);
		db.exec('DELETE FROM migrations WHERE version >= 17; PRAGMA user_version = 16');
		db.close();
		await (await openStore(path, { clock: fixedClock, mode: 'existing' })).close();
		const again = new Database(path);
		expect(tables.map((table) => again.prepare(`SELECT * FROM ${table}`).all())).toEqual(counted);
		again.close();
		rmSync(folder, { recursive: true, force: true });
	});
});

it('keeps whom campaigns left out before send calls did', () => {
	const db = new Database(':memory:');
	const me = { id: 'me', role: 'cli', host: hostname(), pid: process.pid };
	const until = (version: number) => allMigrations.filter((each) => each.version <= version);
	migrate(db, { path: ':memory:', me, now: noon }, until(32));
	db.pragma('foreign_keys = ON');
	db.exec(`
		INSERT INTO campaigns (seq, id, key, spec, strict_vars, state, created_at)
		VALUES (7, '${staged}', 'job', '{}', 0, 'staged', ${noon});
		INSERT INTO campaign_left_out (id, campaign_seq, list_id, to_email, to_key, code, detail)
		VALUES (3, 7, 1, 'A@example.org', 'a@example.org', 'inactive', NULL)`);
	migrate(db, { path: ':memory:', me, now: noon }, until(33));
	expect(db.prepare('SELECT * FROM campaign_left_out').all()).toEqual([
		{
			...{ id: 3, campaign_seq: 7, submission_seq: null, campaign: null, list_id: 1 },
			...{ to_email: 'A@example.org', to_key: 'a@example.org', code: 'inactive', detail: null },
		},
	]);
	expect(db.pragma('foreign_key_check')).toEqual([]);
	db.close();
});

describe('a database of schema 1 with campaigns in it', () => {
	let folder: string;
	let path: string;
	beforeEach(() => {
		folder = mkdtempSync(join(tmpdir(), 'mailctl-migrate-'));
		path = join(folder, 'mailctl.db');
		const db = new Database(path);
		migrate(db, { path, me: { id: 'me', role: 'cli', host: hostname(), pid: process.pid }, now: noon }, [
			first,
		]);
		db.exec(dataOfFirst);
		expect(db.pragma('user_version', { simple: true })).toBe(1);
		db.close();
		return () => rmSync(folder, { recursive: true, force: true });
	});
	const open = () => openStore(path, { clock: fixedClock, mode: 'existing' });

	it('is migrated when it is opened, with everything in it', async () => {
		const store = await open();
		expect((await store.reads.status()).schema_version).toBe(schemaVersion);
		expect(await store.reads.campaignStatus({ id: staged, now: 0 })).toMatchObject({
			state: 'staged',
			messages: { staged: 2 },
			counts: { staged: 2, suppressed: 1, rejected: 0 },
		});
		expect((await lease(store)).map(({ to, variables }) => [to, variables])).toEqual([
			['c@example.org', { name: 'Cy', plan: 'all' }],
		]);
		await store.close();
	});

	it('knows when its subscribers came', async () => {
		const store = await open();
		await store.close();
		const db = new Database(path);
		expect(db.prepare('SELECT * FROM list_joined').all()).toEqual([
			{ list_id: 1, quarter: Math.floor(noon / 900_000_000), shard: 0, count: 3 },
		]);
		db.close();
	});

	it('knows how many messages it has', async () => {
		const store = await open();
		const { count, results } = await store.reads.pageMessages({ page: 1, page_size: 9, filter: {} });
		expect([count, results.length]).toEqual([3, 3]);
		expect((await store.reads.status()).messages).toEqual({ queued: 1, staged: 2 });
		await store.close();
	});

	it('has every suppression it had, of all lists', async () => {
		const store = await open();
		const page = { filter: {}, now: noon, page: 1, page_size: 9 };
		const standing = { list_id: null, date_created: '2026-03-10T12:00:00.000000' };
		expect((await store.reads.pageSuppressions(page)).results).toEqual([
			{
				...standing,
				...{ email: 'gone@example.org', reason: 'HARDBOUNCED', source: 'DELIVERY', expires_at: null },
			},
			{
				...standing,
				...{ email: 'left@example.org', reason: 'UNSUBSCRIBED', source: 'RECIPIENT' },
				expires_at: '2026-03-10T12:00:00.000001',
			},
		]);
		await store.close();
	});

	it('takes batches for the campaign that was staged, and keeps their answers over a restart', async () => {
		const before = await open();
		const ack = { position: 1, counts: { staged: 1, suppressed: 0, rejected: 0 }, rejects: [] };
		const rows = [recipientOf('d@example.org', { plan: 'mine' })];
		expect(await put(before, staged, 1, rows)).toEqual({ kind: 'gap', position: 0 });
		expect(await put(before, staged, 0, rows)).toEqual({ kind: 'acknowledged', ack });
		await before.close();
		const store = await open();
		expect(await put(store, staged, 0, rows)).toEqual({ kind: 'acknowledged', ack });
		expect(await store.writes.addListToCampaign({ campaign: staged, list_id: 1, now: noon })).toMatchObject({
			position: 3,
		});
		expect(await store.writes.releaseCampaign({ campaign: staged, expect_count: 3, now: noon })).toEqual({
			kind: 'released',
		});
		expect((await lease(store, { scope: { campaign: staged } })).map(({ variables }) => variables)).toEqual([
			{ name: 'Ann', plan: 'all' },
			{ name: 'Bob', plan: 'all' },
			{ name: '', plan: 'mine' },
		]);
		expect(await figures(store, { campaign: staged })).toEqual(['2026-03-10 CREATED 3']);
		await store.close();
	});
});
