/** The stored profiles by name, for the commands that administer them. */
import { type ConfigFile, originOf, type Profile, readConfig, readToken } from './config.js';
import type { Changed } from './config-write.js';
import type { CommandContext } from './context.js';
import { UsageError } from './errors.js';
import { didYouMean } from './suggest.js';
import { builtIn } from './target.js';

/** The stored profile; the built-in one is there without being stored. Throws `UsageError` for an unknown one. */
export function findProfile({ profiles }: ConfigFile, name: string): Profile {
	const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
	if (found !== undefined) return found;
	if (name === builtIn) return {};
	throw new UsageError(`there is no profile "${name}"`, {
		hint: didYouMean(name, [builtIn, ...Object.keys(profiles)]) ?? 'mailctl profile list',
	});
}

/** The profile a command speaks of: the one named with this call, else the default one. */
export function spokenOf(cx: CommandContext, named: string | undefined): string {
	const given = named ?? cx.globals.profile ?? (cx.io.env['MAILCTL_PROFILE'] || undefined);
	return given ?? readConfig(cx.paths).profile ?? builtIn;
}

/** A name that is free to be given. Throws `UsageError`. */
export function newName({ profiles }: ConfigFile, name: string): string {
	if (name === builtIn)
		throw new UsageError(`"${builtIn}" is the built-in profile: the database of this machine`, {
			hint: 'give another name',
		});
	if (!/^[A-Za-z0-9][\w.@:-]{0,63}$/.test(name))
		throw new UsageError(`"${name}" is no name of a profile`, {
			hint: 'letters, digits, . _ - @ :, at most 64',
		});
	if (Object.hasOwn(profiles, name))
		throw new UsageError(`there is a profile "${name}" already`, {
			hint: `mailctl config set KEY VALUE --profile ${name} changes it`,
		});
	return name;
}

/** Whether a token is stored that may go to the profile's origin; `null` where none is needed. */
export function tokenState(cx: CommandContext, name: string, { baseUrl }: Profile): 'set' | 'not set' | null {
	if (baseUrl === undefined) return null;
	const stored = readToken(cx.paths, name);
	return stored !== null && (stored.origin ?? originOf(baseUrl)) === originOf(baseUrl) ? 'set' : 'not set';
}

/** A protected profile asks before it is changed itself, too. */
export async function confirmProtected(cx: CommandContext, name: string, profile: Profile): Promise<void> {
	if (profile.protected !== true || cx.dryRun) return;
	await cx.confirm({ kind: 'mild', what: `change "${name}", a protected profile` });
}

/** Says that a token is gone because its profile names another origin now. */
export async function sayDropped(cx: CommandContext, name: string, { droppedToken }: Changed): Promise<void> {
	if (droppedToken === null) return;
	await cx.warn(`the token of profile "${name}" was for ${droppedToken} and is removed`);
	await cx.hint(`mailctl login --profile ${name}`);
}
