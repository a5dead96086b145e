/** Hints where a webhook may not lead to a URL. */
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { Connection } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import type { Refused } from '../../verbs/refusals.js';

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
	const command = mailctl('engine', 'settings', 'set', 'allow_private_webhooks', 'true');
	return local === null ? [command, ', on the machine that owns the database,'] : command;
}
