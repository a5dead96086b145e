/** Messages, campaigns, events and figures: the other tables of the first schema. */
export const messages = `
CREATE TABLE attachments (
	sha256 TEXT COLLATE "C" PRIMARY KEY,
	size BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT,
	bytes BYTEA NOT NULL
);

CREATE TABLE attempts (
	message_id BIGINT NOT NULL,
	number BIGINT NOT NULL,
	at BIGINT NOT NULL,
	outcome TEXT COLLATE "C" NOT NULL,
	phase TEXT COLLATE "C" NOT NULL,
	code BIGINT,
	enhanced TEXT COLLATE "C",
	text TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (message_id, number)
);

CREATE TABLE bounce_figures (
	scope TEXT COLLATE "C" NOT NULL,
	quarter BIGINT NOT NULL,
	domain TEXT COLLATE "C" NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	code TEXT COLLATE "C" NOT NULL,
	shard BIGINT NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (scope, quarter, domain, type, code, shard)
);

CREATE TABLE bounce_reports (
	sha256 TEXT COLLATE "C" PRIMARY KEY,
	message_id BIGINT NOT NULL,
	kind TEXT COLLATE "C" NOT NULL,
	at BIGINT NOT NULL,
	ends_run BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE campaigns (
	seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id TEXT COLLATE "C" NOT NULL UNIQUE,
	key TEXT COLLATE "C" NOT NULL UNIQUE,
	spec TEXT COLLATE "C" NOT NULL,
	strict_vars BIGINT NOT NULL,
	state TEXT COLLATE "C" NOT NULL,
	has_open_work BIGINT NOT NULL DEFAULT 0,
	last_leased_at BIGINT NOT NULL DEFAULT 0,
	staged BIGINT NOT NULL DEFAULT 0,
	suppressed BIGINT NOT NULL DEFAULT 0,
	rejected BIGINT NOT NULL DEFAULT 0,
	created_at BIGINT NOT NULL,
	released_at BIGINT,
	canceled_at BIGINT,
	position BIGINT NOT NULL DEFAULT 0,
	requests BIGINT NOT NULL DEFAULT 0,
	is_complete BIGINT NOT NULL DEFAULT 0,
	owner TEXT COLLATE "C",
	courier TEXT COLLATE "C" NOT NULL DEFAULT 'smtp',
	left_out BIGINT NOT NULL DEFAULT 0,
	audience TEXT COLLATE "C",
	starts_at BIGINT,
	opens_at BIGINT,
	send_window TEXT COLLATE "C",
	time_zone TEXT COLLATE "C"
);

CREATE TABLE campaign_acks (
	campaign_seq BIGINT NOT NULL REFERENCES campaigns (seq),
	first BIGINT NOT NULL,
	ack TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (campaign_seq, first)
);

CREATE TABLE campaign_left_out (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	campaign_seq BIGINT NOT NULL REFERENCES campaigns (seq),
	list_id BIGINT NOT NULL,
	to_email TEXT COLLATE "C" NOT NULL,
	to_key TEXT COLLATE "C" NOT NULL,
	code TEXT COLLATE "C" NOT NULL,
	detail TEXT COLLATE "C"
);

CREATE TABLE campaign_lists (
	campaign_seq BIGINT NOT NULL REFERENCES campaigns (seq),
	list_id BIGINT NOT NULL,
	after_id BIGINT NOT NULL,
	counts TEXT COLLATE "C",
	PRIMARY KEY (campaign_seq, list_id)
);

CREATE TABLE campaign_results (
	campaign_seq BIGINT NOT NULL REFERENCES campaigns (seq),
	n BIGINT NOT NULL,
	line BIGINT,
	message_id BIGINT,
	to_email TEXT COLLATE "C",
	code TEXT COLLATE "C",
	error TEXT COLLATE "C",
	PRIMARY KEY (campaign_seq, n)
);

CREATE TABLE contents (
	sha256 TEXT COLLATE "C" PRIMARY KEY,
	subject TEXT COLLATE "C" NOT NULL,
	text TEXT COLLATE "C",
	html TEXT COLLATE "C",
	disable_inline BIGINT NOT NULL
);

CREATE TABLE content_attachments (
	content_sha256 TEXT COLLATE "C" NOT NULL REFERENCES contents (sha256) ON DELETE CASCADE,
	position BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	sha256 TEXT COLLATE "C" NOT NULL REFERENCES attachments (sha256),
	content_id TEXT COLLATE "C",
	PRIMARY KEY (content_sha256, position)
);

CREATE TABLE daily_figures (
	scope TEXT COLLATE "C" NOT NULL,
	day TEXT COLLATE "C" NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	audience TEXT COLLATE "C" NOT NULL,
	shard BIGINT NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (scope, day, type, audience, shard)
);

CREATE TABLE events (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	message_id BIGINT NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	at BIGINT NOT NULL,
	link BIGINT,
	machine BIGINT NOT NULL,
	ip TEXT COLLATE "C",
	user_agent TEXT COLLATE "C",
	url TEXT COLLATE "C",
	smtp_code TEXT COLLATE "C",
	diagnostic TEXT COLLATE "C"
);

CREATE TABLE idempotency_keys (
	scope TEXT COLLATE "C" NOT NULL,
	key TEXT COLLATE "C" NOT NULL,
	fingerprint TEXT COLLATE "C" NOT NULL,
	submission_id TEXT COLLATE "C" NOT NULL,
	campaign TEXT COLLATE "C",
	answer TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (scope, key)
);

CREATE TABLE link_figures (
	campaign TEXT COLLATE "C" NOT NULL,
	content_sha256 TEXT COLLATE "C" NOT NULL,
	link BIGINT NOT NULL,
	audience TEXT COLLATE "C" NOT NULL,
	shard BIGINT NOT NULL,
	clicks BIGINT NOT NULL,
	messages BIGINT NOT NULL,
	PRIMARY KEY (campaign, content_sha256, link, audience, shard)
);

CREATE TABLE message_firsts (
	message_id BIGINT NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	link BIGINT NOT NULL,
	machine BIGINT NOT NULL,
	first_at BIGINT NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (message_id, type, link, machine)
);

CREATE TABLE quarter_figures (
	scope TEXT COLLATE "C" NOT NULL,
	quarter BIGINT NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	audience TEXT COLLATE "C" NOT NULL,
	shard BIGINT NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (scope, quarter, type, audience, shard)
);

CREATE TABLE submissions (
	seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id TEXT COLLATE "C" NOT NULL UNIQUE,
	type TEXT COLLATE "C" NOT NULL,
	envelope TEXT COLLATE "C" NOT NULL,
	tag TEXT COLLATE "C",
	campaign TEXT COLLATE "C",
	content_sha256 TEXT COLLATE "C" NOT NULL REFERENCES contents (sha256),
	context TEXT COLLATE "C" NOT NULL,
	variables TEXT COLLATE "C" NOT NULL,
	list_id BIGINT,
	campaign_seq BIGINT REFERENCES campaigns (seq),
	created_at BIGINT NOT NULL,
	owner TEXT COLLATE "C",
	request TEXT COLLATE "C"
);

CREATE TABLE messages (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	uuid TEXT COLLATE "C" NOT NULL,
	submission_seq BIGINT NOT NULL REFERENCES submissions (seq),
	lane BIGINT NOT NULL,
	to_email TEXT COLLATE "C" NOT NULL,
	to_key TEXT COLLATE "C" NOT NULL,
	list_id BIGINT,
	subscriber_id BIGINT,
	variables TEXT COLLATE "C" NOT NULL,
	state TEXT COLLATE "C" NOT NULL,
	attempts BIGINT NOT NULL DEFAULT 0,
	due_at BIGINT NOT NULL,
	wake_at BIGINT,
	lease_owner TEXT COLLATE "C",
	fence BIGINT NOT NULL DEFAULT 0,
	created_at BIGINT NOT NULL,
	sent_at BIGINT,
	last_reply TEXT COLLATE "C",
	called BIGINT
);

CREATE TABLE compositions (
	message_id BIGINT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
	fence BIGINT NOT NULL,
	PRIMARY KEY (message_id, fence)
);
`;
