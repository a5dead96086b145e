-- The schema of version 1. A later version adds a migration (`migrations.ts`) and leaves this file as it is.
--
-- Times are integer microseconds, and a `quarter` counts quarters of an hour since 1970 in UTC. Booleans are 0 or 1.
-- A `shard` is always 0 here; on PostgreSQL, shards keep writers of one figure from waiting for each other.
-- There are no triggers: the operation that changes rows also writes counters and figures, so a bulk load pays nothing
-- per row. SQLite appends the rowid to every index, so queries for pages of results read an index in the order of ids.

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

CREATE TABLE processes (
	id TEXT PRIMARY KEY,
	role TEXT NOT NULL,
	host TEXT NOT NULL,
	pid INTEGER NOT NULL,
	started_at INTEGER NOT NULL,
	heartbeat_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row. `ahead` is the machine's clock minus its steady clock, which restarts at each boot. If `ahead` jumps, the
-- queue's times move with it. `proven` is JSON: the time that retention uses, because the machine's clock may be wrong
-- (`core/processes.ts`).
CREATE TABLE clock (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	boot TEXT NOT NULL,
	ahead INTEGER NOT NULL,
	proven TEXT
) STRICT;

CREATE TABLE keyring (
	purpose TEXT NOT NULL,
	id INTEGER NOT NULL,
	secret TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	retired_at INTEGER,
	PRIMARY KEY (purpose, id)
) STRICT, WITHOUT ROWID;

-- The private half of each key is in `keyring`, with the purpose 'dkim' and the same id.
CREATE TABLE dkim_keys (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	domain TEXT NOT NULL,
	selector TEXT NOT NULL,
	type TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	UNIQUE (domain, selector)
) STRICT;

CREATE TABLE tokens (
	sha256 TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	scopes TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- AUTOINCREMENT writes to `sqlite_sequence` for each row, so subscribers take blocks of ids from this table instead.
CREATE TABLE id_sequences (
	name TEXT PRIMARY KEY,
	last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO id_sequences VALUES ('subscribers', 0);

-- Row counts that are read often. 'messages' counts all messages.
CREATE TABLE counters (
	name TEXT NOT NULL,
	shard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (name, shard)
) STRICT, WITHOUT ROWID;

-- Lists and their subscribers ---------------------------------------------------------------------------------------

-- Recipients see `public_name`. If it is NULL, they see `name`.
CREATE TABLE lists (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	email_reason TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	public_name TEXT
) STRICT;

CREATE TABLE list_counters (
	list_id INTEGER NOT NULL,
	shard INTEGER NOT NULL,
	active INTEGER NOT NULL,
	inactive INTEGER NOT NULL,
	PRIMARY KEY (list_id, shard)
) STRICT, WITHOUT ROWID;

CREATE TABLE list_joined (
	list_id INTEGER NOT NULL,
	quarter INTEGER NOT NULL,
	shard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (list_id, quarter, shard)
) STRICT, WITHOUT ROWID;

-- `email` is '' if the address equals `email_key`. `email_folded` is NULL if the folded address equals `email_key`, so
-- the substring filter reads coalesce(email_folded, email_key). `import_seq` is the last import that contained the
-- address. It shows duplicates in a file.
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
-- The address comes first, so that one index serves uniqueness and "in which lists is this address".
CREATE UNIQUE INDEX subscribers_by_key ON subscribers (email_key, list_id);
CREATE INDEX subscribers_of_list ON subscribers (list_id);
CREATE INDEX subscribers_soft_bouncing ON subscribers (email_key) WHERE soft_bounces > 0;

CREATE TABLE fields (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	variable TEXT NOT NULL UNIQUE,
	name TEXT NOT NULL,
	created_at INTEGER NOT NULL
) STRICT;

-- Suppressions outlive subscribers and lists. `list_id` is 0 for a suppression of all lists.
CREATE TABLE suppressions (
	email_key TEXT NOT NULL,
	reason TEXT NOT NULL,
	list_id INTEGER NOT NULL DEFAULT 0,
	key_version INTEGER NOT NULL DEFAULT 1,
	source TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	expires_at INTEGER,
	PRIMARY KEY (email_key, reason, list_id)
) STRICT, WITHOUT ROWID;
-- Deleting a list reads this index, to make the list's few suppressions apply to all lists.
CREATE INDEX suppressions_of_list ON suppressions (list_id) WHERE list_id > 0;

CREATE TABLE erased (
	email_hash TEXT PRIMARY KEY,
	key_id INTEGER NOT NULL,
	erased_at INTEGER NOT NULL
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

-- Answers stay until the import is finished, so that a repeated batch gets the same answer.
CREATE TABLE import_acks (
	import_seq INTEGER NOT NULL REFERENCES imports (seq),
	first INTEGER NOT NULL,
	ack TEXT NOT NULL,
	PRIMARY KEY (import_seq, first)
) STRICT;

-- An import into another service goes row by row. Before it creates or updates a subscriber there, it writes its intent
-- here. The row stays until the batch is acknowledged.
CREATE TABLE import_intents (
	import_seq INTEGER NOT NULL REFERENCES imports (seq),
	row INTEGER NOT NULL,
	intent TEXT NOT NULL,
	PRIMARY KEY (import_seq, row)
) STRICT, WITHOUT ROWID;

-- Shortened hashes of the addresses that an import into another service has processed, to find duplicates.
CREATE TABLE import_addresses (
	import_seq INTEGER NOT NULL REFERENCES imports (seq),
	hash TEXT NOT NULL,
	PRIMARY KEY (import_seq, hash)
) STRICT, WITHOUT ROWID;

-- Contents ----------------------------------------------------------------------------------------------------------

CREATE TABLE senders (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	email TEXT NOT NULL,
	email_key TEXT NOT NULL UNIQUE,
	key_version INTEGER NOT NULL DEFAULT 1,
	created_at INTEGER NOT NULL,
	full_name TEXT NOT NULL DEFAULT '',
	reply_to_email TEXT NOT NULL DEFAULT ''
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

-- `used_at` is the time of the last submission, or up to a day earlier. `dropped_at` is when retention deleted the
-- bodies.
CREATE TABLE contents (
	sha256 TEXT PRIMARY KEY,
	subject TEXT NOT NULL,
	text TEXT,
	html TEXT,
	disable_inline INTEGER NOT NULL,
	used_at INTEGER NOT NULL DEFAULT 0,
	dropped_at INTEGER
) STRICT;
CREATE INDEX contents_by_use ON contents (used_at) WHERE dropped_at IS NULL;

-- Each file is stored once, by its hash. An upload that no content names is deleted at `expires_at`, which is NULL for
-- all other files. `bytes` is the last column, so that SQLite reads the others without it.
CREATE TABLE attachments (
	sha256 TEXT PRIMARY KEY,
	size INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	expires_at INTEGER,
	bytes BLOB NOT NULL
) STRICT;
CREATE INDEX attachments_expiring ON attachments (expires_at) WHERE expires_at IS NOT NULL;

-- Clients that uploaded the file. Other clients cannot name it by its hash until they have uploaded it too.
CREATE TABLE attachment_owners (
	sha256 TEXT NOT NULL REFERENCES attachments (sha256) ON DELETE CASCADE,
	owner TEXT NOT NULL,
	PRIMARY KEY (sha256, owner)
) STRICT, WITHOUT ROWID;

CREATE TABLE content_attachments (
	content_sha256 TEXT NOT NULL REFERENCES contents (sha256) ON DELETE CASCADE,
	position INTEGER NOT NULL,
	name TEXT NOT NULL,
	type TEXT NOT NULL,
	sha256 TEXT NOT NULL REFERENCES attachments (sha256),
	content_id TEXT,
	PRIMARY KEY (content_sha256, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX contents_of_attachment ON content_attachments (sha256);

-- Campaigns ---------------------------------------------------------------------------------------------------------

-- `position` counts acknowledged rows of batches. Rows from lists count only in `staged`, `suppressed`, `rejected` and
-- `left_out`.
-- `requests` is 1 if the rows are send requests, each with a submission. `is_complete` is 1 if no more rows come.
-- `owner` is the name of the token that created the campaign; NULL: the database's owner.
-- `courier` is 'smtp', or 'api' for the send API of a service. No message is leased before `opens_at`.
-- `dropped_at` is when retention deleted the first messages of the campaign.
-- `is_again` is 1 if the user asked to send the same mail again. Running that command again finds this campaign.
-- `rate` is the last `--rate` of a command. `campaigns resume` uses this rate by default.
CREATE TABLE campaigns (
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
	canceled_at INTEGER,
	position INTEGER NOT NULL DEFAULT 0,
	requests INTEGER NOT NULL DEFAULT 0,
	is_complete INTEGER NOT NULL DEFAULT 0,
	owner TEXT,
	courier TEXT NOT NULL DEFAULT 'smtp',
	left_out INTEGER NOT NULL DEFAULT 0,
	audience TEXT,
	starts_at INTEGER,
	opens_at INTEGER,
	send_window TEXT,
	time_zone TEXT,
	dropped_at INTEGER,
	is_again INTEGER NOT NULL DEFAULT 0,
	rate TEXT
) STRICT;
-- A lease first serves the campaign that has waited longest.
CREATE INDEX campaigns_open ON campaigns (last_leased_at) WHERE has_open_work = 1;

-- How far each list of a campaign has been expanded. `counts` is a `ListCounts` as JSON.
CREATE TABLE campaign_lists (
	campaign_seq INTEGER NOT NULL REFERENCES campaigns (seq),
	list_id INTEGER NOT NULL,
	after_id INTEGER NOT NULL,
	counts TEXT,
	PRIMARY KEY (campaign_seq, list_id)
) STRICT, WITHOUT ROWID;

-- Answers stay while the campaign is staged, so that a repeated batch gets the same answer. `first` is the batch's
-- first row, or `-list_id` for the rejected recipients of a list.
CREATE TABLE campaign_acks (
	campaign_seq INTEGER NOT NULL REFERENCES campaigns (seq),
	first INTEGER NOT NULL,
	ack TEXT NOT NULL,
	PRIMARY KEY (campaign_seq, first)
) STRICT;

-- Results of batch rows, one per recipient, with `n` from 1. A recipient without a message has `to_email` and the
-- reason.
CREATE TABLE campaign_results (
	campaign_seq INTEGER NOT NULL REFERENCES campaigns (seq),
	n INTEGER NOT NULL,
	line INTEGER,
	message_id INTEGER,
	to_email TEXT,
	code TEXT,
	error TEXT,
	PRIMARY KEY (campaign_seq, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX campaign_results_refused ON campaign_results (campaign_seq, n) WHERE to_email IS NOT NULL;

-- Submissions and messages ------------------------------------------------------------------------------------------

-- `context` and `variables` are JSON. `campaign` is the campaign's public UUID. `owner` is as in `campaigns`.
-- `request` is the call to the send API of a service as JSON, without recipients. It is NULL for mail by SMTP, and
-- after retention has emptied the row. `tracking`: whether the messages have a pixel and counted links.
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
	campaign_seq INTEGER REFERENCES campaigns (seq),
	created_at INTEGER NOT NULL,
	owner TEXT,
	request TEXT,
	tracking TEXT NOT NULL DEFAULT 'on'
) STRICT;
CREATE INDEX submissions_of_campaign ON submissions (campaign) WHERE campaign IS NOT NULL;
CREATE INDEX submissions_of_campaign_seq ON submissions (campaign_seq) WHERE campaign_seq IS NOT NULL;
CREATE INDEX submissions_of_content ON submissions (content_sha256);
CREATE INDEX submissions_of_tag ON submissions (tag) WHERE tag IS NOT NULL;
CREATE INDEX submissions_with_copies ON submissions (seq)
WHERE instr(envelope, '"reply_to":[],"cc":[],"bcc":[]') = 0;

-- Addresses that a campaign left out. For a send call that joined the campaign by its UUID, `submission_seq` and
-- `campaign` replace `campaign_seq`. `list_id` is then the list that the call names, or NULL.
CREATE TABLE campaign_left_out (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	campaign_seq INTEGER REFERENCES campaigns (seq),
	submission_seq INTEGER REFERENCES submissions (seq),
	campaign TEXT,
	list_id INTEGER,
	to_email TEXT NOT NULL,
	to_key TEXT NOT NULL,
	code TEXT NOT NULL,
	detail TEXT
) STRICT;
CREATE INDEX left_out_of_address ON campaign_left_out (to_key);
CREATE INDEX left_out_of_calls ON campaign_left_out (campaign, id) WHERE campaign IS NOT NULL;
CREATE INDEX left_out_of_campaign ON campaign_left_out (campaign_seq, id);
CREATE INDEX left_out_of_submission ON campaign_left_out (submission_seq) WHERE submission_seq IS NOT NULL;

-- `lane` is 0 for single transactional calls, -1 for single bulk calls, otherwise the campaign's seq.
-- `wake_at` is when a worker may take the row, if its campaign is released. It is `due_at` while the row waits, the end
-- of the lease while it is leased, and NULL once it is final. So one index finds due messages and expired leases.
-- A campaign's `uuid` is a hash of campaign and address, so that an address gets one message (`messageUuid`). For send
-- requests, the mail is hashed too, so that an address gets each different mail once.
-- `state` stays 'staged' until the first lease, even after the release of the campaign (`seenState`).
-- `fence` counts the leases of a message, so that only the outcome of the last lease is recorded. `lease_owner` is NULL
-- in a leased row that was canceled during its lease.
-- `called` is the fence of the lease under which a call of a send API began. If that lease is lost, the message may
-- have been sent.
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
	last_reply TEXT,
	called INTEGER
) STRICT;
CREATE UNIQUE INDEX messages_by_uuid ON messages (uuid);
-- Leases read this index. `id` precedes `state`, so that a lease reads a lane in order. The index includes `state`, so
-- that counting waiting messages by state reads only the index.
CREATE INDEX messages_due ON messages (lane, wake_at, id, state) WHERE wake_at IS NOT NULL;
CREATE INDEX messages_of_address ON messages (to_key);
CREATE INDEX messages_of_submission ON messages (submission_seq);
-- Nearly all messages are sent. So `sent` is counted as all messages minus those that wait and those in this index.
CREATE INDEX messages_over ON messages (state) WHERE wake_at IS NULL AND state <> 'sent';
CREATE INDEX messages_over_of_lane ON messages (lane, state) WHERE wake_at IS NULL AND state <> 'sent';

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

-- Composing a large or suspect message may crash the worker. While it composes, the worker keeps a row here with the
-- fence of its lease. If the lease ends before the row is deleted, the worker crashed. After three crashes, the message
-- fails. The table is nearly always empty.
CREATE TABLE compositions (
	message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
	fence INTEGER NOT NULL,
	PRIMARY KEY (message_id, fence)
) STRICT, WITHOUT ROWID;

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

-- `kind` is 'manual' (until somebody resumes), 'fault' (login, TLS, connection; retried at `retry_at`) or 'refusal'
-- (the server refused the sender; the queue goes on). `faults`: faults in a row, or refusals since the last sent mail.
CREATE TABLE queue_pauses (
	kind TEXT PRIMARY KEY,
	reason TEXT,
	since INTEGER NOT NULL,
	retry_at INTEGER,
	faults INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Leased messages that count against limits, with the fence of the lease.
CREATE TABLE limit_holds (
	message_id INTEGER PRIMARY KEY,
	fence INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	limits TEXT NOT NULL
) STRICT;

-- Counts of sent messages for each limit and slice of time. At `until` the slice leaves the limit's window.
CREATE TABLE limit_uses (
	limit_key TEXT NOT NULL,
	until INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (limit_key, until)
) STRICT, WITHOUT ROWID;
CREATE INDEX limit_uses_by_end ON limit_uses (until);

-- Messages that wait because a limit is full. Their `wake_at` is the largest integer, so that no lease finds them.
CREATE TABLE limit_waiting (
	message_id INTEGER PRIMARY KEY,
	limit_key TEXT NOT NULL,
	is_bulk INTEGER NOT NULL
) STRICT;
CREATE INDEX limit_waiting_in_order ON limit_waiting (limit_key, is_bulk, message_id);

-- Limits that have messages in `limit_waiting`. At `room_at`, a lease checks the limit again.
CREATE TABLE limit_rooms (
	limit_key TEXT NOT NULL PRIMARY KEY,
	room_at INTEGER NOT NULL,
	waiting INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX limit_rooms_by_time ON limit_rooms (room_at);

-- Events and figures ------------------------------------------------------------------------------------------------

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

-- The first time and the count of each type of event, per message and link. People and bots (`machine`) have separate
-- rows. `link` is -1 for events without a link.
CREATE TABLE message_firsts (
	message_id INTEGER NOT NULL,
	type TEXT NOT NULL,
	link INTEGER NOT NULL,
	machine INTEGER NOT NULL,
	first_at INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (message_id, type, link, machine)
) STRICT, WITHOUT ROWID;

-- The hash of each returned mail, so that a mail that is read twice counts once. The table has no addresses. `ends_run`
-- is 1 if this soft bounce reached the limit; the next count of soft bounces starts after it.
CREATE TABLE bounce_reports (
	sha256 TEXT PRIMARY KEY,
	message_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	at INTEGER NOT NULL,
	ends_run INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX bounce_reports_of_message ON bounce_reports (message_id);

-- `scope` is '' for everything, otherwise a campaign. `type` is an event or COMPLAINED, `audience` is 'all' or 'human'.
CREATE TABLE daily_figures (
	scope TEXT NOT NULL,
	day TEXT NOT NULL,
	type TEXT NOT NULL,
	audience TEXT NOT NULL,
	shard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (scope, day, type, audience, shard)
) STRICT, WITHOUT ROWID;

-- Quarters of an hour add up to the hours of every time zone.
CREATE TABLE quarter_figures (
	scope TEXT NOT NULL,
	quarter INTEGER NOT NULL,
	type TEXT NOT NULL,
	audience TEXT NOT NULL,
	shard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (scope, quarter, type, audience, shard)
) STRICT, WITHOUT ROWID;

-- `link` is the position in the content. `messages` counts distinct messages with a click.
CREATE TABLE link_figures (
	campaign TEXT NOT NULL,
	content_sha256 TEXT NOT NULL,
	link INTEGER NOT NULL,
	audience TEXT NOT NULL,
	shard INTEGER NOT NULL,
	clicks INTEGER NOT NULL,
	messages INTEGER NOT NULL,
	PRIMARY KEY (campaign, content_sha256, link, audience, shard)
) STRICT, WITHOUT ROWID;

-- Counts messages by their first bounce of each type and by the recipient's domain. `code` is the enhanced code, else
-- the reply code, else ''.
CREATE TABLE bounce_figures (
	scope TEXT NOT NULL,
	quarter INTEGER NOT NULL,
	domain TEXT NOT NULL,
	type TEXT NOT NULL,
	code TEXT NOT NULL,
	shard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (scope, quarter, domain, type, code, shard)
) STRICT, WITHOUT ROWID;

-- Counts bounced messages by the quarters of their sending and of their first soft and hard bounce, so that a report
-- reads no messages. -1: never.
CREATE TABLE bounced_figures (
	hard INTEGER NOT NULL,
	soft INTEGER NOT NULL,
	sent INTEGER NOT NULL,
	campaign TEXT NOT NULL,
	tag TEXT NOT NULL,
	shard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (hard, soft, sent, campaign, tag, shard)
) STRICT, WITHOUT ROWID;
CREATE INDEX bounced_figures_soft ON bounced_figures (soft) WHERE soft >= 0;

-- Sums of rows that retention deleted -------------------------------------------------------------------------------

CREATE TABLE deleted_figures (
	tag TEXT NOT NULL,
	campaign TEXT NOT NULL,
	type TEXT NOT NULL,
	audience TEXT NOT NULL,
	quarter INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (tag, campaign, type, audience, quarter)
) STRICT, WITHOUT ROWID;

CREATE TABLE deleted_links (
	campaign TEXT NOT NULL,
	content_sha256 TEXT NOT NULL,
	link INTEGER NOT NULL,
	audience TEXT NOT NULL,
	clicks INTEGER NOT NULL,
	messages INTEGER NOT NULL,
	PRIMARY KEY (campaign, content_sha256, link, audience)
) STRICT, WITHOUT ROWID;

CREATE TABLE deleted_bounces (
	campaign TEXT NOT NULL,
	quarter INTEGER NOT NULL,
	domain TEXT NOT NULL,
	type TEXT NOT NULL,
	code TEXT NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (campaign, quarter, domain, type, code)
) STRICT, WITHOUT ROWID;

CREATE TABLE deleted_bounced (
	tag TEXT NOT NULL,
	campaign TEXT NOT NULL,
	sent INTEGER NOT NULL,
	soft INTEGER NOT NULL,
	hard INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (tag, campaign, sent, soft, hard)
) STRICT, WITHOUT ROWID;

CREATE TABLE deleted_states (
	campaign TEXT NOT NULL,
	state TEXT NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (campaign, state)
) STRICT, WITHOUT ROWID;

-- Counts deleted messages of send calls that named a campaign's UUID.
CREATE TABLE deleted_joined (
	campaign TEXT NOT NULL,
	state TEXT NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (campaign, state)
) STRICT, WITHOUT ROWID;

-- Keeps links in old mails working after retention has deleted their messages.
CREATE TABLE old_messages (
	uuid BLOB PRIMARY KEY,
	submission_seq INTEGER NOT NULL,
	list_id INTEGER,
	subscriber_id INTEGER,
	to_key TEXT NOT NULL,
	variables TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX old_messages_of_address ON old_messages (to_key);

-- Webhooks ----------------------------------------------------------------------------------------------------------

-- The target answered 410 at `stopped_at`: nothing is sent until somebody changes the webhook or replays deliveries.
CREATE TABLE webhooks (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	url TEXT NOT NULL,
	type TEXT NOT NULL,
	is_auth_enabled INTEGER NOT NULL,
	login TEXT NOT NULL,
	password TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	stopped_at INTEGER
) STRICT;

-- `due_at` is when a worker may take the row: its due time, or the end of its lease. It is NULL once the row is final.
-- `attempts_before` counts the attempts before the last replay, which restarts the schedule.
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
	finished_at INTEGER,
	type TEXT NOT NULL DEFAULT '',
	error TEXT,
	attempted_at INTEGER,
	attempts_before INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX webhook_deliveries_by_time ON webhook_deliveries (created_at);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_hook ON webhook_deliveries (webhook_id);
CREATE INDEX webhook_deliveries_of_message ON webhook_deliveries (message_id);
-- The webhook comes first, so that a webhook with a million due rows does not delay the others.
CREATE INDEX webhook_deliveries_turn ON webhook_deliveries (webhook_id, due_at) WHERE due_at IS NOT NULL;

-- `status_code` is NULL if no answer came; `error` says why.
CREATE TABLE webhook_attempts (
	delivery_id INTEGER NOT NULL,
	number INTEGER NOT NULL,
	at INTEGER NOT NULL,
	status_code INTEGER,
	error TEXT,
	duration_ms INTEGER NOT NULL,
	PRIMARY KEY (delivery_id, number)
) STRICT, WITHOUT ROWID;
