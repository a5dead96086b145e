/** Resolves each setting by flag > environment > profile > default, with its source, which `config explain` shows. */

import { type Clock, isTimeZone, type Micros, systemClock } from '../../api/datetime.js';
import { shownUrl, withoutPassword } from '../../api/quote.js';
import { canParseUrl } from '../../api/schema/url.js';
import { shownDatabase } from '../../store/url.js';
import { UsageError } from '../frame/errors.js';
import {
	type ColorMode,
	type Env,
	type Format,
	isMachine,
	isOn,
	parseFormat,
	type RawGlobals,
} from '../frame/globals.js';
import { durationWord, parseInteger, parseLimit, parseMoment, parseTimeZone } from '../frame/values.js';
import { type ConfigFile, maxRetries, type Paths, type Profile, readToken } from './config.js';
import { chooseTarget, type TargetChoice } from './target.js';

export type { Env };

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
	/** IANA name of the time zone of times and days; null: the machine's. */
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
	const selected = target.settings;
	const at = `profile ${target.profile ?? target.settingsOf}`;
	const pick = picker(env, at);
	const own = target.profile === null ? {} : selected;
	const color = raw.noColor === true ? { name: '--no-color', value: 'never' } : flag('--color', raw.color);
	return {
		target,
		profile: own,
		output: pick(outputFlag(raw), 'MAILCTL_OUTPUT', selected.output, null, parseFormat),
		color: pick(color, null, selected.color, 'auto', parseColor),
		timeoutMs: pick(flag('--timeout', raw.timeout), 'MAILCTL_TIMEOUT', selected.timeout, 30_000, parseLimit),
		retries: pick(flag('--retries', raw.retries), 'MAILCTL_RETRIES', selected.retries, 3, (text, name) =>
			parseInteger(text, name, { max: maxRetries }),
		),
		deadline: pick(flag('--deadline', raw.deadline), null, undefined, null, (text, name) => ({
			ms: parseLimit(text, name),
			text,
		})),
		input: resolveInput(raw, env),
		debug: pick(
			flag('--debug', raw.debug === true ? '1' : undefined),
			'MAILCTL_DEBUG',
			undefined,
			false,
			isOn,
		),
		list: pick(null, 'MAILCTL_LIST', own.list, null, (text) => text),
		timeZone: pick(
			flag('--time-zone', raw.timeZone),
			'MAILCTL_TIME_ZONE',
			selected.timeZone,
			null,
			parseTimeZone,
		),
		now: pick(flag('--now', raw.now), 'SOURCE_DATE_EPOCH', undefined, null, parseMoment),
	};
}

export function clockOf(settings: Settings): Clock {
	const fixed = settings.now.value;
	return fixed === null ? systemClock : { now: () => fixed };
}

/** IANA name. The machine's zone comes from TZ; an unknown zone counts as UTC, as in other programs. */
export function timeZoneOf({ timeZone }: Settings): string {
	if (timeZone.value !== null) return timeZone.value;
	const found = new Intl.DateTimeFormat().resolvedOptions().timeZone;
	return isTimeZone(found) ? found : 'UTC';
}

/** Prompts only for people: never with `--no-input`, in CI, or in a format for machines. */
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

interface Given {
	name: string;
	value: string;
}

function flag(name: string, value: string | undefined): Given | null {
	return value === undefined ? null : { name, value };
}

function outputFlag(raw: RawGlobals): Given | null {
	if (raw.query !== undefined && raw.output === undefined) return { name: '--query', value: 'json' };
	if (raw.json !== true) return flag('--output', raw.output);
	if (raw.output !== undefined && !isMachine(parseFormat(raw.output)))
		throw new UsageError(`use either --json or --output ${raw.output}, not both`);
	return { name: '--json', value: raw.output ?? 'json' };
}

function picker(env: Env, profileName: string) {
	return <T>(
		given: Given | null,
		variable: string | null,
		stored: string | number | undefined,
		fallback: T,
		parse: (text: string, from: string) => T,
	): Resolved<T> => {
		if (given !== null)
			return { value: parse(given.value, given.name), origin: { level: 'flag', name: given.name } };
		const text = variable === null ? undefined : env[variable];
		// An empty variable counts as unset, as in most programs: `MAILCTL_OUTPUT= mailctl …`.
		if (variable !== null && text !== undefined && text !== '')
			return { value: parse(text, variable), origin: { level: 'environment', name: variable } };
		if (stored !== undefined)
			return { value: parse(String(stored), profileName), origin: { level: 'profile', name: profileName } };
		return { value: fallback, origin: { level: 'default', name: null } };
	};
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
	const { output, color, timeoutMs, retries, deadline, input, debug, list, now, timeZone } = settings;
	return [
		row('profile', profile, origin),
		row(target.kind === 'local' ? 'db' : 'baseUrl', at, origin),
		row('token', token.level === 'default' ? null : '********', token),
		row('output', output.value, output.origin),
		row('color', color.value, color.origin),
		row('timeout', durationWord(timeoutMs.value), timeoutMs.origin),
		row('deadline', deadline.value?.text ?? null, deadline.origin),
		row('retries', retries.value, retries.origin),
		row('input', input.value, input.origin),
		row('debug', debug.value, debug.origin),
		row('list', list.value, list.origin),
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
