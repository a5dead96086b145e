/** What to do where a webhook may not lead to a URL. */
import { commandLine } from '../../command-line.js';
import type { Connection } from '../../connection.js';
import type { CommandContext } from '../../context.js';
import type { Refused } from '../../refusals.js';

/** What to do about a URL that the service does not take. */
export async function urlHint(cx: CommandContext): Promise<(refused: Refused) => string | undefined> {
	const { local } = await cx.connection();
	return ({ path, message }) => {
		if (path !== 'url') return undefined;
		if (/private|loopback|reserved/.test(message)) return `${allowPrivateTargets(cx, local)} allows them`;
		return 'a URL of http or https: https://hooks.example.com/in';
	};
}

/** The command that lets notifications go to private addresses, on the database that this call is about. */
export function allowPrivateTargets(cx: Pick<CommandContext, 'globals'>, local: Connection['local']): string {
	const words = 'engine settings set allow_private_webhooks true';
	return local === null ? `mailctl ${words}, on the machine that owns the database,` : commandLine(cx, words);
}
