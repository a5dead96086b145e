/** Protected profiles: each change of one, or by way of one, asks first. A dry run changes nothing and asks nothing. */
import type { CommandContext, Run } from '../frame/context.js';
import type { Profile } from './config.js';

/** Before a command that changes something; those that ask by themselves are not asked twice. */
export async function protectProfile({ command, path }: Run, cx: CommandContext): Promise<void> {
	const asksAnyway =
		command.severity !== undefined || command.asksItself === true || command.profiles === true;
	if (command.writes === true && !asksAnyway) await confirmChange(cx, path.join(' '));
}

/** Asks before a change that goes through the selected profile. `what` is part of the question. */
export async function confirmChange(cx: CommandContext, what: string): Promise<void> {
	const { profile, target } = cx.settings;
	if (profile.protected === true) await ask(cx, `change "${target.profile}", a protected profile (${what})`);
}

/** Before the stored profile itself is changed. */
export async function confirmProtected(cx: CommandContext, name: string, profile: Profile): Promise<void> {
	if (profile.protected === true) await ask(cx, `change "${name}", a protected profile`);
}

async function ask(cx: CommandContext, what: string): Promise<void> {
	if (!cx.dryRun) await cx.confirm({ kind: 'mild', what });
}
