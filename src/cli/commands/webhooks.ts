/** HTTP notifications: who is told when something happens to a message. */
import type { WebhookInput } from '../../api/inputs.js';
import { type Webhook, webhookTypes } from '../../api/records.js';
import { assertChange } from '../change.js';
import { type CommandGroup, command, type FileSource } from '../command.js';
import type { CommandContext } from '../context.js';
import { UsageError } from '../errors.js';
import { explained } from '../refusals.js';
import { type Columns, column } from '../render/columns.js';
import { walk } from '../walk.js';
import { deliveries } from './webhooks/deliveries.js';
import { findWebhook } from './webhooks/find.js';
import { listen } from './webhooks/listen.js';
import { replay } from './webhooks/replay.js';
import { secret } from './webhooks/secret.js';
import { urlHint } from './webhooks/targets.js';
import { test } from './webhooks/test.js';

const columns: Columns<Webhook> = [
	column('id', 'ID', { align: 'right' }),
	column('type', 'TYPE'),
	column('url', 'URL'),
	column('is_auth_enabled', 'AUTH'),
	column('login', 'LOGIN', { wide: true }),
	column('date_created', 'CREATED', { wide: true }),
];

const hookArg = { name: 'id', summary: 'the id of a webhook' } as const;
const showSecrets = { kind: 'flag', summary: 'print passwords as they are' } as const;

const auth = {
	login: { kind: 'text', summary: 'user name of HTTP authorization; means --auth' },
	passwordFile: { kind: 'file', summary: 'read the password from a file' },
	passwordStdin: { kind: 'flag', summary: 'read the password from standard input' },
	auth: { kind: 'tri', summary: 'use HTTP authorization, or not' },
} as const;

const list = command({
	name: 'list',
	aliases: ['ls'],
	summary: 'list the webhooks',
	options: { showSecrets },
	examples: ['mailctl webhooks list'],
	output: 'an array of webhooks, passwords null',
	columns,
	async run(cx, { options }) {
		const api = await cx.api();
		const hooks = walk(api.webhooks, {}, { signal: cx.signal });
		const hidden = { any: false };
		const rows = options.showSecrets ? hooks : masked(hooks, hidden);
		await cx.out.rows(rows, shown(options.showSecrets), { all: true });
		if (hidden.any) await hintSecrets(cx);
	},
});

const get = command({
	name: 'get',
	summary: 'show one webhook',
	args: [hookArg],
	options: { showSecrets },
	examples: ['mailctl webhooks get 3'],
	output: 'the webhook, its password null',
	exits: [3],
	columns,
	async run(cx, { args, options }) {
		const hook = await findWebhook(cx, args.id);
		await cx.out.record(options.showSecrets ? hook : mask(hook), shown(options.showSecrets));
		if (!options.showSecrets && hook.password !== '') await hintSecrets(cx);
	},
});

const create = command({
	name: 'create',
	summary: 'add a webhook',
	options: {
		url: { kind: 'text', summary: 'where notifications go', required: true, ask: 'URL' },
		type: { kind: 'choice', choices: webhookTypes, summary: 'the event', required: true, ask: 'Type' },
		...auth,
	},
	examples: ['mailctl webhooks create --url https://hooks.example.com/in --type HARDBOUNCED'],
	output: 'the new webhook, its password null',
	exits: [5],
	writes: true,
	columns,
	async run(cx, { options }) {
		const input: WebhookInput = { url: options.url, type: options.type, ...(await readAuth(cx, options)) };
		if (cx.dryRun) return cx.wouldDo(`create a webhook to ${input.url}`, maskInput(input));
		const api = await cx.api();
		await cx.out.created(
			mask(await explained(api.webhooks.create(input), { input, hint: await urlHint(cx) })),
			columns,
		);
	},
});

const update = command({
	name: 'update',
	summary: 'change a webhook',
	args: [hookArg],
	options: {
		url: { kind: 'text', summary: 'a new URL' },
		type: { kind: 'choice', choices: webhookTypes, summary: 'another event' },
		...auth,
		replace: { kind: 'flag', summary: 'PUT: what is not given returns to its default' },
	},
	examples: ['mailctl webhooks update 3 --url https://hooks.example.com/v2'],
	output: 'the changed webhook, its password null',
	exits: [3, 5],
	writes: true,
	columns,
	async run(cx, { args, options }) {
		const change: Partial<WebhookInput> = {
			...(options.url !== undefined && { url: options.url }),
			...(options.type !== undefined && { type: options.type }),
			...(await readAuth(cx, options)),
		};
		assertChange(change, ['--url', '--type', '--login', '--password-file', '--auth']);
		const hook = await findWebhook(cx, args.id);
		if (cx.dryRun) return cx.wouldDo(`change webhook ${hook.id}`, { ...mask(hook), ...maskInput(change) });
		// A PUT is sent as it was given: what is missing is refused by the service, in its own words.
		const api = await cx.api();
		const changed = options.replace
			? api.webhooks.replace(hook.id, change as WebhookInput)
			: api.webhooks.patch(hook.id, change);
		await cx.out.record(mask(await explained(changed, { input: change, hint: await urlHint(cx) })), columns);
	},
});

const remove = command({
	name: 'delete',
	aliases: ['rm'],
	summary: 'delete a webhook',
	args: [hookArg],
	examples: ['mailctl webhooks delete 3 --yes'],
	output: '{"deleted": [ids]}',
	exits: [3],
	writes: true,
	severity: 'mild',
	async run(cx, { args }) {
		const hook = await findWebhook(cx, args.id);
		if (cx.dryRun) return cx.wouldDo(`delete the webhook to ${hook.url}`, { deleted: [hook.id] });
		await cx.confirm({ kind: 'mild', what: `delete the ${hook.type} webhook to ${hook.url}` });
		await (await cx.api()).webhooks.delete(hook.id);
		await cx.out.document({ deleted: [hook.id] }, `deleted webhook ${hook.id}`);
	},
});

export const group: CommandGroup = {
	name: 'webhooks',
	summary: 'HTTP notifications of what happens to messages',
	commands: [list, get, create, update, remove, test, listen, deliveries, replay, secret],
};

type Masked = Omit<Webhook, 'password'> & { password: string | null };

function mask(hook: Webhook): Webhook {
	// On the screen the password is null whatever it is: the column type is the wire's.
	return { ...hook, password: null } as Masked as Webhook;
}

function maskInput(input: Partial<WebhookInput>): object {
	return 'password' in input ? { ...input, password: null } : input;
}

/** Notes whether there was anything to hide. */
async function* masked(hooks: AsyncIterable<Webhook>, hidden: { any: boolean }): AsyncGenerator<Webhook> {
	for await (const hook of hooks) {
		hidden.any ||= hook.password !== '';
		yield mask(hook);
	}
}

function shown(reveal: boolean): Columns<Webhook> {
	return reveal ? [...columns, column('password', 'PASSWORD')] : columns;
}

function hintSecrets(cx: CommandContext): Promise<void> {
	return cx.hint('passwords are hidden; --show-secrets prints them');
}

interface AuthOptions {
	login?: string | undefined;
	passwordFile?: FileSource | undefined;
	passwordStdin: boolean;
	auth?: boolean | undefined;
}

/** Only what was given: an update never sends a password nobody typed. A login means authorization. */
async function readAuth(cx: CommandContext, options: AuthOptions): Promise<Partial<WebhookInput>> {
	if (options.passwordFile !== undefined && options.passwordStdin) {
		throw new UsageError('--password-file and --password-stdin both name a password; give one');
	}
	const source = options.passwordStdin
		? await cx.sources.file('-', '--password-stdin').text()
		: await options.passwordFile?.text();
	// The line end is the file's, not the password's.
	const password = source?.replace(/\r?\n$/, '');
	const enabled = options.auth ?? (options.login === undefined ? undefined : true);
	return {
		...(enabled !== undefined && { is_auth_enabled: enabled }),
		...(options.login !== undefined && { login: options.login }),
		...(password !== undefined && { password }),
	};
}
