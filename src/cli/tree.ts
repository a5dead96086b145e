import type { Tree, TreeEntry } from './frame/command.js';

export const tree: Tree = [
	entry('lists', 'mailing lists', () => import('./commands/lists.js')),
	entry('subscribers', 'the subscribers of a list', () => import('./commands/subscribers.js')),
	entry('fields', 'additional fields: the variables of subscribers', () => import('./commands/fields.js')),
	entry('webhooks', 'HTTP notifications', () => import('./commands/webhooks.js')),
	entry('send', 'send a message, or a campaign to a list', () => import('./commands/send.js')),
	entry(
		'campaigns',
		'where each campaign stands, its report and results; resume, cancel',
		() => import('./commands/campaigns.js'),
	),
	entry('report', 'how many messages were sent, opened, bounced', () => import('./commands/report.js')),
	entry('templates', 'message templates', () => import('./commands/templates.js')),
	entry('senders', 'verified sender addresses', () => import('./commands/senders.js')),
	entry('messages', 'what became of each message', () => import('./commands/messages.js')),
	entry('why', 'everything about one person, and why a mail did not come', () => import('./commands/why.js')),
	entry('suppressions', 'addresses that get no mail', () => import('./commands/suppressions.js')),
	entry(
		'serve',
		'the engine over HTTP, with tracking and the sending worker',
		() => import('./commands/serve.js'),
	),
	entry('smoke', 'checks against a deployment, for CI', () => import('./commands/smoke.js')),
	entry('doctor', 'what is wrong with this set-up, and the fix', () => import('./commands/doctor.js')),
	entry('worker', 'send what is due', () => import('./commands/worker.js')),
	entry('engine', 'the embedded engine: its database and mail server', () => import('./commands/engine.js')),
	entry('apply', 'make lists, fields, webhooks and more as a file has them', async () => ({
		command: (await import('./commands/apply.js')).apply,
	})),
	entry('diff', 'what apply would change', async () => ({
		command: (await import('./commands/apply.js')).diff,
	})),
	entry('api', 'one raw request', () => import('./commands/api.js')),
	entry('sink', 'a local mail server that shows and counts what arrives', () => import('./commands/sink.js')),
	entry('demo', 'the whole job, nothing to set up', () => import('./commands/demo.js')),
	entry('login', 'keep a deployment and its token as a profile', async () => ({
		command: (await import('./commands/login.js')).login,
	})),
	entry('logout', 'forget the token of a profile', async () => ({
		command: (await import('./commands/login.js')).logout,
	})),
	entry('profile', 'stored deployments and databases', () => import('./commands/profile.js')),
	entry('config', 'settings of the profiles', () => import('./commands/config.js')),
	entry('commands', 'all commands, for scripts', () => import('./commands/commands.js')),
	entry(
		'completion',
		'completion of commands, options and names in a shell',
		() => import('./commands/completion.js'),
	),
	entry('version', 'the version', () => import('./commands/version.js')),
	entry('help', 'help on a topic or a command', () => import('./commands/help.js')),
];

function entry(name: string, summary: string, load: TreeEntry['load']): TreeEntry {
	return { name, summary, load };
}
