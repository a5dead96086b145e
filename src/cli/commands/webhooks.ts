import { need } from '../../api/capabilities.js';
import type { SigningSecret } from '../../api/deliveries.js';
import type { WebhookInput } from '../../api/inputs.js';
import { withoutSecrets } from '../../api/quote.js';
import { type Webhook, webhookDefaults, webhookTypes } from '../../api/records.js';
import { type CommandGroup, command, type OptionValues } from '../frame/command.js';
import { type Hint, mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { given } from '../frame/values.js';
import { answers, type Columns, column } from '../render/columns.js';
import {
	agreeToAll,
	change,
	create as createRecord,
	deleteEach,
	findEach,
	nameOrCount,
} from '../verbs/changing.js';
import { mapped, walk } from '../verbs/listing.js';
import { missing, orNull } from '../verbs/resolve.js';
import { deliveries, replay } from './webhooks/deliveries.js';
import { listen } from './webhooks/listen.js';
import {
	hookColumns as columns,
	findWebhook,
	hookArg,
	idOf,
	mask,
	maskInput,
	sentenceOf,
	stateColumn,
} from './webhooks/record.js';

const allColumns = [...columns, stateColumn(new Set())];
const stateNote =
	'A webhook stops when its target answers 410, and the column STATE of -o wide and -o csv shows this. To start a ' +
	'stopped webhook again, run "webhooks replay".';

const showSecrets = { kind: 'flag', summary: 'show passwords and secrets in URLs' } as const;
const hiddenPassword: Hint = [
	'passwords are hidden; ',
	mailctl('webhooks', 'get', 'ID', '--show-secrets'),
	' prints one',
];

const list = command({
	name: 'list',
	summary: 'list webhooks',
	description: stateNote,
	options: { showSecrets },
	examples: ['mailctl webhooks list'],
	output: 'an array of webhooks; passwords are null, and passwords in URLs are `********`',
	columns: allColumns,
	async run(cx, { options }) {
		const { showSecrets } = options;
		const hooks = walk((await cx.api()).webhooks, {}, { signal: cx.signal });
		let isHidden = false;
		const rows = mapped(hooks, (hook) => {
			isHidden ||= !showSecrets && Boolean(hook.password);
			return showSecrets ? hook : mask(cx, hook);
		});
		await cx.out.rows(rows, await shownColumns(cx, showSecrets), { all: true });
		if (isHidden) await cx.hint(hiddenPassword);
	},
});

const get = command({
	name: 'get',
	summary: 'show one webhook',
	description: stateNote,
	args: [hookArg],
	options: { showSecrets },
	examples: ['mailctl webhooks get 3'],
	output: 'the webhook; its password is null, and a password in its URL is `********`',
	exits: [3],
	columns: allColumns,
	async run(cx, { args, options }) {
		const hook = await findWebhook(cx, args.id);
		const shown = options.showSecrets ? hook : mask(cx, hook);
		await cx.out.record(shown, await shownColumns(cx, options.showSecrets));
		if (!options.showSecrets && hook.password) await cx.hint(hiddenPassword);
	},
});

/** Adds the column STATE if the service reports stopped webhooks. JSON has only the keys of the service document. */
async function shownColumns(cx: CommandContext, withSecrets: boolean): Promise<Columns<Webhook>> {
	const { deliveries } = (await (await cx.api()).capabilities()).ext;
	const stopped = deliveries && (await orNull(deliveries.stopped({ signal: cx.signal })));
	return [
		...columns,
		...(stopped ? [stateColumn(new Set(stopped.map(({ webhook_id }) => webhook_id)))] : []),
		...(withSecrets ? [column<Webhook, 'password'>('password', 'PASSWORD')] : []),
	];
}

const authOptions = {
	login: { kind: 'text', summary: 'set the user name for basic authentication; needs a password' },
	passwordFile: { kind: 'file', summary: 'read the password from a file' },
	passwordStdin: { kind: 'flag', summary: 'read the password from standard input' },
	auth: { kind: 'tri', summary: 'use basic authentication' },
} as const;

const create = command({
	name: 'create',
	summary: 'add a webhook',
	options: {
		url: { kind: 'text', summary: 'set the URL', required: true, of: 'url', ask: 'URL:' },
		type: { kind: 'choice', choices: webhookTypes, summary: 'set the event', required: true, ask: 'Event:' },
		...authOptions,
	},
	examples: ['mailctl webhooks create --url https://hooks.example.com/in --type HARDBOUNCED'],
	output: 'the new webhook; its password is null',
	exits: [5],
	writes: true,
	columns,
	async run(cx, { options }) {
		const wanted = { url: options.url, type: options.type, ...(await readAuth(cx, options)) };
		assertLogin(wanted);
		const input: WebhookInput = await withPassword(cx, wanted);
		const hook = await createRecord(cx, {
			what: `create a webhook to ${withoutSecrets(input.url)}`,
			plan: { create: maskInput(cx, input) },
			input,
			make: ({ webhooks }) => webhooks.create(input, { signal: cx.signal }),
		});
		if (hook === null) return;
		await cx.out.created(mask(cx, hook), columns);
		if (hook.password) await cx.hint(hiddenPassword);
	},
});

const update = command({
	name: 'update',
	summary: 'change a webhook',
	args: [hookArg],
	options: {
		url: { kind: 'text', summary: 'change the URL' },
		type: { kind: 'choice', choices: webhookTypes, summary: 'change the event' },
		...authOptions,
		replace: { kind: 'flag', summary: 'send PUT: missing values return to their defaults' },
	},
	changes: ['url', 'type', 'login', 'passwordFile', 'passwordStdin', 'auth'],
	examples: ['mailctl webhooks update 3 --url https://hooks.example.com/v2'],
	output: 'the changed webhook; its password is null',
	exits: [3, 5],
	writes: true,
	columns,
	async run(cx, { args, options }) {
		const { url, type, replace } = options;
		const auth = await readAuth(cx, options);
		const changes = { ...given({ url, type }), ...auth };
		const hook = await findWebhook(cx, args.id);
		assertLogin(changes, replace ? '' : hook.login);
		// Ask only if PUT would clear the old password or the webhook has none (''). Null may hide a password.
		const input = replace || hook.password === '' ? await withPassword(cx, changes) : changes;
		const changed = await change(cx, {
			what: `change webhook ${hook.id}`,
			plan: { update: hook.id, with: maskInput(cx, replace ? { ...webhookDefaults, ...input } : input) },
			input,
			make: ({ webhooks }) =>
				replace
					? webhooks.replace(hook.id, input as WebhookInput, { signal: cx.signal })
					: webhooks.patch(hook.id, input, { signal: cx.signal }),
		});
		if (changed === null) return;
		await cx.out.record(mask(cx, changed), columns);
		if (changed.password) await cx.hint(hiddenPassword);
	},
});

const deletion = command({
	name: 'delete',
	summary: 'delete webhooks',
	description: 'Waiting notifications of these webhooks are not sent.',
	args: [{ ...hookArg, summary: 'ids of webhooks', many: true }],
	examples: ['mailctl webhooks delete 3 --yes'],
	...answers({ deleted: '[ids]' }),
	exits: [3, 9],
	writes: true,
	severity: 'mild',
	async run(cx, { args }) {
		const hooks = await findEach(args.id, (text) => findWebhook(cx, text));
		const names = hooks.map(({ type, url }) => `the ${type} webhook to ${withoutSecrets(url)}`);
		const what = `delete ${nameOrCount(names, 'webhooks')}`;
		if (cx.dryRun) return cx.wouldDo(what, { delete: hooks.map(({ id }) => id) });
		await agreeToAll(cx, { what, count: hooks.length, few: 'ask' });
		const { webhooks } = await cx.api();
		return deleteEach(cx, hooks, 'webhook', ({ id }) => webhooks.delete(id, { signal: cx.signal }));
	},
});

const test = command({
	name: 'test',
	summary: 'send a test notification',
	description:
		'Sends one notification at once. It is not repeated, and `webhooks deliveries` does not list it. A 2xx is success.',
	args: [hookArg],
	examples: ['mailctl webhooks test 3'],
	columns: answers(['result', 'status_code', 'error', 'duration_ms']).columns,
	output: 'the response of the service; from mailctl: {"result", "status_code", "error", "duration_ms"}',
	exits: [3, 9],
	writes: true,
	async run(cx, { args }): Promise<ExitCode> {
		const id = idOf(args.id);
		if (cx.dryRun) {
			await findWebhook(cx, args.id);
			await cx.wouldDo(`send a test notification to webhook ${id}`, { test: id });
			return exits.done;
		}
		const { webhooks } = await cx.api();
		const result = await orNull(webhooks.test(id, { signal: cx.signal }));
		if (result === null) throw missing('webhook', args.id, mailctl('webhooks', 'list'));
		await cx.out.document(result, sentenceOf(result));
		// The service document does not define this answer, so only an explicit `false` means that the target refused.
		return result.result === false ? exits.partly : exits.done;
	},
});

const secretColumns: Columns<SigningSecret> = [
	column('secret', 'SECRET', { isName: true, isWhole: true }),
	column('date_created', 'CREATED', { time: 'text' }),
	column('date_retired', 'SIGNS UNTIL', { time: 'text' }),
];

const secret = command({
	name: 'secret',
	summary: 'show the secret that signs notifications, or make a new one',
	description:
		'One secret signs the notifications of all webhooks (Standard Webhooks). After --rotate the old secret also signs ' +
		'for 24 hours: give every receiver the new secret in that time.',
	args: [{ name: 'id', summary: 'the id of any webhook: all of them have the same secret', optional: true }],
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
			// At most two secrets sign notifications. A rotation drops the older one, which some receivers may still use.
			const until = secrets[1]?.date_retired ?? null;
			const what = `drop the older secret, valid until ${until}: receivers that still use it will refuse notifications`;
			if (until !== null) await cx.confirm({ kind: 'mild', what });
			secrets = await log.rotateSecret(call);
		}
		await cx.out.rows(secrets, secretColumns, { all: true });
	},
});

export const group: CommandGroup = {
	name: 'webhooks',
	summary: 'receive events over HTTP',
	examples: [
		'mailctl webhooks create --url https://hooks.example.com/in --type HARDBOUNCED',
		'mailctl webhooks listen --register --type HARDBOUNCED --once --wait 2m -o json',
		'mailctl webhooks deliveries 3 --state failed',
	],
	commands: [list, get, create, update, deletion, test, listen, deliveries, replay, secret],
};

/** Returns only the values that the user gave, so that an update keeps the others. A login enables authentication. */
async function readAuth(cx: CommandContext, options: OptionValues<typeof authOptions>) {
	const { login, passwordFile, passwordStdin, auth } = options;
	if (passwordFile !== undefined && passwordStdin)
		throw new UsageError('use either --password-file or --password-stdin, not both');
	const source = passwordStdin ? cx.sources.file('-', '--password-stdin') : passwordFile;
	const password = (await source?.text())?.replace(/\r?\n$/, '');
	const enabled = auth ?? (login === undefined ? undefined : true);
	return given({ is_auth_enabled: enabled, login, password });
}

function assertLogin({ is_auth_enabled, login }: Partial<WebhookInput>, known = ''): void {
	if (is_auth_enabled === true && (login ?? known) === '')
		throw new UsageError('--auth needs a login', { hint: '--login NAME --password-file FILE' });
}

/** Asks a person for a missing password, because a target refuses every notification with a login but no password. */
async function withPassword<I extends Partial<WebhookInput>>(cx: CommandContext, input: I) {
	const { login = '', is_auth_enabled, password } = input;
	if (login === '' || is_auth_enabled === false || password !== undefined) return input;
	if (cx.canAsk) return { ...input, password: await cx.askSecret(`Password of ${login}:`) };
	throw new UsageError('--login needs --password-file or --password-stdin');
}
