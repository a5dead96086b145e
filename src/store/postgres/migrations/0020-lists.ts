/** The row from which ids of subscribers come, where no sequence takes its place later. */
export const idSequences = `CREATE TABLE id_sequences (
	name TEXT COLLATE "C" PRIMARY KEY,
	last BIGINT NOT NULL
)`;

/** Lists and what is set up: the tables of the first schema that know no message. */
export const lists = `
CREATE TABLE clock (
	id BIGINT PRIMARY KEY CHECK (id = 1),
	boot TEXT COLLATE "C" NOT NULL,
	ahead BIGINT NOT NULL,
	step BIGINT,
	stepped_at BIGINT
);

CREATE TABLE dkim_keys (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	domain TEXT COLLATE "C" NOT NULL,
	selector TEXT COLLATE "C" NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	UNIQUE (domain, selector)
);

CREATE TABLE erased (
	email_hash TEXT COLLATE "C" PRIMARY KEY,
	key_id BIGINT NOT NULL,
	erased_at BIGINT NOT NULL
);

CREATE TABLE fields (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	variable TEXT COLLATE "C" NOT NULL UNIQUE,
	name TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL
);

${idSequences};

CREATE TABLE imports (
	seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id TEXT COLLATE "C" NOT NULL UNIQUE,
	key TEXT COLLATE "C" NOT NULL,
	spec TEXT COLLATE "C" NOT NULL,
	list_id BIGINT NOT NULL,
	position BIGINT NOT NULL DEFAULT 0,
	counts TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	finished_at BIGINT
);

CREATE TABLE import_acks (
	import_seq BIGINT NOT NULL REFERENCES imports (seq),
	first BIGINT NOT NULL,
	ack TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (import_seq, first)
);

CREATE TABLE import_addresses (
	import_seq BIGINT NOT NULL REFERENCES imports (seq),
	hash TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (import_seq, hash)
);

CREATE TABLE import_intents (
	import_seq BIGINT NOT NULL REFERENCES imports (seq),
	row BIGINT NOT NULL,
	intent TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (import_seq, row)
);

CREATE TABLE keyring (
	purpose TEXT COLLATE "C" NOT NULL,
	id BIGINT NOT NULL,
	secret TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	retired_at BIGINT,
	PRIMARY KEY (purpose, id)
);

CREATE TABLE limit_holds (
	message_id BIGINT PRIMARY KEY,
	fence BIGINT NOT NULL,
	attempts BIGINT NOT NULL,
	limits TEXT COLLATE "C" NOT NULL
);

CREATE TABLE limit_lines (
	limit_key TEXT COLLATE "C" NOT NULL,
	line BIGINT NOT NULL,
	next_turn BIGINT NOT NULL,
	PRIMARY KEY (limit_key, line)
);

CREATE TABLE limit_uses (
	limit_key TEXT COLLATE "C" NOT NULL,
	until BIGINT NOT NULL,
	count BIGINT NOT NULL,
	PRIMARY KEY (limit_key, until)
);

CREATE TABLE lists (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name TEXT COLLATE "C" NOT NULL,
	email_reason TEXT COLLATE "C" NOT NULL,
	active_count BIGINT NOT NULL DEFAULT 0,
	inactive_count BIGINT NOT NULL DEFAULT 0,
	created_at BIGINT NOT NULL,
	public_name TEXT COLLATE "C"
);

CREATE TABLE processes (
	id TEXT COLLATE "C" PRIMARY KEY,
	role TEXT COLLATE "C" NOT NULL,
	host TEXT COLLATE "C" NOT NULL,
	pid BIGINT NOT NULL,
	started_at BIGINT NOT NULL,
	heartbeat_at BIGINT NOT NULL
);

CREATE TABLE queue_pauses (
	kind TEXT COLLATE "C" PRIMARY KEY,
	reason TEXT COLLATE "C",
	since BIGINT NOT NULL,
	retry_at BIGINT,
	faults BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE senders (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	email TEXT COLLATE "C" NOT NULL,
	email_key TEXT COLLATE "C" NOT NULL UNIQUE,
	key_version BIGINT NOT NULL DEFAULT 1,
	created_at BIGINT NOT NULL
);

CREATE TABLE settings (
	name TEXT COLLATE "C" PRIMARY KEY,
	value TEXT COLLATE "C" NOT NULL,
	updated_at BIGINT NOT NULL
);

CREATE TABLE subscribers (
	id BIGINT PRIMARY KEY,
	list_id BIGINT NOT NULL REFERENCES lists (id),
	email TEXT COLLATE "C" NOT NULL,
	email_key TEXT COLLATE "C" NOT NULL,
	key_version BIGINT NOT NULL DEFAULT 1,
	email_folded TEXT COLLATE "C",
	name TEXT COLLATE "C" NOT NULL,
	is_active BIGINT NOT NULL,
	disable_reason TEXT COLLATE "C",
	is_email_verified BIGINT NOT NULL DEFAULT 0,
	meta TEXT COLLATE "C" NOT NULL,
	source TEXT COLLATE "C" NOT NULL,
	opt_in_signed BIGINT,
	created_at BIGINT NOT NULL,
	import_seq BIGINT,
	soft_bounces BIGINT NOT NULL DEFAULT 0,
	soft_bounced_since BIGINT
);

CREATE TABLE suppressions (
	email_key TEXT COLLATE "C" NOT NULL,
	reason TEXT COLLATE "C" NOT NULL,
	list_id BIGINT NOT NULL DEFAULT 0,
	key_version BIGINT NOT NULL DEFAULT 1,
	source TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT,
	PRIMARY KEY (email_key, reason, list_id)
);

CREATE TABLE templates (
	seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id TEXT COLLATE "C" NOT NULL UNIQUE,
	name TEXT COLLATE "C" NOT NULL UNIQUE,
	text_body TEXT COLLATE "C" NOT NULL,
	html_body TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL
);

CREATE TABLE tokens (
	sha256 TEXT COLLATE "C" PRIMARY KEY,
	name TEXT COLLATE "C" NOT NULL,
	scopes TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	revoked_at BIGINT
);

CREATE TABLE webhook_attempts (
	delivery_id BIGINT NOT NULL,
	number BIGINT NOT NULL,
	at BIGINT NOT NULL,
	status_code BIGINT,
	error TEXT COLLATE "C",
	duration_ms BIGINT NOT NULL,
	PRIMARY KEY (delivery_id, number)
);

CREATE TABLE webhook_deliveries (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	uuid TEXT COLLATE "C" NOT NULL UNIQUE,
	webhook_id BIGINT NOT NULL,
	message_id BIGINT,
	payload TEXT COLLATE "C" NOT NULL,
	state TEXT COLLATE "C" NOT NULL,
	attempts BIGINT NOT NULL DEFAULT 0,
	due_at BIGINT,
	lease_owner TEXT COLLATE "C",
	lease_until BIGINT,
	fence BIGINT NOT NULL DEFAULT 0,
	status_code BIGINT,
	answer TEXT COLLATE "C",
	created_at BIGINT NOT NULL,
	finished_at BIGINT,
	type TEXT COLLATE "C" NOT NULL DEFAULT '',
	error TEXT COLLATE "C",
	attempted_at BIGINT,
	attempts_before BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE webhooks (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	url TEXT COLLATE "C" NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	is_auth_enabled BIGINT NOT NULL,
	login TEXT COLLATE "C" NOT NULL,
	password TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	stopped_at BIGINT
);
`;
