import type { Command, Tree, TreeEntry } from './frame/command.js';

export const tree: Tree = [
	...under('Audience', [
		['lists', 'manage mailing lists', () => import('./commands/lists.js')],
		['subscribers', 'manage and import the subscribers of a list', () => import('./commands/subscribers.js')],
		['fields', 'manage fields: the variables of subscribers', () => import('./commands/fields.js')],
		['suppressions', 'manage addresses that get no mail', () => import('./commands/suppressions.js')],
	]),
	...under('Sending', [
		['send', 'send a message, or a campaign to a list', () => import('./commands/send.js')],
		['campaigns', 'follow, resume and cancel campaigns', () => import('./commands/campaigns.js')],
		['templates', 'manage message templates', () => import('./commands/templates.js')],
		['senders', 'manage sender addresses', () => import('./commands/senders.js')],
		['messages', 'follow, cancel and retry single messages', () => import('./commands/messages.js')],
	]),
	...under('Results', [
		['webhooks', 'receive events over HTTP', () => import('./commands/webhooks.js')],
		['report', 'show how many messages were sent, opened and bounced', () => import('./commands/report.js')],
		['why', 'explain why a person did not get a mail', () => import('./commands/why.js')],
	]),
	...under('Deployment', [
		['serve', 'serve the API and tracking pages, and send mail', () => import('./commands/serve.js')],
		['smoke', 'check a service in CI', () => import('./commands/smoke.js')],
		['doctor', 'find problems in this set-up, and say how to fix them', () => import('./commands/doctor.js')],
		['worker', 'send queued messages and retries', () => import('./commands/worker.js')],
		['engine', 'administer the local database and its mail server', () => import('./commands/engine.js')],
		[
			'apply',
			'change lists, fields, webhooks and more to match a file',
			of(() => import('./commands/apply.js'), 'apply'),
		],
		['diff', 'show what apply would change', of(() => import('./commands/apply.js'), 'diff')],
	]),
	...under('Set-up', [
		['login', 'store a service and its token as a profile', of(() => import('./commands/login.js'), 'login')],
		['logout', 'remove the token of a profile', of(() => import('./commands/login.js'), 'logout')],
		['profile', 'manage stored services and databases', () => import('./commands/profile.js')],
		['config', 'manage settings of profiles', () => import('./commands/config.js')],
		['completion', 'complete commands and names in a shell', () => import('./commands/completion.js')],
	]),
	...under('Tools', [
		['api', 'make a raw request', () => import('./commands/api.js')],
		['sink', 'run a test mail server that shows what it receives', () => import('./commands/sink.js')],
		[
			'demo',
			'try an import, a send and a report on a temporary database',
			() => import('./commands/demo.js'),
		],
		['commands', 'list all commands, for scripts', () => import('./commands/commands.js')],
		['version', 'show the version', () => import('./commands/version.js')],
		['help', 'show help on a topic or a command', () => import('./commands/help.js')],
	]),
];

function of<K extends string>(load: () => Promise<Record<K, Command>>, name: K) {
	return async () => ({ command: (await load())[name] });
}

function under(
	heading: TreeEntry['heading'],
	entries: readonly (readonly [name: string, summary: string, load: TreeEntry['load']])[],
): TreeEntry[] {
	return entries.map(([name, summary, load]) => ({ name, heading, summary, load }));
}
