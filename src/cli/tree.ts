/** All commands by their first word. Only the one named on the command line is loaded. */
import type { Command, CommandGroup } from './command.js';

export interface TreeEntry {
	name: string;
	summary: string;
	load(): Promise<{ group: CommandGroup } | { command: Command }>;
}

/** One line each, in the order the help shows them. */
export const tree: readonly TreeEntry[] = [
	{ name: 'lists', summary: 'mailing lists', load: () => import('./commands/lists.js') },
	{ name: 'config', summary: 'settings of the profiles', load: () => import('./commands/config.js') },
	{ name: 'commands', summary: 'all commands, for scripts', load: () => import('./commands/commands.js') },
	{ name: 'version', summary: 'the version', load: () => import('./commands/version.js') },
	{ name: 'help', summary: 'help on a topic or a command', load: () => import('./commands/help.js') },
];

/** The commands of an entry: a group, or one verb. */
export async function loadNode(entry: TreeEntry): Promise<Command | CommandGroup> {
	const loaded = await entry.load();
	return 'group' in loaded ? loaded.group : loaded.command;
}
