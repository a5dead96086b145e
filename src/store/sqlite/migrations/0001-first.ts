/**
 * The first schema. Never edited: what comes later is a later migration.
 *
 * Times are integer microseconds. Booleans are 0 or 1. Wire names stay on the wire; here are the field's words.
 * There are no triggers: counters and figures are written by the operation that changes the rows, which costs a
 * bulk load nothing per row.
 */
export const first = {
	version: 1,
	name: 'first',
	sql: `
CREATE TABLE migrations (
	version INTEGER PRIMARY KEY,
	name TEXT NOT NULL,
	applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE settings (
	name TEXT PRIMARY KEY,
	value TEXT NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who has the database open, and since when we have heard of it.
CREATE TABLE processes (
	id TEXT PRIMARY KEY,
	role TEXT NOT NULL,
	host TEXT NOT NULL,
	pid INTEGER NOT NULL,
	started_at INTEGER NOT NULL,
	heartbeat_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- AUTOINCREMENT writes its own table once a row; subscribers take their ids from here in blocks instead.
CREATE TABLE id_sequences (
	name TEXT PRIMARY KEY,
	last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO id_sequences VALUES ('subscribers', 0);

CREATE TABLE lists (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	email_reason TEXT NOT NULL,
	active_count INTEGER NOT NULL DEFAULT 0,
	inactive_count INTEGER NOT NULL DEFAULT 0,
	created_at INTEGER NOT NULL
) STRICT;

-- email_folded is NULL where it equals email_key: the substring filter reads coalesce(email_folded, email_key).
-- import_seq is the last import session that saw the row: how a session finds its own duplicates.
CREATE TABLE subscribers (
	id INTEGER PRIMARY KEY,
	list_id INTEGER NOT NULL REFERENCES lists (id),
	email TEXT NOT NULL,
	email_key TEXT NOT NULL,
	key_version INTEGER NOT NULL DEFAULT 1,
	email_folded TEXT,
	name TEXT NOT NULL,
	is_active INTEGER NOT NULL,
	disable_reason TEXT,
	is_email_verified INTEGER NOT NULL DEFAULT 0,
	meta TEXT NOT NULL,
	source TEXT NOT NULL,
	opt_in_signed INTEGER,
	created_at INTEGER NOT NULL,
	import_seq INTEGER,
	soft_bounces INTEGER NOT NULL DEFAULT 0,
	soft_bounced_since INTEGER
) STRICT;
-- Led by the address, so that one index serves uniqueness and "in which lists is this address".
CREATE UNIQUE INDEX subscribers_by_key ON subscribers (email_key, list_id);
-- Pages and exports walk a list by id: the rowid is the suffix of every index.
CREATE INDEX subscribers_of_list ON subscribers (list_id);
CREATE INDEX subscribers_soft_bouncing ON subscribers (email_key) WHERE soft_bounces > 0;

CREATE TABLE fields (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	variable TEXT NOT NULL UNIQUE,
	name TEXT NOT NULL,
	created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE senders (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	email TEXT NOT NULL,
	email_key TEXT NOT NULL UNIQUE,
	key_version INTEGER NOT NULL DEFAULT 1,
	created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE templates (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	name TEXT NOT NULL UNIQUE,
	text_body TEXT NOT NULL,
	html_body TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE webhooks (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	url TEXT NOT NULL,
	type TEXT NOT NULL,
	is_auth_enabled INTEGER NOT NULL,
	login TEXT NOT NULL,
	password TEXT NOT NULL,
	created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE webhook_deliveries (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	uuid TEXT NOT NULL UNIQUE,
	webhook_id INTEGER NOT NULL,
	message_id INTEGER,
	payload TEXT NOT NULL,
	state TEXT NOT NULL,
	attempts INTEGER NOT NULL DEFAULT 0,
	due_at INTEGER,
	lease_owner TEXT,
	lease_until INTEGER,
	fence INTEGER NOT NULL DEFAULT 0,
	status_code INTEGER,
	answer TEXT,
	created_at INTEGER NOT NULL,
	finished_at INTEGER
) STRICT;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_hook ON webhook_deliveries (webhook_id);

-- By address, not by row: they outlive subscribers and lists.
CREATE TABLE suppressions (
	email_key TEXT NOT NULL,
	reason TEXT NOT NULL,
	key_version INTEGER NOT NULL DEFAULT 1,
	source TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	expires_at INTEGER,
	PRIMARY KEY (email_key, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE erased (
	email_hash TEXT PRIMARY KEY,
	key_id INTEGER NOT NULL,
	erased_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE contents (
	sha256 TEXT PRIMARY KEY,
	subject TEXT NOT NULL,
	text TEXT,
	html TEXT,
	disable_inline INTEGER NOT NULL
) STRICT;

CREATE TABLE mailings (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	key TEXT NOT NULL UNIQUE,
	spec TEXT NOT NULL,
	strict_vars INTEGER NOT NULL,
	state TEXT NOT NULL,
	has_open_work INTEGER NOT NULL DEFAULT 0,
	last_leased_at INTEGER NOT NULL DEFAULT 0,
	staged INTEGER NOT NULL DEFAULT 0,
	suppressed INTEGER NOT NULL DEFAULT 0,
	rejected INTEGER NOT NULL DEFAULT 0,
	created_at INTEGER NOT NULL,
	released_at INTEGER,
	canceled_at INTEGER
) STRICT;
CREATE INDEX mailings_open ON mailings (last_leased_at) WHERE has_open_work = 1;

-- How far each list of a mailing has been expanded.
CREATE TABLE mailing_lists (
	mailing_seq INTEGER NOT NULL REFERENCES mailings (seq),
	list_id INTEGER NOT NULL,
	after_id INTEGER NOT NULL,
	PRIMARY KEY (mailing_seq, list_id)
) STRICT, WITHOUT ROWID;

-- context and variables are JSON; campaign is the mailing's UUID on the wire.
CREATE TABLE submissions (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	type TEXT NOT NULL,
	envelope TEXT NOT NULL,
	tag TEXT,
	campaign TEXT,
	content_sha256 TEXT NOT NULL REFERENCES contents (sha256),
	context TEXT NOT NULL,
	variables TEXT NOT NULL,
	list_id INTEGER,
	mailing_seq INTEGER REFERENCES mailings (seq),
	created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX submissions_of_campaign ON submissions (campaign) WHERE campaign IS NOT NULL;
CREATE INDEX submissions_of_tag ON submissions (tag) WHERE tag IS NOT NULL;

-- lane: 0 single transactional calls, -1 single bulk calls, else the mailing's seq.
-- wake_at is when a worker may take the row: due_at while it waits, the end of the lease while it is leased, NULL
-- once it is final. So expired leases come back through the same index as everything else.
-- A mailing's uuids are hashes of (mailing, address): uniqueness of uuid is also one message per address.
CREATE TABLE messages (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	uuid TEXT NOT NULL,
	submission_seq INTEGER NOT NULL REFERENCES submissions (seq),
	lane INTEGER NOT NULL,
	to_email TEXT NOT NULL,
	to_key TEXT NOT NULL,
	list_id INTEGER,
	subscriber_id INTEGER,
	variables TEXT NOT NULL,
	state TEXT NOT NULL,
	attempts INTEGER NOT NULL DEFAULT 0,
	due_at INTEGER NOT NULL,
	wake_at INTEGER,
	lease_owner TEXT,
	fence INTEGER NOT NULL DEFAULT 0,
	created_at INTEGER NOT NULL,
	sent_at INTEGER,
	last_reply TEXT
) STRICT;
CREATE UNIQUE INDEX messages_by_uuid ON messages (uuid);
CREATE INDEX messages_of_submission ON messages (submission_seq);
CREATE INDEX messages_of_address ON messages (to_key);
CREATE INDEX messages_due ON messages (lane, wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE attempts (
	message_id INTEGER NOT NULL,
	number INTEGER NOT NULL,
	at INTEGER NOT NULL,
	outcome TEXT NOT NULL,
	phase TEXT NOT NULL,
	code INTEGER,
	enhanced TEXT,
	text TEXT NOT NULL,
	PRIMARY KEY (message_id, number)
) STRICT, WITHOUT ROWID;

-- What happened after SENT, one row each time; may be thinned out by age, unlike message_firsts.
CREATE TABLE events (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	message_id INTEGER NOT NULL,
	type TEXT NOT NULL,
	at INTEGER NOT NULL,
	link INTEGER,
	machine INTEGER NOT NULL,
	ip TEXT,
	user_agent TEXT,
	url TEXT,
	smtp_code TEXT,
	diagnostic TEXT
) STRICT;
CREATE INDEX events_of_message ON events (message_id);
CREATE INDEX events_by_time ON events (at);

-- The first time and the number of each (message, type, link) by machine and by human; link -1 = no link.
CREATE TABLE message_firsts (
	message_id INTEGER NOT NULL,
	type TEXT NOT NULL,
	link INTEGER NOT NULL,
	machine INTEGER NOT NULL,
	first_at INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (message_id, type, link, machine)
) STRICT, WITHOUT ROWID;

-- scope: '' = everything, else a campaign. audience: 'all' or 'human'. shard: always 0 here.
CREATE TABLE daily_figures (
	scope TEXT NOT NULL,
	day TEXT NOT NULL,
	type TEXT NOT NULL,
	audience TEXT NOT NULL,
	shard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (scope, day, type, audience, shard)
) STRICT, WITHOUT ROWID;

CREATE TABLE imports (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	key TEXT NOT NULL,
	spec TEXT NOT NULL,
	list_id INTEGER NOT NULL,
	position INTEGER NOT NULL DEFAULT 0,
	counts TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	finished_at INTEGER
) STRICT;
CREATE UNIQUE INDEX imports_unfinished ON imports (key) WHERE finished_at IS NULL;

-- Answers kept until the session is finished, so that a lost one can be given again.
CREATE TABLE import_acks (
	import_seq INTEGER NOT NULL REFERENCES imports (seq),
	first INTEGER NOT NULL,
	ack TEXT NOT NULL,
	PRIMARY KEY (import_seq, first)
) STRICT;

CREATE TABLE idempotency_keys (
	scope TEXT NOT NULL,
	key TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	submission_id TEXT NOT NULL,
	campaign TEXT,
	answer TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (scope, key)
) STRICT;
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);

CREATE TABLE tokens (
	sha256 TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	scopes TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE keyring (
	purpose TEXT NOT NULL,
	id INTEGER NOT NULL,
	secret TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	retired_at INTEGER,
	PRIMARY KEY (purpose, id)
) STRICT, WITHOUT ROWID;
`,
} as const;
