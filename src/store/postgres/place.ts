import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { StoreError } from '../../api/errors.js';
import { canParseUrl } from '../../api/schema/url.js';
import { suggest } from '../../api/suggest.js';
import { urlsOf } from '../url.js';

/** `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME&pool=4&sslmode=…` */
export interface Place {
	name: string;
	schema: string;
	pool: number | null;
	listen: string | null;
	urls: readonly string[];
	isPrimaryWanted: boolean;
	ssl: boolean | ConnectionOptions;
}

export function readPlace(text: string): Place {
	const refuse = (why: string) => new StoreError('bad_url', `the database URL ${why}`);
	const texts = urlsOf(text);
	if (!texts.every((one) => canParseUrl(one)) || !isDecodable(text))
		throw refuse('cannot be read: postgres://USER:PASSWORD@HOST:5432/DATABASE, special characters as %XX');
	const [url = new URL(text), ...others] = texts.map((one) => new URL(one));
	assertParameters(url.searchParams, refuse);
	const schema = url.searchParams.get('schema') ?? 'public';
	const pool = url.searchParams.get('pool');
	if (!/^(?!pg_)[a-z_][a-z0-9_]{0,62}$/.test(schema))
		throw refuse(
			`names the schema ${JSON.stringify(schema)}: it has a-z, 0-9 and _, and does not begin with pg_`,
		);
	if (pool !== null && !/^[1-9]\d{0,2}$/.test(pool))
		throw refuse('has a ?pool= that is not a number from 1 to 999');
	const listen = url.searchParams.get('listen');
	if (listen !== null && listen !== 'off' && !isHost(listen))
		throw refuse('has a ?listen= that is neither off nor HOST:PORT');
	const ssl = tlsOf(url.searchParams, refuse);
	const wanted = url.searchParams.get('target_session_attrs') ?? (others.length > 0 ? 'read-write' : 'any');
	const hostOf = (one: URL) => (one.host === '' ? (one.searchParams.get('host') ?? 'localhost') : one.host);
	const host = [url, ...others].map(hostOf).join(',');
	const database = decodeURIComponent(url.pathname.slice(1));
	const name = `PostgreSQL at ${host}${database === '' ? '' : `, database ${database}`}`;
	return {
		name: schema === 'public' ? name : `${name}, schema ${schema}`,
		schema,
		pool: pool === null ? null : Number(pool),
		listen,
		urls: [url, ...others].map(driversUrl),
		isPrimaryWanted: wanted !== 'any',
		ssl,
	};
}

/** Refuses `%XX` that is not UTF-8, and NUL, which ends a text on the way to the server. */
function isDecodable(text: string): boolean {
	try {
		return !decodeURIComponent(text).includes('\0');
	} catch {
		return false;
	}
}

function isHost(text: string): boolean {
	return /^(\[[\da-f:.]+\]|[^\s/@:?#%[\]]+)(:\d{1,5})?$/i.test(text) && canParseUrl(`postgres://${text}/`);
}

const own = ['schema', 'pool', 'listen', 'sslmode', 'sslrootcert', 'target_session_attrs'];

/** The rest: those of the driver, and those of libpq that hosted databases put in their URLs. */
const parameters = [
	...own,
	...['host', 'port', 'user', 'password', 'options', 'application_name', 'fallback_application_name'],
	...['ssl', 'sslcert', 'sslkey', 'sslnegotiation', 'channel_binding', 'gssencmode', 'uselibpqcompat'],
	...['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'query_timeout'],
	...['connect_timeout', 'client_encoding', 'keepalives', 'keepalives_idle', 'keepalives_interval'],
	...['keepalives_count', 'tcp_user_timeout', 'pgbouncer'],
];

/** A typo in `?schema=` would lead to another project. */
function assertParameters(params: URLSearchParams, refuse: (why: string) => StoreError): void {
	const unknown = [...params.keys()].find((name) => !parameters.includes(name));
	if (unknown !== undefined) {
		const near = suggest(unknown, parameters);
		const meant = near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`;
		throw refuse(`has an unknown parameter ?${unknown}=${meant}`);
	}
	const encoding = params.get('client_encoding') ?? 'UTF8';
	if (!/^utf-?8$/i.test(encoding)) throw refuse(`has ?client_encoding=${encoding}; it is UTF8`);
}

function driversUrl(url: URL): string {
	for (const name of own) url.searchParams.delete(name);
	return url.href;
}

function tlsOf(params: URLSearchParams, refuse: (why: string) => StoreError): Place['ssl'] {
	const mode = params.get('sslmode') ?? 'disable';
	const file = params.get('sslrootcert');
	const ca = file === null ? {} : { ca: readAuthority(file, refuse) };
	if (mode === 'disable') return false;
	if (mode === 'require') return { ...ca, rejectUnauthorized: false };
	if (mode === 'verify-ca') return { ...ca, checkServerIdentity: () => undefined };
	if (mode === 'verify-full') return ca;
	throw refuse(`has ?sslmode=${mode}; it is disable, require, verify-ca or verify-full`);
}

function readAuthority(file: string, refuse: (why: string) => StoreError): string {
	try {
		return readFileSync(file, 'utf8');
	} catch (error) {
		throw refuse(`names ?sslrootcert=${file}: ${error instanceof Error ? error.message : error}`);
	}
}
