/** HTTP notifications: the URLs that are called when a message changes. */

import type { WebhookInput } from '../../api/inputs.js';
import { withoutPassword, withoutSecrets } from '../../api/quote.js';
import { type Webhook, webhookDefaults, webhookTypes } from '../../api/records.js';
import { type CommandGroup, command } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { type Columns, column } from '../render/columns.js';
import { maybeCreated } from '../verbs/changing.js';
import { foresee } from '../verbs/dry-run.js';
import { walk } from '../verbs/listing.js';
import { explained } from '../verbs/refusals.js';
import { assertLogin, authOptions, readAuth, withPassword } from './webhooks/auth.js';
import { deletion } from './webhooks/delete.js';
import { deliveries } from './webhooks/deliveries.js';
import { findWebhook } from './webhooks/find.js';
import { listen } from './webhooks/listen.js';
import { unclearWebhook } from './webhooks/registration.js';
import { replay } from './webhooks/replay.js';
import { secret } from './webhooks/secret.js';
import { readStopped, type Stopped, stateColumn, warnOfStopped } from './webhooks/stopped.js';
import { urlHint } from './webhooks/targets.js';
import { test } from './webhooks/test.js';

const columns: Columns<Webhook> = [
	column('id', 'ID', { align: 'right' }),
	column('type', 'TYPE'),
	column('url', 'URL'),
	column('is_auth_enabled', 'AUTH'),
	column('login', 'LOGIN', { wide: true }),
	column('date_created', 'CREATED', { time: 'text', wide: true }),
];

const allColumns = [...columns, stateColumn(new Map())];
const stateNote =
	'A webhook whose target answered 410 is stopped: the embedded engine and mailctl servers say so, and -o wide and -o ' +
	'csv have its STATE.';

const hookArg = { name: 'id', summary: 'the id of a webhook', of: 'webhook', ask: 'Which webhook:' } as const;
const showSecrets = { kind: 'flag', summary: 'print passwords and secrets in URLs as they are' } as const;

const list = command({
	name: 'list',
	aliases: ['ls'],
	summary: 'list the webhooks',
	description: stateNote,
	options: { showSecrets },
	examples: ['mailctl webhooks list'],
	output: 'an array of webhooks, passwords null, those in a URL `********`',
	columns: allColumns,
	async run(cx, { options }) {
		const api = await cx.api();
		const hooks = walk(api.webhooks, {}, { signal: cx.signal });
		const hidden = { any: false };
		const rows = options.showSecrets ? hooks : masked(cx, hooks, hidden);
		const stopped = await readStopped(cx);
		await cx.out.rows(rows, shown({ ...options, stopped }), { all: true });
		if (hidden.any) await hintSecrets(cx);
		await warnOfStopped(cx, [...(stopped?.values() ?? [])]);
	},
});

const get = command({
	name: 'get',
	summary: 'show one webhook',
	description: stateNote,
	args: [hookArg],
	options: { showSecrets },
	examples: ['mailctl webhooks get 3'],
	output: 'the webhook, its password null, one in its URL `********`',
	exits: [3],
	columns: allColumns,
	async run(cx, { args, options }) {
		const hook = await findWebhook(cx, args.id);
		const stopped = await readStopped(cx);
		await cx.out.record(options.showSecrets ? hook : mask(cx, hook), shown({ ...options, stopped }));
		if (!options.showSecrets && hasSecret(cx, hook)) await hintSecrets(cx);
		const own = stopped?.get(hook.id);
		if (own !== undefined) await warnOfStopped(cx, [own]);
	},
});

const create = command({
	name: 'create',
	summary: 'add a webhook',
	options: {
		url: { kind: 'text', summary: 'where notifications go', required: true, of: 'url', ask: 'URL:' },
		type: { kind: 'choice', choices: webhookTypes, summary: 'the event', required: true, ask: 'Event:' },
		...authOptions,
	},
	examples: ['mailctl webhooks create --url https://hooks.example.com/in --type HARDBOUNCED'],
	output: 'the new webhook, its password null',
	exits: [5],
	writes: true,
	columns,
	async run(cx, { options }) {
		const given = { url: options.url, type: options.type, ...(await readAuth(cx, options)) };
		assertLogin(given);
		const input: WebhookInput = await withPassword(cx, given);
		if (cx.dryRun) {
			const { webhookFields } = await import('../../api/inputs.js');
			const how = { fields: webhookFields, input, mode: 'create', hint: await urlHint(cx) } as const;
			await foresee(cx, (api) => api.webhooks.create(input), how);
			return cx.wouldDo(`create a webhook to ${withoutSecrets(input.url)}`, { create: maskInput(cx, input) });
		}
		const api = await cx.api();
		const creating = explained(api.webhooks.create(input, { signal: cx.signal }), {
			input,
			hint: await urlHint(cx),
		});
		const hook = await maybeCreated(creating, unclearWebhook(input));
		await cx.out.created(mask(cx, hook), columns);
		await hintSecretsOf(cx, hook);
	},
});

const update = command({
	name: 'update',
	summary: 'change a webhook',
	args: [hookArg],
	options: {
		url: { kind: 'text', summary: 'a new URL' },
		type: { kind: 'choice', choices: webhookTypes, summary: 'another event' },
		...authOptions,
		replace: { kind: 'flag', summary: 'PUT: what is not given returns to its default' },
	},
	changes: ['url', 'type', 'login', 'passwordFile', 'passwordStdin', 'auth'],
	examples: ['mailctl webhooks update 3 --url https://hooks.example.com/v2'],
	output: 'the changed webhook, its password null',
	exits: [3, 5],
	writes: true,
	columns,
	async run(cx, { args, options }) {
		const given: Partial<WebhookInput> = {
			...(options.url !== undefined && { url: options.url }),
			...(options.type !== undefined && { type: options.type }),
			...(await readAuth(cx, options)),
		};
		const hook = await findWebhook(cx, args.id);
		assertLogin(given, options.replace ? '' : hook.login);
		// A PUT empties unnamed keys. A deployment that hides its passwords does not show whether one is set.
		const change = options.replace || hook.password === '' ? await withPassword(cx, given) : given;
		// A PUT is sent as given: the service refuses a missing field in its own words.
		const api = await cx.api();
		const write = () =>
			options.replace
				? api.webhooks.replace(hook.id, change as WebhookInput, { signal: cx.signal })
				: api.webhooks.patch(hook.id, change, { signal: cx.signal });
		const told = { input: change, hint: await urlHint(cx) };
		if (cx.dryRun) {
			const { webhookFields } = await import('../../api/inputs.js');
			await foresee(cx, write, {
				...told,
				fields: webhookFields,
				mode: options.replace ? 'create' : 'patch',
			});
			const sent = options.replace ? { ...webhookDefaults, ...change } : change;
			return cx.wouldDo(`change webhook ${hook.id}`, { update: hook.id, with: maskInput(cx, sent) });
		}
		const changed = await explained(write(), told);
		await cx.out.record(mask(cx, changed), columns);
		await hintSecretsOf(cx, changed);
	},
});

export const group: CommandGroup = {
	name: 'webhooks',
	summary: 'HTTP notifications of what happens to messages',
	examples: [
		'mailctl webhooks create --url https://hooks.example.com/in --type HARDBOUNCED',
		'mailctl webhooks listen --register --type HARDBOUNCED --once --wait 2m -o json',
		'mailctl webhooks deliveries 3 --state failed',
	],
	commands: [list, get, create, update, deletion, test, listen, deliveries, replay, secret],
};

type Masked = Omit<Webhook, 'password'> & { password: string | null };

function mask(cx: CommandContext, hook: Webhook): Webhook {
	// The screen always shows null for a password: the column type is the wire's.
	return { ...hook, url: maskUrl(cx, hook.url), password: null } as Masked as Webhook;
}

function maskInput(cx: CommandContext, { url, ...input }: Partial<WebhookInput>): object {
	return {
		...(url !== undefined && { url: maskUrl(cx, url) }),
		...input,
		...('password' in input && { password: null }),
	};
}

/** A password is shown nowhere; what else in a URL is a secret, to programs, which know a webhook by its URL. */
function maskUrl({ out }: CommandContext, url: string): string {
	const isForPeople = ['table', 'wide', 'markdown'].includes(out.format);
	return isForPeople ? withoutSecrets(url) : withoutPassword(url);
}

function hasSecret(cx: CommandContext, { url, password }: Webhook): boolean {
	return password !== '' || maskUrl(cx, url) !== url;
}

/** Records in `hidden` whether a secret was hidden. */
async function* masked(
	cx: CommandContext,
	hooks: AsyncIterable<Webhook>,
	hidden: { any: boolean },
): AsyncGenerator<Webhook> {
	for await (const hook of hooks) {
		hidden.any ||= hasSecret(cx, hook);
		yield mask(cx, hook);
	}
}

interface Showing {
	showSecrets: boolean;
	/** null: this deployment does not say. */
	stopped: Stopped | null;
}

function shown({ showSecrets, stopped }: Showing): Columns<Webhook> {
	return [
		...columns,
		...(stopped === null ? [] : [stateColumn(stopped)]),
		...(showSecrets ? [column<Webhook, 'password'>('password', 'PASSWORD')] : []),
	];
}

/** For commands without `--show-secrets`. */
async function hintSecretsOf(cx: CommandContext, hook: Webhook): Promise<void> {
	const command = mailctl('webhooks', 'get', String(hook.id), '--show-secrets');
	if (hasSecret(cx, hook)) await cx.hint(['secrets are hidden; ', command, ' prints them']);
}

function hintSecrets(cx: CommandContext): Promise<void> {
	return cx.hint('secrets are hidden; --show-secrets prints them');
}
