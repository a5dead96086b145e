/** Flag > environment > profile > default, each value with where it came from. */
import { type Clock, type Micros, systemClock } from '../api/datetime.js';
import type { ConfigFile, Paths, Profile } from './config.js';
import { UsageError } from './errors.js';
import { type Format, isMachine, isOn, parseFormat, type RawGlobals } from './globals.js';
import { chooseTarget, type TargetChoice } from './target.js';
import { parseDuration, parseInteger, parseMoment } from './values.js';

export type Env = Readonly<Record<string, string | undefined>>;

/** Where a value was found; `name` is the flag, the variable or the profile. */
export interface Origin {
	level: 'flag' | 'environment' | 'profile' | 'default';
	name: string | null;
}

export interface Resolved<T> {
	value: T;
	origin: Origin;
}

export type ColorMode = 'auto' | 'always' | 'never';

/** Everything that is settled before a command runs. */
export interface Settings {
	target: TargetChoice;
	/** The profile's own settings; none when the target was named otherwise. */
	profile: Profile;
	/** `null`: a table on a terminal, TSV elsewhere. */
	output: Resolved<Format | null>;
	color: Resolved<ColorMode>;
	timeoutMs: Resolved<number>;
	retries: Resolved<number>;
	deadline: Resolved<{ ms: number; text: string } | null>;
	input: Resolved<boolean>;
	debug: Resolved<boolean>;
	list: Resolved<string | null>;
	/** Fixed for reproducible output; `null` = the machine's clock. */
	now: Resolved<Micros | null>;
}

/** Throws `UsageError` for values that cannot be meant. */
export function resolveSettings(raw: RawGlobals, env: Env, config: ConfigFile, paths: Paths): Settings {
	const target = chooseTarget(raw, env, config, paths);
	const selected = target.settings;
	const at = `profile ${target.profile ?? target.settingsOf}`;
	const pick = picker(env, at);
	const own = target.profile === null ? {} : selected;
	return {
		target,
		profile: own,
		output: pick(outputFlag(raw), 'MAILCTL_OUTPUT', selected.output, null, parseFormat),
		color: pick(colorFlag(raw), null, selected.color, 'auto', parseColor),
		timeoutMs: pick(
			flag('--timeout', raw.timeout),
			'MAILCTL_TIMEOUT',
			selected.timeout,
			30_000,
			parseDuration,
		),
		retries: pick(flag('--retries', raw.retries), 'MAILCTL_RETRIES', selected.retries, 3, parseRetries),
		deadline: pick(flag('--deadline', raw.deadline), null, undefined, null, (text, name) => ({
			ms: parseDuration(text, name),
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
		now: pick(flag('--now', raw.now), 'SOURCE_DATE_EPOCH', undefined, null, parseMoment),
	};
}

/** Stands still at `--now` or SOURCE_DATE_EPOCH where one is given; else the machine’s. */
export function clockOf(settings: Settings): Clock {
	const fixed = settings.now.value;
	return fixed === null ? systemClock : { now: () => fixed };
}

/** Prompts are for people: never with `--no-input`, in CI, or with a machine's format. */
function resolveInput(raw: RawGlobals, env: Env): Resolved<boolean> {
	if (raw.input === false) return { value: false, origin: { level: 'flag', name: '--no-input' } };
	const name = ['MAILCTL_NO_INPUT', 'CI'].find((one) => isOn(env[one]));
	if (name !== undefined) return { value: false, origin: { level: 'environment', name } };
	return { value: true, origin: { level: 'default', name: null } };
}

interface Given {
	name: string;
	value: string;
}

function flag(name: string, value: string | undefined): Given | null {
	return value === undefined ? null : { name, value };
}

function outputFlag(raw: RawGlobals): Given | null {
	if (raw.json !== true) return flag('--output', raw.output);
	if (raw.output !== undefined && !isMachine(parseFormat(raw.output)))
		throw new UsageError(`--json and --output ${raw.output} cannot both be meant`);
	return { name: '--json', value: raw.output ?? 'json' };
}

function colorFlag(raw: RawGlobals): Given | null {
	return raw.color === false ? { name: '--no-color', value: 'never' } : flag('--color', raw.color);
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
		// An empty variable is an unset one, as in most programs: `MAILCTL_OUTPUT= mailctl …`.
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

function parseRetries(text: string, from: string): number {
	return parseInteger(text, from, { max: 100 });
}
