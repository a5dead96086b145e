/** Where a webhook may not lead to a URL: the way out. */
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { Connection } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import type { Refused } from '../../verbs/refusals.js';

const setting = 'allow_private_webhooks';

/** The hint for a URL that the service refuses. */
export async function urlHint(cx: CommandContext): Promise<(refused: Refused) => Hint | undefined> {
	const { local } = await cx.connection();
	return ({ path, code }) => {
		if (path !== 'url') return undefined;
		if (code === 'private_target') return [allowPrivateTargets(local), ' allows them'];
		return 'a URL of http or https: https://hooks.example.com/in';
	};
}

/** The command that lets notifications go to private addresses, on the database that this call is about. */
export function allowPrivateTargets(local: Connection['local']): Hint {
	const command = mailctl('engine', 'settings', 'set', setting, 'true');
	return local === null ? [command, ', on the machine that owns the database,'] : command;
}

/** Allows private targets by consent, on a database of this machine that refuses them. Throws `UsageError` where a script gives none. */
export async function agreeToPrivateTargets(cx: CommandContext): Promise<void> {
	const { local } = await cx.connection();
	if (local === null) return;
	if ((await local.settings.get())[setting] === 'true') return;
	const why =
		`This database refuses webhooks to private addresses, such as that of this machine. The setting ${setting} allows ` +
		'them, for all its webhooks, until it is unset.';
	if (cx.globals.yes !== true && !cx.canAsk)
		throw new UsageError(`this will set ${setting} to true`, { hint: 'add --yes to agree' });
	if (cx.globals.yes !== true) await cx.agree(why, 'Set it to true?');
	await local.settings.set({ [setting]: 'true' });
	await cx.hint([mailctl('engine', 'settings', 'unset', setting), ' refuses them again']);
}
