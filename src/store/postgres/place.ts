import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { StoreError } from '../../api/errors.js';
import { canParseUrl } from '../../api/schema/url.js';
import { suggest } from '../../api/suggest.js';
import { urlsOf } from '../url.js';

export interface Place {
	name: string;
	schema: string;
	pool: number | null;
	listen: string | null;
	urls: readonly string[];
	isPrimaryWanted: boolean;
	ssl: boolean | ConnectionOptions;
}

const own = ['schema', 'pool', 'listen', 'sslmode', 'sslrootcert', 'target_session_attrs'];

export function readPlace(text: string): Place {
	const texts = urlsOf(text);
	if (!texts.every((one) => canParseUrl(one)) || !isDecodable(text))
		throw refusal('cannot be read: postgres://USER:PASSWORD@HOST:5432/DATABASE, special characters as %XX');
	const urls = texts.map((one) => new URL(one));
	const [{ searchParams: params, pathname } = new URL(text)] = urls;
	assertParameters(params);
	const schema = params.get('schema') ?? 'public';
	if (!/^(?!pg_)[a-z_][a-z0-9_]{0,62}$/.test(schema))
		throw refusal(
			`names the schema ${JSON.stringify(schema)}: it has a-z, 0-9 and _, and does not begin with pg_`,
		);
	const pool = params.get('pool');
	if (pool !== null && !/^[1-9]\d{0,2}$/.test(pool))
		throw refusal('has a ?pool= that is not a number from 1 to 999');
	const listen = params.get('listen');
	if (listen !== null && listen !== 'off' && !isHost(listen))
		throw refusal('has a ?listen= that is neither off nor HOST:PORT');
	const ssl = tlsOf(params);
	const wanted = params.get('target_session_attrs') ?? (urls.length > 1 ? 'read-write' : 'any');
	const hosts = urls.map(({ host, searchParams }) => host || (searchParams.get('host') ?? 'localhost'));
	const database = decodeURIComponent(pathname.slice(1));
	const name = `PostgreSQL at ${hosts.join(',')}${database === '' ? '' : `, database ${database}`}`;
	for (const { searchParams } of urls) for (const one of own) searchParams.delete(one);
	return {
		name: schema === 'public' ? name : `${name}, schema ${schema}`,
		...{ schema, listen, ssl },
		pool: pool === null ? null : Number(pool),
		urls: urls.map(({ href }) => href),
		isPrimaryWanted: wanted !== 'any',
	};
}

function assertParameters(params: URLSearchParams): void {
	// A typo such as `?shema=` would open another project, so reject names that resemble mailctl's parameters.
	for (const name of params.keys()) {
		const [meant] = own.includes(name) ? [] : suggest(name, own);
		if (meant !== undefined) throw refusal(`has a parameter ?${name}=; did you mean ${meant}?`);
	}
	// The driver supports only UTF-8.
	const encoding = params.get('client_encoding') ?? 'UTF8';
	if (!/^utf-?8$/i.test(encoding)) throw refusal(`has ?client_encoding=${encoding}; it is UTF8`);
}

function refusal(why: string): StoreError {
	return new StoreError('bad_url', `the database URL ${why}`);
}

/** False for `%XX` that is not UTF-8, and for NUL, which would end a text in the protocol. */
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

/** `sslmode` and `sslrootcert` mean the same as in libpq (PostgreSQL, 34.19). */
function tlsOf(params: URLSearchParams): Place['ssl'] {
	const mode = params.get('sslmode') ?? 'disable';
	const file = params.get('sslrootcert');
	const ca = file === null ? {} : { ca: readAuthority(file) };
	if (mode === 'disable') return false;
	if (mode === 'require') return { ...ca, rejectUnauthorized: false };
	if (mode === 'verify-ca') return { ...ca, checkServerIdentity: () => undefined };
	if (mode === 'verify-full') return ca;
	throw refusal(`has ?sslmode=${mode}; it is disable, require, verify-ca or verify-full`);
}

function readAuthority(file: string): string {
	try {
		return readFileSync(file, 'utf8');
	} catch (error) {
		throw refusal(`names ?sslrootcert=${file}: ${error instanceof Error ? error.message : error}`);
	}
}
