/** Reads the API token from a file, standard input, the environment or the profile, but never from an argument. */
import { type Hint, mailctl } from '../frame/command-line.js';
import type { Target } from '../frame/connection.js';
import { UsageError } from '../frame/errors.js';
import type { RawGlobals } from '../frame/globals.js';
import type { Env } from '../frame/io.js';
import type { Sources } from '../frame/sources.js';
import { findPaths, originOf, readToken } from './config.js';
import { type Settings, tokenOrigin } from './settings.js';

/** A profile's token is sent only to that profile's target. */
export async function readTokenOf(
	settings: Settings,
	globals: RawGlobals,
	env: Env,
	sources: Sources,
): Promise<Target> {
	const { profile } = settings.target;
	const target = settings.target.target();
	if (target.kind === 'local') return target;
	const given = await givenToken(globals, env, sources);
	const token = given ?? (profile === null ? null : storedFor(profile, target.baseUrl, env));
	return { ...target, token: token === null ? null : checkToken(token) };
}

/** Throws if the token was stored for another origin, because the profile's URL may have changed since then. */
function storedFor(profile: string, baseUrl: string, env: Env): string | null {
	const stored = readToken(findPaths(env), profile);
	if (stored === null) return null;
	const origin = originOf(baseUrl);
	if (stored.origin === origin) return stored.token;
	throw new UsageError(`the token of profile "${profile}" belongs to ${stored.origin}, not to ${origin}`, {
		hint: mailctl('login', '--profile', profile, '--base-url', baseUrl),
	});
}

export async function givenToken(globals: RawGlobals, env: Env, sources: Sources): Promise<string | null> {
	if (globals.tokenFile !== undefined && globals.tokenStdin === true)
		throw new UsageError('use either --token-file or --token-stdin, not both');
	if (globals.tokenFile !== undefined) return sources.file(globals.tokenFile, '--token-file').text();
	if (globals.tokenStdin === true) return sources.file('-', '--token-stdin').text();
	if (env['MAILCTL_TOKEN']) return env['MAILCTL_TOKEN'];
	if (env['MAILCTL_TOKEN_FILE']) return sources.file(env['MAILCTL_TOKEN_FILE'], 'MAILCTL_TOKEN_FILE').text();
	return null;
}

export function refusedTokenHint(settings: Settings, globals: RawGlobals, env: Env): Hint {
	const { level, name } = tokenOrigin(settings, globals, env, findPaths(env));
	const { profile } = settings.target;
	const login = mailctl('login', ...(profile === null ? [] : ['--profile', profile]));
	if (level === 'default') return ['set MAILCTL_TOKEN, use --token-file, or run ', login];
	if (level === 'profile') return [`the token comes from ${name}; replace it: `, login];
	return `the token comes from ${name}: set a valid one`;
}

/** Requires one word of visible ASCII, because a header allows nothing else. The error does not quote the token. */
export function checkToken(text: string): string {
	const token = text.trim();
	if (/^[\x21-\x7e]+$/.test(token)) return token;
	if (token === '') throw new UsageError('the API token is empty');
	throw new UsageError('the API token must be one word of ASCII characters, such as mctl_…', {
		hint: 'to create and print a token, run on the server: mailctl engine tokens create -q',
	});
}

/** Throws `UsageError` if the file has no certificate, because TLS would ignore such a file silently. */
export async function readAuthority(path: string, sources: Sources): Promise<string> {
	const file = sources.file(path, '--ca-cert');
	const text = await file.text();
	if (/-----BEGIN (TRUSTED |X509 )?CERTIFICATE-----/.test(text)) return text;
	throw new UsageError(`--ca-cert: ${file.name} contains no certificate`, {
		hint: 'a PEM file has a line -----BEGIN CERTIFICATE-----',
	});
}
