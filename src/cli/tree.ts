/** All commands by their first word: what the help of the whole shows, without loading any of them. */
import type { Command, CommandGroup } from './command.js';

export interface TreeEntry {
	name: string;
	summary: string;
	load(): Promise<{ group: CommandGroup } | { command: Command }>;
}

/** One line each, in the order the help shows them. */
export const tree: readonly TreeEntry[] = [
	{ name: 'lists', summary: 'mailing lists', load: async () => (await import('./groups.js')).lists },
	{
		name: 'subscribers',
		summary: 'the subscribers of a list',
		load: async () => (await import('./groups.js')).subscribers,
	},
	{
		name: 'fields',
		summary: 'additional fields: the variables of subscribers',
		load: async () => (await import('./groups.js')).fields,
	},
	{
		name: 'webhooks',
		summary: 'HTTP notifications',
		load: async () => (await import('./groups.js')).webhooks,
	},
	{
		name: 'send',
		summary: 'send a message, or a mailing to a list',
		load: async () => (await import('./groups.js')).send,
	},
	{
		name: 'report',
		summary: 'how many messages were sent, opened, bounced',
		load: async () => (await import('./groups.js')).report,
	},
	{
		name: 'templates',
		summary: 'message templates',
		load: async () => (await import('./groups.js')).templates,
	},
	{
		name: 'senders',
		summary: 'verified sender addresses',
		load: async () => (await import('./groups.js')).senders,
	},
	{
		name: 'messages',
		summary: 'what became of each message',
		load: async () => (await import('./groups.js')).messages,
	},
	{ name: 'worker', summary: 'send what is due', load: async () => (await import('./groups.js')).worker },
	{
		name: 'engine',
		summary: 'the embedded engine: its database and mail server',
		load: async () => (await import('./groups.js')).engine,
	},
	{
		name: 'demo',
		summary: 'the whole job, nothing to set up',
		load: async () => (await import('./groups.js')).demo,
	},
	{
		name: 'config',
		summary: 'settings of the profiles',
		load: async () => (await import('./groups.js')).config,
	},
	{
		name: 'commands',
		summary: 'all commands, for scripts',
		load: async () => (await import('./groups.js')).commands,
	},
	{ name: 'version', summary: 'the version', load: async () => (await import('./groups.js')).version },
	{
		name: 'help',
		summary: 'help on a topic or a command',
		load: async () => (await import('./groups.js')).help,
	},
];

/** The commands of an entry: a group, or one verb. */
export async function loadNode(entry: TreeEntry): Promise<Command | CommandGroup> {
	const loaded = await entry.load();
	return 'group' in loaded ? loaded.group : loaded.command;
}
