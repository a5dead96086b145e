/** `mailctl login`: a deployment and its token, checked and kept as a profile. */

import { existsSync } from 'node:fs';
import { ApiError } from '../../api/errors.js';
import { type ConfigFile, type Profile, readConfig } from '../config/config.js';
import { newName } from '../config/profiles.js';
import { confirmProtected } from '../config/protection.js';
import { builtIn, remoteTarget } from '../config/target.js';
import { checkToken, givenToken } from '../config/token.js';
import { refusalOf } from '../frame/asking.js';
import { command, reachOptions } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { answer } from '../render/columns.js';

export { login as command };

const login = command({
	name: 'login',
	summary: 'keep a deployment and its token as a profile',
	description:
		'The token is asked for, or comes from --token-stdin, --token-file or MAILCTL_TOKEN; it is tried before it is ' +
		'stored, in a file that only you can read. It is sent to the origin of this base URL and nowhere else. Without ' +
		'--profile the profile is called as the host of the base URL.',
	options: {
		use: {
			kind: 'flag',
			summary: 'make it the default profile; the first one is, where no database of one’s own is in use',
		},
		check: { kind: 'tri', summary: 'try the token before it is stored (on)' },
	},
	writes: true,
	profiles: true,
	reach: reachOptions,
	columns: answer('profile', 'base_url', 'service', 'is_default', 'checked'),
	output: '{"profile", "base_url", "service", "is_default", "checked"}',
	exits: [4, 6, 7, 78],
	examples: [
		'mailctl login --profile prod --base-url https://mail.example.com --token-stdin < token.txt',
		'mailctl login --base-url https://mail.example.com --token-file token.txt --use',
	],
	run: async (cx, { options }) => {
		const config = readConfig(cx.paths);
		const { name, baseUrl } = await whereTo(cx, config);
		await confirmProtected(cx, name, config.profiles[name] ?? {});
		const token = await tokenFor(cx, baseUrl);
		const service = options.check === false ? null : await tryToken(cx, baseUrl, token);
		if (cx.dryRun)
			return cx.wouldDo(`store a token for ${baseUrl} as profile "${name}"`, {
				login: name,
				with: { base_url: baseUrl },
			});
		const isDefault = options.use || config.profile === name || isFirst(cx, config);
		const { storeLogin } = await import('../config/config-write.js');
		await storeLogin(cx.paths, name, { baseUrl, token, isDefault });
		const document = {
			profile: name,
			base_url: baseUrl,
			service,
			is_default: isDefault,
			checked: service !== null,
		};
		await cx.out.document(
			document,
			`logged in to ${baseUrl} as profile "${name}"${isDefault ? ', the default' : ''}`,
		);
		if (!isDefault)
			await cx.hint([
				mailctl('--profile', name),
				' … goes there; ',
				mailctl('profile', 'use', name),
				' always does',
			]);
	},
});

/** A login does not replace a database of this machine as the default target. */
function isFirst({ paths }: CommandContext, { profile, profiles }: ConfigFile): boolean {
	return profile === null && !Object.hasOwn(profiles, builtIn) && !existsSync(paths.database);
}

/** The base URL given, else that of the profile, else asked for; and the name it is kept under. */
async function whereTo(cx: CommandContext, config: ConfigFile): Promise<{ name: string; baseUrl: string }> {
	if (cx.globals.db !== undefined)
		throw new UsageError('a database needs no login', {
			hint: [mailctl('profile', 'add', 'NAME', '--db', 'PATH'), ' keeps one'],
		});
	const { profiles } = config;
	const named = cx.globals.profile ?? (cx.io.env['MAILCTL_PROFILE'] || undefined);
	const given = cx.globals.baseUrl ?? (cx.io.env['MAILCTL_BASE_URL'] || undefined);
	const stored = profileIn(profiles, named ?? (given === undefined ? config.profile : null));
	const text = given ?? stored?.baseUrl ?? (await askUrl(cx));
	const { baseUrl } = remoteTarget(text.trim(), '--base-url');
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

async function askUrl(cx: CommandContext): Promise<string> {
	const check = refusing((text) => remoteTarget(text.trim(), 'the base URL'));
	if (cx.canAsk) return cx.ask('Base URL of the deployment:', { check });
	throw new UsageError('missing --base-url: where the deployment is', { hint: 'or set MAILCTL_BASE_URL' });
}

function refusing(read: (text: string) => unknown): (text: string) => Promise<string | null> {
	return async (text) => refusalOf(() => read(text));
}

/** The profile that is this deployment already, else the name of its host. */
function nameOf({ profiles, profile }: ConfigFile, baseUrl: string): string {
	const same = Object.keys(profiles).filter((name) => profiles[name]?.baseUrl === baseUrl);
	if (profile !== null && same.includes(profile)) return profile;
	const { hostname } = new URL(baseUrl);
	const [first] = same;
	const name = first ?? hostname.replace(/^\[|\]$/g, '').replaceAll(':', '-');
	if (first === undefined && Object.hasOwn(profiles, name))
		throw new UsageError(
			`profile "${name}" is another deployment: ${profiles[name]?.baseUrl ?? 'a database'}`,
			{
				hint: 'give --profile NAME',
			},
		);
	return name;
}

async function tokenFor(cx: CommandContext, baseUrl: string): Promise<string> {
	const given = await givenToken(cx.globals, cx.io.env, cx.sources);
	if (given !== null) return checkToken(given);
	if (!cx.canAsk)
		throw new UsageError('missing --token-stdin or --token-file: the API token', {
			hint: 'or set MAILCTL_TOKEN',
		});
	return checkToken(await cx.askSecret(`API token for ${baseUrl}:`, { check: refusing(checkToken) }));
}

/** One cheap request. A refused token, no answer and an answer of something else end here: nothing is stored. */
async function tryToken(cx: CommandContext, baseUrl: string, token: string): Promise<string> {
	const { api, close } = await cx.connectTo({ kind: 'remote', baseUrl, token });
	try {
		await api.lists.page({ page_size: 1 }, { signal: cx.signal });
		return (await api.capabilities()).service;
	} catch (error) {
		if (!cx.signal.aborted) await cx.note('nothing was stored; --no-check stores a token without trying it');
		if (error instanceof ApiError && error.code === 'not_found')
			throw new ApiError('bad_answer', `${baseUrl} has no lists: it is not the base URL of a deployment`, {
				cause: error,
				...(error.http !== null && { http: error.http }),
			});
		throw error;
	} finally {
		await close();
	}
}
