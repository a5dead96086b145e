/** HTTP notifications: the URLs that are called when a message changes. */

import { need } from '../../api/capabilities.js';
import type { SigningSecret } from '../../api/deliveries.js';
import type { WebhookInput } from '../../api/inputs.js';
import { withoutSecrets } from '../../api/quote.js';
import { type Webhook, webhookDefaults, webhookTypes } from '../../api/records.js';
import { type CommandGroup, command, type OptionValues } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { answer, type Columns, column } from '../render/columns.js';
import { agreeToAll, deleteEach, findEach, nameOrCount } from '../verbs/bulk.js';
import { maybeCreated } from '../verbs/changing.js';
import { foresee } from '../verbs/dry-run.js';
import { walk } from '../verbs/listing.js';
import { explained } from '../verbs/refusals.js';
import { deliveries, replay } from './webhooks/deliveries.js';
import { listen } from './webhooks/listen.js';
import {
	hookColumns as columns,
	findWebhook,
	hasSecret,
	hookArg,
	mask,
	maskInput,
	readStopped,
	type Stopped,
	stateColumn,
	unclearWebhook,
	urlHint,
	warnOfStopped,
} from './webhooks/record.js';
import { test } from './webhooks/test.js';

const allColumns = [...columns, stateColumn(new Map())];
const stateNote =
	'A webhook whose target answered 410 is stopped: the embedded engine and mailctl servers say so, and -o wide and -o ' +
	'csv have its STATE.';

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
		let isHidden = false;
		async function* rows() {
			for await (const hook of walk(api.webhooks, {}, { signal: cx.signal })) {
				isHidden ||= !options.showSecrets && hasSecret(cx, hook);
				yield options.showSecrets ? hook : mask(cx, hook);
			}
		}
		const stopped = await readStopped(cx);
		await cx.out.rows(rows(), shownColumns(options.showSecrets, stopped), { all: true });
		if (isHidden) await cx.hint('secrets are hidden; --show-secrets prints them');
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
		const shown = options.showSecrets ? hook : mask(cx, hook);
		await cx.out.record(shown, shownColumns(options.showSecrets, stopped));
		if (!options.showSecrets && hasSecret(cx, hook))
			await cx.hint('secrets are hidden; --show-secrets prints them');
		const own = stopped?.get(hook.id);
		if (own !== undefined) await warnOfStopped(cx, [own]);
	},
});

function shownColumns(withSecrets: boolean, stopped: Stopped | null): Columns<Webhook> {
	return [
		...columns,
		...(stopped === null ? [] : [stateColumn(stopped)]),
		...(withSecrets ? [column<Webhook, 'password'>('password', 'PASSWORD')] : []),
	];
}

const authOptions = {
	login: { kind: 'text', summary: 'user name of HTTP authorization; means --auth, wants a password' },
	passwordFile: { kind: 'file', summary: 'read the password from a file' },
	passwordStdin: { kind: 'flag', summary: 'read the password from standard input' },
	auth: { kind: 'tri', summary: 'use HTTP authorization, or not' },
} as const;

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
		const refusal = { input, hint: await urlHint(cx) };
		if (cx.dryRun) {
			const { webhookFields: fields } = await import('../../api/inputs.js');
			await foresee(cx, (api) => api.webhooks.create(input), { ...refusal, fields, mode: 'create' });
			return cx.wouldDo(`create a webhook to ${withoutSecrets(input.url)}`, { create: maskInput(cx, input) });
		}
		const { webhooks } = await cx.api();
		const creating = explained(webhooks.create(input, { signal: cx.signal }), refusal);
		const hook = await maybeCreated(creating, unclearWebhook(input));
		await cx.out.created(mask(cx, hook), columns);
		await hintSecrets(cx, hook);
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
		const { url, type, replace } = options;
		const auth = await readAuth(cx, options);
		const given = { ...(url !== undefined && { url }), ...(type !== undefined && { type }), ...auth };
		const hook = await findWebhook(cx, args.id);
		assertLogin(given, replace ? '' : hook.login);
		// A PUT empties unnamed keys. A deployment that hides its passwords does not show whether one is set.
		const change = replace || hook.password === '' ? await withPassword(cx, given) : given;
		const { webhooks } = await cx.api();
		// A PUT is sent as given: the service refuses a missing field in its own words.
		const write = () =>
			replace
				? webhooks.replace(hook.id, change as WebhookInput, { signal: cx.signal })
				: webhooks.patch(hook.id, change, { signal: cx.signal });
		const refusal = { input: change, hint: await urlHint(cx) };
		if (cx.dryRun) {
			const { webhookFields: fields } = await import('../../api/inputs.js');
			await foresee(cx, write, { ...refusal, fields, mode: replace ? 'create' : 'patch' });
			const sent = maskInput(cx, replace ? { ...webhookDefaults, ...change } : change);
			return cx.wouldDo(`change webhook ${hook.id}`, { update: hook.id, with: sent });
		}
		const changed = await explained(write(), refusal);
		await cx.out.record(mask(cx, changed), columns);
		await hintSecrets(cx, changed);
	},
});

const deletion = command({
	name: 'delete',
	aliases: ['rm'],
	summary: 'delete webhooks',
	description: 'What waits for them is never sent.',
	args: [{ ...hookArg, summary: 'ids of webhooks', many: true }],
	examples: ['mailctl webhooks delete 3 --yes'],
	columns: answer('deleted'),
	output: '{"deleted": [ids]}',
	exits: [3, 9],
	writes: true,
	severity: 'mild',
	async run(cx, { args }): Promise<ExitCode> {
		const hooks = await findEach(args.id, (text) => findWebhook(cx, text));
		const names = hooks.map(({ type, url }) => `the ${type} webhook to ${withoutSecrets(url)}`);
		const what = `delete ${nameOrCount(names, 'webhooks')}`;
		if (cx.dryRun) {
			await cx.wouldDo(what, { delete: hooks.map(({ id }) => id) });
			return exits.done;
		}
		await agreeToAll(cx, { what, count: hooks.length, few: 'ask' });
		const { webhooks } = await cx.api();
		const remove = ({ id }: Webhook) => webhooks.delete(id, { signal: cx.signal });
		return deleteEach(cx, hooks, { noun: 'webhook', remove });
	},
});

const secretColumns: Columns<SigningSecret> = [
	column('secret', 'SECRET', { isName: true, isWhole: true }),
	column('date_created', 'CREATED', { time: 'text' }),
	column('date_retired', 'SIGNS UNTIL', { time: 'text' }),
];

const secret = command({
	name: 'secret',
	summary: 'print the secret that signs notifications, or make a new one',
	description:
		'Notifications are signed by Standard Webhooks; one secret signs those of all webhooks. After --rotate the one ' +
		'before signs too, for 24 hours: give the new one to every receiver in that time.',
	args: [{ name: 'id', summary: 'the id of a webhook; any of them has this secret', optional: true }],
	options: { rotate: { kind: 'flag', summary: 'make a new secret' } },
	examples: ['mailctl webhooks secret -o name', 'mailctl webhooks secret --rotate'],
	output: 'an array of secrets, newest first: {"secret", "date_created", "date_retired"}',
	exits: [3],
	writes: true,
	columns: secretColumns,
	async run(cx, { args, options: { rotate } }) {
		const log = await need(await cx.api(), 'deliveries');
		if (args.id !== undefined) await findWebhook(cx, args.id);
		if (rotate && cx.dryRun) return cx.wouldDo('make a new secret for notifications', { rotate: 'secret' });
		const call = { signal: cx.signal };
		let secrets = await log.secrets(call);
		if (rotate) {
			// At most two sign: a target that does not have the newer one yet would refuse every notification.
			const until = secrets[1]?.date_retired ?? null;
			const what = `drop the secret that was to sign until ${until}: receivers that still have it refuse what comes`;
			if (until !== null) await cx.confirm({ kind: 'mild', what });
			secrets = await log.rotateSecret(call);
		}
		await cx.out.rows(secrets, secretColumns, { all: true });
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

/** Only the given values: an update never sends a password that was not given. A login means authorization. */
async function readAuth(
	cx: CommandContext,
	{ login, passwordFile, passwordStdin, auth }: OptionValues<typeof authOptions>,
): Promise<Partial<WebhookInput>> {
	if (passwordFile !== undefined && passwordStdin)
		throw new UsageError('--password-file and --password-stdin both name a password; give one');
	const source = passwordStdin ? cx.sources.file('-', '--password-stdin') : passwordFile;
	// The line end is the file's, not the password's.
	const password = (await source?.text())?.replace(/\r?\n$/, '');
	const enabled = auth ?? (login === undefined ? undefined : true);
	return {
		...(enabled !== undefined && { is_auth_enabled: enabled }),
		...(login !== undefined && { login }),
		...(password !== undefined && { password }),
	};
}

/** Throws `UsageError` where authorization is turned on without a login; `known`: that of the webhook. */
function assertLogin({ is_auth_enabled, login }: Partial<WebhookInput>, known = ''): void {
	if (is_auth_enabled === true && (login ?? known) === '')
		throw new UsageError('--auth without --login: HTTP authorization needs a user name', {
			hint: '--login NAME --password-file FILE',
		});
}

/** A login needs a password, since its target would refuse every notification: a person is asked for it. */
async function withPassword<I extends Partial<WebhookInput>>(
	cx: CommandContext,
	input: I,
): Promise<I & Partial<WebhookInput>> {
	const { login = '', is_auth_enabled, password } = input;
	if (login === '' || is_auth_enabled === false || password !== undefined) return input;
	if (cx.canAsk) return { ...input, password: await cx.askSecret(`Password of ${login}:`) };
	throw new UsageError('missing --password-file or --password-stdin: the password that goes with --login', {
		hint: 'one that is empty: --password-stdin < /dev/null',
	});
}

/** For commands without `--show-secrets`. */
async function hintSecrets(cx: CommandContext, hook: Webhook): Promise<void> {
	const command = mailctl('webhooks', 'get', String(hook.id), '--show-secrets');
	if (hasSecret(cx, hook)) await cx.hint(['secrets are hidden; ', command, ' prints them']);
}
