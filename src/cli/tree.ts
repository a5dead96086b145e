/** All commands by their first word: the rows of the main help, without loading any command. */
import type { Command, CommandGroup } from './frame/command.js';

export interface TreeEntry {
	name: string;
	summary: string;
	load(): Promise<{ group: CommandGroup } | { command: Command }>;
}

/** One line each, in the order the help shows them. */
export const tree: readonly TreeEntry[] = [
	{ name: 'lists', summary: 'mailing lists', load: () => import('./commands/lists.js') },
	{
		name: 'subscribers',
		summary: 'the subscribers of a list',
		load: () => import('./commands/subscribers.js'),
	},
	{
		name: 'fields',
		summary: 'additional fields: the variables of subscribers',
		load: () => import('./commands/fields.js'),
	},
	{
		name: 'webhooks',
		summary: 'HTTP notifications',
		load: () => import('./commands/webhooks.js'),
	},
	{
		name: 'send',
		summary: 'send a message, or a campaign to a list',
		load: () => import('./commands/send.js'),
	},
	{
		name: 'campaigns',
		summary: 'where each campaign stands, its report and results; resume, cancel',
		load: () => import('./commands/campaigns.js'),
	},
	{
		name: 'report',
		summary: 'how many messages were sent, opened, bounced',
		load: () => import('./commands/report.js'),
	},
	{
		name: 'templates',
		summary: 'message templates',
		load: () => import('./commands/templates.js'),
	},
	{
		name: 'senders',
		summary: 'verified sender addresses',
		load: () => import('./commands/senders.js'),
	},
	{
		name: 'messages',
		summary: 'what became of each message',
		load: () => import('./commands/messages.js'),
	},
	{
		name: 'why',
		summary: 'everything about one person, and why a mail did not come',
		load: () => import('./commands/why.js'),
	},
	{
		name: 'suppressions',
		summary: 'addresses that get no mail',
		load: () => import('./commands/suppressions.js'),
	},
	{
		name: 'serve',
		summary: 'the engine over HTTP, with tracking and the sending worker',
		load: () => import('./commands/serve.js'),
	},
	{
		name: 'smoke',
		summary: 'checks against a deployment, for CI',
		load: () => import('./commands/smoke.js'),
	},
	{
		name: 'doctor',
		summary: 'what is wrong with this set-up, and the fix',
		load: () => import('./commands/doctor.js'),
	},
	{ name: 'worker', summary: 'send what is due', load: () => import('./commands/worker.js') },
	{
		name: 'engine',
		summary: 'the embedded engine: its database and mail server',
		load: () => import('./commands/engine.js'),
	},
	{
		name: 'apply',
		summary: 'make lists, fields, webhooks and more as a file has them',
		load: () => import('./commands/apply.js'),
	},
	{ name: 'diff', summary: 'what apply would change', load: () => import('./commands/diff.js') },
	{ name: 'api', summary: 'one raw request', load: () => import('./commands/api.js') },
	{
		name: 'sink',
		summary: 'a local mail server that shows and counts what arrives',
		load: () => import('./commands/sink.js'),
	},
	{
		name: 'demo',
		summary: 'the whole job, nothing to set up',
		load: () => import('./commands/demo.js'),
	},
	{
		name: 'login',
		summary: 'keep a deployment and its token as a profile',
		load: () => import('./commands/login.js'),
	},
	{
		name: 'logout',
		summary: 'forget the token of a profile',
		load: () => import('./commands/logout.js'),
	},
	{
		name: 'profile',
		summary: 'stored deployments and databases',
		load: () => import('./commands/profile.js'),
	},
	{
		name: 'config',
		summary: 'settings of the profiles',
		load: () => import('./commands/config.js'),
	},
	{
		name: 'commands',
		summary: 'all commands, for scripts',
		load: () => import('./commands/commands.js'),
	},
	{
		name: 'completion',
		summary: 'completion of commands, options and names in a shell',
		load: () => import('./commands/completion.js'),
	},
	{ name: 'version', summary: 'the version', load: () => import('./commands/version.js') },
	{
		name: 'help',
		summary: 'help on a topic or a command',
		load: () => import('./commands/help.js'),
	},
];

/** The commands of an entry: a group, or one verb. */
export async function loadNode(entry: TreeEntry): Promise<Command | CommandGroup> {
	const loaded = await entry.load();
	return 'group' in loaded ? loaded.group : loaded.command;
}
