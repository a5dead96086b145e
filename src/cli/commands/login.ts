import { ApiError } from '../../api/errors.js';
import { isMissingFile } from '../../store/url.js';
import { type ConfigFile, type Profile, readConfig, readToken } from '../config/config.js';
import { confirmProtected, longestName, newName, spokenOf } from '../config/profiles.js';
import { builtIn, findProfile, remoteTarget } from '../config/target.js';
import { checkToken, givenToken, refusedTokenHint } from '../config/token.js';
import { refusalOf } from '../frame/asking.js';
import { command, reachOptions } from '../frame/command.js';
import { type Hint, joinHints, mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, UsageError } from '../frame/errors.js';
import { classify, hinted } from '../frame/exit.js';
import { answers } from '../render/columns.js';

export const login = command({
	name: 'login',
	summary: 'store a service and its token as a profile',
	description:
		'Asks for the token, or reads it from --token-stdin, --token-file or MAILCTL_TOKEN, tries it, and stores it in a file ' +
		'that only you can read. mailctl sends the token only to the origin of this base URL. Without --profile, a new ' +
		'profile takes the name of the host.',
	args: [{ name: 'url', summary: 'the base URL of the service', optional: true, of: 'url' }],
	options: {
		use: {
			kind: 'flag',
			summary: 'make this profile the default; without a local database, the first profile is the default',
		},
		check: { kind: 'tri', summary: 'try the token before it is stored (default)' },
	},
	writes: true,
	profiles: true,
	reach: reachOptions,
	...answers(['profile', 'base_url', 'service', 'is_default', 'checked']),
	exits: [4, 6, 7, 78],
	examples: [
		'mailctl login https://mail.example.com --profile prod --token-stdin < token.txt',
		'mailctl login --base-url https://mail.example.com --token-file token.txt --use',
	],
	run: async (cx, { args, options }) => {
		const config = readConfig(cx.paths);
		const { name, baseUrl } = await whereTo(cx, config, args.url);
		await confirmProtected(cx, name, config.profiles[name] ?? {});
		const token = await tokenFor(cx, baseUrl);
		const service = options.check === false ? null : await tryToken(cx, baseUrl, token);
		const what = `store a token for ${baseUrl} as profile "${name}"`;
		if (cx.dryRun) return cx.wouldDo(what, { login: name, with: { base_url: baseUrl } });
		const hasTarget = config.profile !== null || Object.hasOwn(config.profiles, builtIn);
		const isFirst = !hasTarget && isMissingFile(cx.paths.database);
		const isDefault = options.use || config.profile === name || isFirst;
		const { storeLogin } = await import('../config/config-write.js');
		await storeLogin(cx.paths, name, { baseUrl, token, isDefault });
		await cx.out.document(
			{ profile: name, base_url: baseUrl, service, is_default: isDefault, checked: service !== null },
			`logged in to ${baseUrl} as profile "${name}"${isDefault ? ', the default' : ''}`,
		);
		const use = mailctl('profile', 'use', name);
		if (!isDefault) await cx.hint([`use this profile with --profile ${name}, or make it the default: `, use]);
	},
});

async function whereTo(cx: CommandContext, config: ConfigFile, url: string | undefined) {
	if (url !== undefined && cx.globals.baseUrl !== undefined)
		throw new UsageError('use either <url> or --base-url, not both');
	if (cx.globals.db !== undefined)
		throw new UsageError('a database needs no login', {
			hint: [mailctl('profile', 'add', 'NAME', '--db', 'PATH'), ' keeps one'],
		});
	const { profiles } = config;
	const named = cx.globals.profile ?? (cx.io.env['MAILCTL_PROFILE'] || undefined);
	const given = url ?? cx.globals.baseUrl ?? (cx.io.env['MAILCTL_BASE_URL'] || undefined);
	const stored = profileIn(profiles, named ?? (given === undefined ? config.profile : null));
	const text = given ?? stored?.baseUrl ?? (await askUrl(cx));
	const { baseUrl } = remoteTarget(text.trim(), url === undefined ? '--base-url' : '<url>');
	const name = named ?? nameOf(config, baseUrl);
	const existing = profileIn(profiles, name);
	if (existing === null) return { name: newName(config, name), baseUrl };
	if (name === builtIn) newName(config, name);
	if (existing.db !== undefined)
		throw new UsageError(`profile "${name}" is a database`, { hint: 'give another --profile' });
	return { name, baseUrl };
}

function profileIn(profiles: ConfigFile['profiles'], name: string | null): Profile | null {
	return name !== null && Object.hasOwn(profiles, name) ? (profiles[name] ?? null) : null;
}

export function askUrl(cx: CommandContext): Promise<string> {
	if (!cx.canAsk)
		throw new UsageError('missing --base-url: the URL of the service', { hint: 'or set MAILCTL_BASE_URL' });
	const check = async (text: string) => refusalOf(() => remoteTarget(text.trim(), 'the base URL'));
	return cx.ask('Base URL of the service:', { check });
}

function nameOf({ profiles, profile }: ConfigFile, baseUrl: string): string {
	const same = Object.keys(profiles).filter((name) => profiles[name]?.baseUrl === baseUrl);
	if (profile !== null && same.includes(profile)) return profile;
	const host = new URL(baseUrl).hostname.replace(/^[^A-Za-z0-9]+|\]$/g, '').replaceAll(':', '-');
	const name = same[0] ?? host.slice(0, longestName);
	if (same.length > 0 || !Object.hasOwn(profiles, name)) return name;
	throw new UsageError(`profile "${name}" is ${profiles[name]?.baseUrl ?? 'a database'}, not ${baseUrl}`, {
		hint: 'give --profile NAME',
	});
}

async function tokenFor(cx: CommandContext, baseUrl: string): Promise<string> {
	const given = await givenToken(cx.globals, cx.io.env, cx.sources);
	if (given !== null) return checkToken(given);
	const missing = 'missing API token: give --token-stdin or --token-file';
	if (!cx.canAsk) throw new UsageError(missing, { hint: 'or set MAILCTL_TOKEN' });
	const check = async (text: string) => refusalOf(() => checkToken(text));
	return checkToken(await cx.askSecret(`API token for ${baseUrl}:`, { check }));
}

async function tryToken(cx: CommandContext, baseUrl: string, token: string): Promise<string> {
	const { api, close } = await cx.connectTo({ kind: 'remote', baseUrl, token });
	try {
		await api.lists.page({ page_size: 1 }, { signal: cx.signal }).catch(async (error: unknown) => {
			if (!(error instanceof ApiError) || error.code !== 'permission_denied' || error.scopes === null)
				throw error;
			await cx.note(`this token may only ${error.scopes.held.join(' and ')}`);
		});
		return (await api.capabilities()).service;
	} catch (error) {
		throw cx.signal.aborted ? error : untried(cx, baseUrl, error);
	} finally {
		await close();
	}
}

function untried(cx: CommandContext, baseUrl: string, error: unknown): unknown {
	const unstored = 'nothing was stored; --no-check stores a token without trying it';
	if (!(error instanceof ApiError)) return hinted(error, [unstored]);
	if (error.code === 'not_authenticated') {
		const settings = { ...cx.settings, target: { ...cx.settings.target, profile: null } };
		return hinted(error, [refusedTokenHint(settings, cx.globals, cx.io.env), unstored]);
	}
	const told =
		error.code === 'not_found'
			? new ApiError(
					'bad_answer',
					`${baseUrl} does not answer /sub/lists/: it is not the base URL of a service`,
				)
			: error;
	const { code, exit, message, retryable } = classify(told);
	if (code !== 'network' && code !== 'bad_answer') return hinted(error, [unstored]);
	const look: Hint = ['check the connection: ', mailctl('--base-url', baseUrl, 'doctor')];
	return new CliError(code, exit, message, { hint: joinHints([look, unstored]), retryable, cause: error });
}

export const logout = command({
	name: 'logout',
	summary: 'remove the token of a profile',
	description: 'The profile stays, and the token stays valid at the service: revoke it there if it leaked.',
	writes: true,
	profiles: true,
	reach: ['profile'],
	...answers(['profile', 'removed']),
	exits: [78],
	examples: ['mailctl logout --profile prod'],
	run: async (cx) => {
		const name = spokenOf(cx, undefined);
		const stored = readToken(cx.paths, name);
		// A config file that was edited by hand may have lost the profile of a stored token.
		const profile = stored === null ? findProfile(readConfig(cx.paths), name) : {};
		await confirmProtected(cx, name, readConfig(cx.paths).profiles[name] ?? profile);
		if (cx.dryRun)
			return cx.wouldDo(`remove the token of profile "${name}"`, { logout: name, removed: stored !== null });
		const removed = stored !== null;
		if (removed) await (await import('../config/config-write.js')).removeToken(cx.paths, name);
		await cx.out.document(
			{ profile: name, removed },
			removed ? `removed the token of profile "${name}"` : `no token is stored for profile "${name}"`,
		);
		for (const variable of ['MAILCTL_TOKEN', 'MAILCTL_TOKEN_FILE'])
			if (cx.io.env[variable]) await cx.warn(`${variable} is set, and mailctl still uses it`);
	},
});
