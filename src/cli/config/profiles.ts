import { camel } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext, Run } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { didYouMean } from '../frame/words.js';
import { type ConfigFile, originOf, type Profile, profileKeys, readConfig, readToken } from './config.js';
import type { Changed } from './config-write.js';
import { builtIn } from './target.js';

export function spokenOf(cx: CommandContext, named: string | undefined): string {
	const given = named ?? cx.globals.profile ?? (cx.io.env['MAILCTL_PROFILE'] || undefined);
	return given ?? readConfig(cx.paths).profile ?? builtIn;
}

export const longestName = 64;

export function newName({ profiles }: ConfigFile, name: string): string {
	if (name === builtIn)
		throw new UsageError(`"${builtIn}" is the built-in profile of the local database`, {
			hint: 'use another name',
		});
	if (!/^[A-Za-z0-9][\w.@:-]*$/.test(name) || name.length > longestName)
		throw new UsageError(`"${name}" is not a valid profile name`, {
			hint: `use letters, digits and . _ - @ :, at most ${longestName} characters`,
		});
	if (Object.hasOwn(profiles, name))
		throw new UsageError(`profile "${name}" already exists`, {
			hint: [mailctl('config', 'set', 'KEY', 'VALUE', '--profile', name), ' changes it'],
		});
	return name;
}

export function tokenState(cx: CommandContext, name: string, { baseUrl }: Profile): 'set' | 'not set' | null {
	if (baseUrl === undefined) return null;
	return readToken(cx.paths, name)?.origin === originOf(baseUrl) ? 'set' : 'not set';
}

export async function sayDropped(cx: CommandContext, name: string, { droppedToken }: Changed): Promise<void> {
	if (droppedToken === null) return;
	await cx.warn(
		`removed the token of profile "${name}": it was for ${droppedToken}`,
		mailctl('login', '--profile', name),
	);
}

/** Accepts kebab-case and camelCase. Throws `UsageError` for an unknown key. */
export function knownKey<K extends string>(word: string, known: readonly K[], from = ''): K {
	const key = camel(word);
	const found = known.find((one) => one === key);
	if (found !== undefined) return found;
	throw new UsageError(`${from}unknown setting "${word}"`, {
		hint: didYouMean(word, known) ?? `settings: ${known.join(', ')}`,
	});
}

export function parsePreference(key: keyof Profile, text: string): unknown {
	const { check, is, read = (given: string) => given.trim() } = profileKeys[key];
	const value = read(text);
	if (check(value)) return value;
	throw new UsageError(`${key}: "${text}" is not ${is}`);
}

export async function protectProfile({ command, path }: Run, cx: CommandContext): Promise<void> {
	const asksAnyway =
		command.severity !== undefined || command.asksItself === true || command.profiles === true;
	if (command.writes === true && !asksAnyway) await confirmChange(cx, path.join(' '));
}

export async function confirmChange(cx: CommandContext, what: string): Promise<void> {
	const { profile, target } = cx.settings;
	if (profile.protected === true) await ask(cx, `change "${target.profile}", a protected profile (${what})`);
}

export async function confirmProtected(cx: CommandContext, name: string, profile: Profile): Promise<void> {
	if (profile.protected === true) await ask(cx, `change "${name}", a protected profile`);
}

async function ask(cx: CommandContext, what: string): Promise<void> {
	if (!cx.dryRun) await cx.confirm({ kind: 'mild', what });
}
