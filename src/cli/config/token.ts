/**
 * The API token (from a file, standard input, the environment or the profile, never from an argument), and `--ca-cert`,
 * a certificate authority of the user.
 */
import { canParseUrl } from '../../api/schema/url.js';
import { type Hint, mailctl, shellWord } from '../frame/command-line.js';
import type { Target } from '../frame/connection.js';
import { UsageError } from '../frame/errors.js';
import type { RawGlobals } from '../frame/globals.js';
import type { Sources } from '../frame/sources.js';
import { findPaths, originOf, type Paths, readConfig, readToken } from './config.js';
import { type Env, type Settings, tokenOrigin } from './settings.js';

/** The target with its token; a profile's token goes to that profile's own target only. */
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

/** A token goes only to the origin it was stored for, even after its profile names another URL. */
function storedFor(profile: string, baseUrl: string, env: Env): string | null {
	const stored = readToken(findPaths(env), profile);
	if (stored === null) return null;
	const origin = originOf(baseUrl);
	if (stored.origin === null || stored.origin === origin) return stored.token;
	throw new UsageError(`the token of profile "${profile}" belongs to ${stored.origin}, not to ${origin}`, {
		hint: mailctl('login', '--profile', profile, '--base-url', baseUrl),
	});
}

/** A token given with this call; `null` without one. Read once: it may come from standard input. */
export async function givenToken(globals: RawGlobals, env: Env, sources: Sources): Promise<string | null> {
	if (globals.tokenFile !== undefined && globals.tokenStdin === true)
		throw new UsageError('--token-file and --token-stdin both give a token; give one');
	if (globals.tokenFile !== undefined) return sources.file(globals.tokenFile, '--token-file').text();
	if (globals.tokenStdin === true) return sources.file('-', '--token-stdin').text();
	if (env['MAILCTL_TOKEN']) return env['MAILCTL_TOKEN'];
	if (env['MAILCTL_TOKEN_FILE']) return sources.file(env['MAILCTL_TOKEN_FILE'], 'MAILCTL_TOKEN_FILE').text();
	return null;
}

/** The way out where the token of a call is refused: it names the place of the wrong one. */
export function refusedTokenHint(settings: Settings, globals: RawGlobals, env: Env): Hint {
	const paths = findPaths(env);
	const { level, name } = tokenOrigin(settings, globals, env, paths);
	const { profile } = settings.target;
	if (level === 'default') return missingTokenHint(settings, paths);
	if (level === 'profile')
		return [
			`the token is that of ${name}; `,
			mailctl('login', '--profile', profile ?? ''),
			' stores another',
		];
	const hasOther = profile !== null && isStored(paths, profile);
	const without = level === 'flag' ? `without ${name}` : `without the variable ${name}`;
	const file = { '--token-file': globals.tokenFile, MAILCTL_TOKEN_FILE: env['MAILCTL_TOKEN_FILE'] }[
		name ?? ''
	];
	const place = file === undefined ? name : `${file} (${name})`;
	return hasOther
		? `the token came from ${place}; ${without} that of profile ${profile} is sent`
		: `the token came from ${place}: give one there that is valid`;
}

/** A base URL of its own gets no token of a profile: the profile has to be named. */
function missingTokenHint({ target: choice }: Settings, paths: Paths): Hint {
	const target = choice.target();
	const { profile } = choice;
	const names = profile === null && target.kind === 'remote' ? profilesOf(target.baseUrl, paths) : [];
	const name = names.find((one) => isStored(paths, one));
	if (name !== undefined)
		return [
			`no token goes to a URL of ${choice.origin.name ?? '--base-url'} by itself; `,
			`profile ${name} has one for it: give --profile ${shellWord(name)} in its place`,
		];
	const named = profile === null ? [] : ['--profile', profile];
	return ['give a token that is valid there: MAILCTL_TOKEN, --token-file or ', mailctl('login', ...named)];
}

function profilesOf(baseUrl: string, paths: Paths): string[] {
	const href = (url: string) => (canParseUrl(url) ? new URL(url).href.replace(/(?<!\/)\/+$/, '') : null);
	const { profiles } = readConfig(paths);
	return Object.keys(profiles).filter((name) => href(profiles[name]?.baseUrl ?? '') === href(baseUrl));
}

/** A file that cannot be read is none here: it was not needed for this call. */
function isStored(paths: Paths, profile: string): boolean {
	try {
		return readToken(paths, profile) !== null;
	} catch {
		return false;
	}
}

/** One line of visible ASCII: anything else cannot be a header value. The message never repeats it. */
export function checkToken(text: string): string {
	const token = text.trim();
	if (/^[\x21-\x7e]+$/.test(token)) return token;
	if (token === '') throw new UsageError('the API token is empty');
	const words = token.split(/\s+/).length;
	const those = words === 1 ? '' : `: these are ${words}, as in a line of a table`;
	throw new UsageError(`the API token is not one word of plain characters, such as mctl_…${those}`, {
		hint: 'on the machine of the server, engine tokens create -q prints the token alone',
	});
}

/** PEM. Throws `UsageError` for a text without a certificate, which TLS would ignore in silence. */
export async function readAuthority(path: string, sources: Sources): Promise<string> {
	const file = sources.file(path, '--ca-cert');
	const text = await file.text();
	// As OpenSSL reads them.
	if (/-----BEGIN (TRUSTED |X509 )?CERTIFICATE-----/.test(text)) return text;
	throw new UsageError(`--ca-cert: ${file.name} holds no certificate`, {
		hint: 'a PEM file has a line -----BEGIN CERTIFICATE-----',
	});
}
