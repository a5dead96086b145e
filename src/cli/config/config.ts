import { readFileSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { codeOf, systemReason } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import { canParseUrl } from '../../api/schema/url.js';
import { utf8Fault } from '../../tables/encoding.js';
import { ConfigError } from '../frame/errors.js';
import { isOn } from '../frame/words.js';

export interface Paths {
	folder: string;
	config: string;
	credentials: string;
	database: string;
	jobs: string;
	imports: string;
	names: string;
}

export interface Profile {
	baseUrl?: string;
	db?: string;
	output?: string;
	color?: string;
	timeout?: string;
	retries?: number;
	timeZone?: string;
	list?: string;
	protected?: boolean;
	allowRecipients?: readonly string[];
}

export interface ConfigFile {
	profile: string | null;
	profiles: Readonly<Record<string, Profile>>;
}

export const maxRetries = 100;

interface ProfileKey {
	is: string;
	check(value: unknown): boolean;
	/** Parses the value on a command line. Default: the text without surrounding spaces. */
	read?(text: string): unknown;
}

const isText = (value: unknown) => typeof value === 'string' && value !== '';

export const profileKeys: Readonly<Record<keyof Profile, ProfileKey>> = {
	baseUrl: { is: 'a URL', check: isText },
	db: { is: 'a path', check: isText, read: (text) => text },
	output: { is: 'an output format', check: isText, read: (text) => text.trim().toLowerCase() },
	color: {
		is: 'auto, always or never',
		check: (value) => /^(auto|always|never)$/.test(String(value)),
		read: (text) => text.trim().toLowerCase(),
	},
	timeout: { is: 'a duration', check: isText },
	retries: {
		is: `a whole number from 0 to ${maxRetries}`,
		check: (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= maxRetries,
		read: (text) => (/^\d+$/.test(text.trim()) ? Number(text) : text),
	},
	timeZone: { is: 'a time zone', check: isText },
	list: { is: "a list's id or name", check: isText },
	protected: {
		is: 'true or false',
		check: (value) => typeof value === 'boolean',
		read: (text) => (/^(true|yes|on|1|false|no|off|0)$/i.test(text.trim()) ? isOn(text.trim()) : text),
	},
	allowRecipients: {
		is: 'address patterns, separated by commas',
		check: (value) => Array.isArray(value) && value.every(isText),
		read: (text) => text.split(',').map((one) => one.trim()),
	},
};

/** Follows the XDG base directory specification, which says to ignore relative paths. */
export function findPaths(env: Readonly<Record<string, string | undefined>>): Paths {
	// An empty or relative home would put the database into the working directory.
	const given = env['HOME'] ?? homedir();
	const home = isAbsolute(given) ? given : userInfo().homedir;
	const base = (name: string, fallback: string) => {
		const value = env[name];
		return value !== undefined && isAbsolute(value) ? value : join(home, fallback);
	};
	const folder = join(base('XDG_CONFIG_HOME', '.config'), 'mailctl');
	const state = join(base('XDG_STATE_HOME', '.local/state'), 'mailctl');
	return {
		folder,
		config: join(folder, 'config.json'),
		credentials: join(folder, 'credentials.json'),
		database: join(base('XDG_DATA_HOME', '.local/share'), 'mailctl', 'mailctl.db'),
		jobs: join(state, 'jobs'),
		imports: join(state, 'imports'),
		names: join(base('XDG_CACHE_HOME', '.cache'), 'mailctl', 'names.json'),
	};
}

/** Returns an empty configuration if the file is missing. Throws `ConfigError` for an unreadable or invalid file. */
export function readConfig(paths: Paths): ConfigFile {
	const found = readJson(paths.config);
	if (found === null) return { profile: null, profiles: {} };
	const wrong = (what: string) => new ConfigError(`${paths.config}: ${what}`, { hint: wayOut });
	if (!isRecord(found)) throw wrong('not a JSON object');
	const { profile = null, profiles = {} } = found;
	if (profile !== null && typeof profile !== 'string') throw wrong('the value of "profile" is not a name');
	if (!isRecord(profiles)) throw wrong('"profiles" is not an object');
	const checked = Object.entries(profiles).map(([name, value]) => [name, checkProfile(value, name, wrong)]);
	return { profile, profiles: Object.fromEntries(checked) };
}

/** The token is sent only to `origin`. */
export interface StoredToken {
	token: string;
	origin: string;
}

export function readTokens(paths: Paths): Readonly<Record<string, StoredToken>> {
	const found = readJson(paths.credentials) ?? {};
	const tokens = isRecord(found) ? (found['tokens'] ?? {}) : null;
	const isStored = (one: unknown): one is StoredToken =>
		isRecord(one) && typeof one['token'] === 'string' && typeof one['origin'] === 'string';
	if (isRecord(tokens) && Object.values(tokens).every(isStored)) return tokens as Record<string, StoredToken>;
	throw new ConfigError(`${paths.credentials} does not map profiles to tokens`, { hint: wayOut });
}

export function readToken(paths: Paths, profile: string): StoredToken | null {
	const tokens = readTokens(paths);
	return Object.hasOwn(tokens, profile) ? (tokens[profile] ?? null) : null;
}

export function originOf(baseUrl: string): string {
	return canParseUrl(baseUrl) ? new URL(baseUrl).origin : baseUrl;
}

function readJson(path: string): unknown {
	let text: string;
	try {
		const bytes = readFileSync(path);
		const fault = utf8Fault(bytes);
		if (fault !== null) throw new ConfigError(`${path} ${fault}`, { hint: wayOut });
		text = new TextDecoder().decode(bytes);
	} catch (cause) {
		if (cause instanceof ConfigError) throw cause;
		const code = codeOf(cause);
		if (code === 'ENOENT' || code === 'ENOTDIR') return null;
		throw new ConfigError(`${path} cannot be read: ${systemReason(cause)}`, { cause });
	}
	try {
		return JSON.parse(text);
	} catch {
		// Omit the parser's message. It quotes the file, which may contain a token.
		throw new ConfigError(`${path} is not valid JSON`, { hint: wayOut });
	}
}

const wayOut = 'correct the file or move it away';

function checkProfile(value: unknown, name: string, wrong: (what: string) => ConfigError): Profile {
	if (!isRecord(value)) throw wrong(`profile "${name}" is not an object`);
	for (const [key, { check, is }] of Object.entries(profileKeys))
		if (value[key] !== undefined && !check(value[key]))
			throw wrong(`"${key}" of profile "${name}" is not ${is}`);
	return value as Profile;
}
