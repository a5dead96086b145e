import { shownUrl } from '../../api/quote.js';
import { canParseUrl } from '../../api/schema/url.js';
import { foreignScheme, hasBarePassword, isLikeServer, isPostgres, shownDatabase } from '../../store/url.js';
import { type Command, flagOf, reachOptions } from '../frame/command.js';
import { mailctl, ofTheMachine } from '../frame/command-line.js';
import type { Target } from '../frame/connection.js';
import { onlyLocal, UsageError } from '../frame/errors.js';
import { parseFormat, type RawGlobals } from '../frame/globals.js';
import type { Env } from '../frame/io.js';
import { parseLimit, parseTimeZone } from '../frame/values.js';
import { didYouMean } from '../frame/words.js';
import type { ConfigFile, Paths, Profile } from './config.js';
import type { Origin } from './settings.js';

export interface TargetChoice {
	/**
	 * Throws `UsageError` if the profile has no target, or has two. `config unset` can repair a profile, because that
	 * command does not call this function.
	 */
	target(): Target;
	origin: Origin;
	profile: string | null;
	settingsOf: string;
	settings: Profile;
}

export const builtIn = 'local';

/** Throws `UsageError` if two flags or two variables name a target, or if the profile or the URL is wrong. */
export function chooseTarget(raw: RawGlobals, env: Env, config: ConfigFile, paths: Paths): TargetChoice {
	const byFlag = theOne({ '--db': raw.db, '--base-url': raw.baseUrl, '--profile': raw.profile });
	const names = ['MAILCTL_DB', 'MAILCTL_BASE_URL', 'MAILCTL_PROFILE'];
	const found = byFlag ?? theOne(Object.fromEntries(names.map((name) => [name, env[name] || undefined])));
	const level = byFlag === null ? 'environment' : 'flag';
	if (found !== null && !/profile$/i.test(found.name)) {
		const targetOf = /db$/i.test(found.name) ? localTarget : remoteTarget;
		const target = targetOf(found.value, found.name);
		// The user gave a target without a profile. Preferences of the default profile, such as `output`, still apply.
		const settingsOf = (env['MAILCTL_PROFILE'] || undefined) ?? config.profile ?? builtIn;
		const settings = findProfile(config, settingsOf);
		return { target: () => target, origin: { level, name: found.name }, profile: null, settingsOf, settings };
	}
	const name = found?.value ?? config.profile ?? builtIn;
	const settings = findProfile(config, name);
	const stored: Origin =
		config.profile === null
			? { level: 'default', name: null }
			: { level: 'profile', name: `profile ${name}` };
	return {
		target: () => profileTarget(name, settings, paths),
		origin: found === null ? stored : { level, name: found.name },
		profile: name,
		settingsOf: name,
		settings,
	};
}

export function checkSetting(key: keyof Profile, text: string, profile: Profile, name: string): void {
	if (key === 'output') parseFormat(text);
	if (key === 'timeout') parseLimit(text, key);
	if (key === 'timeZone') parseTimeZone(text, key);
	if (key === 'baseUrl') remoteTarget(text, key);
	if (key === 'db') assertDatabaseName(text, key);
	const other = key === 'baseUrl' ? 'db' : 'baseUrl';
	if ((key === 'baseUrl' || key === 'db') && profile[other] !== undefined)
		throw new UsageError(`profile "${name}" already has a target: ${other}`, {
			hint: mailctl('config', 'unset', other, '--profile', name),
		});
}

/** Throws `UsageError` for options that have no effect on the command or its target. */
export function checkReach(
	{ reach, needsNoDatabase, needsNoTarget }: Command,
	{ path, globals, target }: { path: readonly string[]; globals: RawGlobals; target: TargetChoice },
): void {
	const given = reachOptions.filter((key) => globals[key] !== undefined);
	const [useless] = given.filter((key) => reach?.includes(key) === false);
	if (useless !== undefined) throw new UsageError(`${flagOf(useless)} has no effect on ${path.join(' ')}`);
	const isOfTheMachine = ofTheMachine.has(path[0] ?? '') && needsNoDatabase !== true;
	if (isOfTheMachine && target.target().kind !== 'local') throw onlyLocal(path.join(' '));
	const [remote] = given.filter((key) => key !== 'profile' && key !== 'baseUrl' && key !== 'db');
	if (reach !== undefined || remote === undefined || needsNoTarget === true) return;
	const found = target.target();
	if (found.kind === 'local')
		throw new UsageError(
			`${flagOf(remote)} is for a remote service, but the target is the database ${shownDatabase(found.url)}`,
			{
				hint: 'use --base-url URL or --profile NAME',
			},
		);
}

function theOne(
	values: Readonly<Record<string, string | undefined>>,
): { name: string; value: string } | null {
	const [first, second] = Object.entries(values).flatMap(([name, value]) =>
		value === undefined ? [] : [{ name, value }],
	);
	if (first !== undefined && second !== undefined)
		throw new UsageError(`use either ${first.name} or ${second.name}, not both`);
	return first ?? null;
}

export function findProfile({ profiles }: ConfigFile, name: string): Profile {
	const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
	if (found !== undefined) return found;
	if (name === builtIn) return {};
	throw new UsageError(`unknown profile "${name}"`, {
		hint: didYouMean(name, [builtIn, ...Object.keys(profiles)]) ?? mailctl('profile', 'list'),
	});
}

function profileTarget(name: string, profile: Profile, paths: Paths): Target {
	if (profile.db !== undefined && profile.baseUrl !== undefined)
		throw new UsageError(`profile "${name}" has both a database and a base URL`, {
			hint: mailctl('config', 'unset', 'db', '--profile', name),
		});
	if (profile.baseUrl !== undefined) return remoteTarget(profile.baseUrl, `profile "${name}"`);
	if (profile.db !== undefined) return localTarget(profile.db, `profile "${name}"`);
	if (name !== builtIn) throw new UsageError(`profile "${name}" has no target`);
	return { kind: 'local', url: paths.database, create: true };
}

/** Throws `UsageError` for a URL of another database system. If mailctl took it for a path, it would create folders. */
export function assertDatabaseName(text: string, from: string): void {
	const scheme = foreignScheme(text);
	const isUrl = isLikeServer(text) || text === ':memory:' || /^file:/i.test(text) || scheme !== null;
	// Do not quote the text, which may contain a password.
	if (isUrl)
		throw new UsageError(`${from}: a database is a file, or a URL that begins with postgres://`, {
			hint:
				didYouMean(scheme ?? '', ['postgres', 'postgresql']) ??
				'--db news.db or --db postgres://USER@HOST/DATABASE',
		});
	if (isPostgres(text) && hasBarePassword(text))
		throw new UsageError(`${from}: in the password of a URL, write / as %2F, # as %23 and ? as %3F`);
}

function localTarget(url: string, from: string): Target {
	if (url === '') throw new UsageError('--db is empty');
	assertDatabaseName(url, from);
	return { kind: 'local', url, create: false };
}

export function remoteTarget(text: string, from: string): Extract<Target, { kind: 'remote' }> {
	const url = canParseUrl(text) ? new URL(text) : null;
	if (url === null || !/^https?:$/.test(url.protocol))
		throw new UsageError(`${from}: "${shownUrl(text)}" is not an http or https URL`, schemeHint(text));
	if (url.username !== '' || url.password !== '')
		throw new UsageError(`${from}: a URL must not contain a password`, {
			hint: 'use MAILCTL_TOKEN or --token-file',
		});
	if (url.search !== '' || url.hash !== '')
		throw new UsageError(`${from}: a base URL must not have a query or a fragment`);
	return { kind: 'remote', baseUrl: text, token: null };
}

/** `mailctl serve` on this machine usually has no TLS, so suggest http for it. */
function schemeHint(text: string): { hint?: string } {
	if (!/^[\w.-]+(:\d+)?(\/[\w./-]*)?$/.test(text)) return {};
	return { hint: `such as ${/^(localhost|127\.)/.test(text) ? 'http' : 'https'}://${text}` };
}
