/** Resolves each setting by flag > environment > profile > default. `config explain` shows the source of each value. */

import { type Clock, isTimeZone, type Micros, systemClock } from '../../api/datetime.js';
import { shownUrl, withoutPassword } from '../../api/quote.js';
import { canParseUrl } from '../../api/schema/url.js';
import { shownDatabase } from '../../store/url.js';
import { flagOf } from '../frame/command.js';
import { UsageError } from '../frame/errors.js';
import { type Format, globalOptions, isMachine, parseFormat, type RawGlobals } from '../frame/globals.js';
import type { Env } from '../frame/io.js';
import { durationWord, parseInteger, parseLimit, parseMoment, parseTimeZone } from '../frame/values.js';
import { isOn } from '../frame/words.js';
import type { ColorMode } from '../render/terminal.js';
import { type ConfigFile, maxRetries, type Paths, type Profile, profileKeys, readToken } from './config.js';
import { chooseTarget, type TargetChoice } from './target.js';

export interface Origin {
	level: 'flag' | 'environment' | 'profile' | 'default';
	name: string | null;
}

interface Resolved<T> {
	value: T;
	origin: Origin;
}

export interface Settings {
	target: TargetChoice;
	profile: Profile;
	output: Resolved<Format | null>;
	color: Resolved<ColorMode>;
	timeoutMs: Resolved<number>;
	retries: Resolved<number>;
	deadline: Resolved<{ ms: number; text: string } | null>;
	input: Resolved<boolean>;
	debug: Resolved<boolean>;
	list: Resolved<string | null>;
	/** IANA name. Null: the machine's zone. */
	timeZone: Resolved<string | null>;
	now: Resolved<Micros | null>;
}

export function tokenOrigin({ target }: Settings, globals: RawGlobals, env: Env, paths: Paths): Origin {
	if (globals.tokenFile !== undefined) return { level: 'flag', name: '--token-file' };
	if (globals.tokenStdin === true) return { level: 'flag', name: '--token-stdin' };
	const name = ['MAILCTL_TOKEN', 'MAILCTL_TOKEN_FILE'].find((one) => env[one]);
	if (name !== undefined) return { level: 'environment', name };
	const { profile } = target;
	const isStored =
		profile !== null && target.target().kind === 'remote' && readToken(paths, profile) !== null;
	return isStored ? { level: 'profile', name: `profile ${profile}` } : { level: 'default', name: null };
}

export function resolveSettings(raw: RawGlobals, env: Env, config: ConfigFile, paths: Paths): Settings {
	assertProxy(raw.proxy);
	const target = chooseTarget(raw, env, config, paths);
	const own = target.profile === null ? {} : target.settings;
	const pick = picker(raw, env, target);
	return {
		target,
		profile: own,
		output: pick('output', null, parseFormat, outputFlag(raw)),
		color: pick('color', 'auto', parseColor, raw.noColor === true ? ['--no-color', 'never'] : null),
		timeoutMs: pick('timeout', 30_000, parseLimit),
		retries: pick('retries', 3, (text, name) => parseInteger(text, name, { max: maxRetries })),
		deadline: pick('deadline', null, (text, name) => ({ ms: parseLimit(text, name), text })),
		input: resolveInput(raw, env),
		debug: pick('debug', false, isOn),
		list: pick('list', null, (text) => text),
		timeZone: pick('timeZone', null, parseTimeZone),
		now: pick('now', null, parseMoment),
	};
}

export function clockOf(settings: Settings): Clock {
	const fixed = settings.now.value;
	return fixed === null ? systemClock : { now: () => fixed };
}

/** Returns an IANA name. Node takes the machine's zone from TZ. An unknown zone counts as UTC, as in other programs. */
export function timeZoneOf({ timeZone }: Settings): string {
	if (timeZone.value !== null) return timeZone.value;
	const found = new Intl.DateTimeFormat().resolvedOptions().timeZone;
	return isTimeZone(found) ? found : 'UTC';
}

function resolveInput(raw: RawGlobals, env: Env): Resolved<boolean> {
	if (raw.noInput === true) return { value: false, origin: { level: 'flag', name: '--no-input' } };
	const name = ['MAILCTL_NO_INPUT', 'CI'].find((one) => isOn(env[one]));
	if (name !== undefined) return { value: false, origin: { level: 'environment', name } };
	return { value: true, origin: { level: 'default', name: null } };
}

function assertProxy(text: string | undefined): void {
	if (text === undefined) return;
	const url = text.includes('://') ? text : `http://${text}`;
	if (canParseUrl(url) && /^(?:https?|socks5?):$/.test(new URL(url).protocol)) return;
	throw new UsageError(`--proxy: "${shownUrl(url)}" is not a URL such as http://host:3128`);
}

type Given = readonly [name: string, text: string];

function outputFlag({ output, json, query }: RawGlobals): Given | null {
	if (query !== undefined && output === undefined) return ['--query', 'json'];
	if (json !== true) return output === undefined ? null : ['--output', output];
	if (output !== undefined && !isMachine(parseFormat(output)))
		throw new UsageError(`use either --json or --output ${output}, not both`);
	return ['--json', output ?? 'json'];
}

type Key = 'output' | 'color' | 'timeout' | 'retries' | 'deadline' | 'debug' | 'list' | 'timeZone' | 'now';

function picker(raw: RawGlobals, env: Env, { profile, settingsOf, settings }: TargetChoice) {
	return <T>(
		key: Key,
		fallback: T,
		parse: (text: string, from: string) => T,
		special: Given | null = null,
	): Resolved<T> => {
		const from = (level: Origin['level'], name: string, text: unknown) => {
			return { value: parse(String(text), name), origin: { level, name } };
		};
		const given = key === 'list' ? undefined : raw[key];
		if (special !== null) return from('flag', ...special);
		if (given !== undefined) return from('flag', flagOf(key), given);
		const names = key === 'list' ? 'MAILCTL_LIST' : globalOptions[key]?.env;
		const [variable = ''] = /^(?:MAILCTL|SOURCE)_\w+/.exec(names ?? '') ?? [];
		// An empty variable counts as unset, as in most programs: `MAILCTL_OUTPUT= mailctl …`.
		if (env[variable]) return from('environment', variable, env[variable]);
		// A profile's list belongs to the profile's target, so ignore the list for another target.
		const isStored = isProfileKey(key) && !(key === 'list' && profile === null);
		if (isStored && settings[key] !== undefined)
			return from('profile', `profile ${profile ?? settingsOf}`, settings[key]);
		return { value: fallback, origin: { level: 'default', name: null } };
	};
}

function isProfileKey(key: Key): key is Key & keyof Profile {
	return Object.hasOwn(profileKeys, key);
}

function parseColor(text: string, from: string): ColorMode {
	if (text === 'auto' || text === 'always' || text === 'never') return text;
	throw new UsageError(`${from}: "${text}" is not auto, always or never`);
}

export interface Explained {
	key: string;
	value: string | number | boolean | null;
	level: Origin['level'];
	source: string | null;
}

export function explain(settings: Settings, globals: RawGlobals, env: Env, paths: Paths): Explained[] {
	const { profile, origin } = settings.target;
	const target = settings.target.target();
	const at = target.kind === 'local' ? withoutPassword(shownDatabase(target.url)) : target.baseUrl;
	const token = tokenOrigin(settings, globals, env, paths);
	const { timeoutMs, deadline, now, timeZone } = settings;
	return [
		row('profile', profile, origin),
		row(target.kind === 'local' ? 'db' : 'baseUrl', at, origin),
		row('token', token.level === 'default' ? null : '********', token),
		...(['output', 'color'] as const).map((key) => row(key, settings[key].value, settings[key].origin)),
		row('timeout', durationWord(timeoutMs.value), timeoutMs.origin),
		row('deadline', deadline.value?.text ?? null, deadline.origin),
		...(['retries', 'input', 'debug', 'list'] as const).map((key) =>
			row(key, settings[key].value, settings[key].origin),
		),
		row('timeZone', timeZoneOf(settings), timeZone.origin),
		row('now', now.value === null ? null : new Date(now.value / 1000).toISOString(), now.origin),
		proxy(globals, env),
	];
}

function row(key: string, value: Explained['value'], { level, name }: Origin): Explained {
	return { key, value, level, source: name };
}

function proxy({ proxy: given }: RawGlobals, env: Env): Explained {
	if (given !== undefined) return row('proxy', host(given), { level: 'flag', name: '--proxy' });
	const names = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'];
	const name = names.find((one) => env[one]) ?? null;
	if (name === null) return row('proxy', null, { level: 'default', name });
	return row('proxy', host(env[name] ?? ''), { level: 'environment', name });
}

function host(url: string): string {
	return canParseUrl(url) ? new URL(url).host : url.replace(/^.*@/, '');
}
