/** `mailctl webhooks listen`: receives notifications on this machine, checks them, prints them, hands them on. */

import type { Api } from '../../../api/api.js';
import { microsPerMs } from '../../../api/datetime.js';
import { shownUrl } from '../../../api/quote.js';
import { type Webhook, webhookTypes } from '../../../api/records.js';
import { canParseUrl } from '../../../api/schema/url.js';
import { command, type FileSource } from '../../frame/command.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { isMachine } from '../../frame/globals.js';
import { clean } from '../../render/clean.js';
import { type Columns, column } from '../../render/columns.js';
import { cannotListen, createInbox, type Inbox, showArrivals } from '../../verbs/inbox.js';
import type { Received, Receiver } from './receiver.js';
import { nameLeftovers, register, temporaryUrl, unregister } from './registration.js';
import { agreeToPrivateTargets } from './targets.js';
import { hintTarget, sentenceOf } from './test.js';

const columns: Columns<Received> = [
	column('id', 'ID', { isName: true, isWhole: true }),
	column('type', 'TYPE'),
	column('verified', 'VERIFIED'),
	column('forwarded', 'FORWARDED', { align: 'right' }),
	{ key: 'to', header: 'TO', value: ({ body }: Received) => recipientOf(body) },
	column('refused', 'REFUSED', { wide: true }),
	{ key: 'body', header: 'BODY', wide: true, value: ({ body }: Received) => JSON.stringify(body) },
];

export const listen = command({
	name: 'listen',
	summary: 'receive notifications on this machine: check, print and forward them',
	description:
		'Answers 204, or 401 to what the secret did not sign, or what --forward-to answered. The secret is that of the ' +
		'deployment, if it is ours, or comes from --secret-file; without one nothing is checked. With --register a ' +
		'temporary webhook of each --type is made, and removed in the end, on Ctrl-C too; those that a killed run has left ' +
		'are named by the next one, unless they had a --url. A deployment sends to this machine while its setting ' +
		'allow_private_webhooks is true: --register sets it after a yes, in a database of this machine, and in the default ' +
		'one where the deployment serves that.',
	options: {
		port: {
			kind: 'integer',
			min: 0,
			max: 65_535,
			default: 0,
			summary: 'the port on 127.0.0.1; 0 takes a free one',
		},
		forwardTo: {
			kind: 'text',
			summary: 'hand each one on to this URL, and answer what it answers',
			placeholder: 'URL',
		},
		register: { kind: 'flag', summary: 'make a temporary webhook that leads here' },
		type: {
			kind: 'choices',
			choices: webhookTypes,
			summary: 'with --register: of these events (default: all)',
		},
		test: { kind: 'flag', summary: 'with --register: have the deployment send a test notification at once' },
		url: {
			kind: 'text',
			summary: 'with --register: the URL that leads here from the deployment',
			placeholder: 'URL',
		},
		secretFile: { kind: 'file', summary: 'the secret (whsec_…) to check signatures with' },
		once: { kind: 'flag', summary: 'end after the first notification' },
		wait: { kind: 'duration', summary: 'end after so long; exit 12 when nothing came' },
	},
	examples: [
		'mailctl webhooks listen --register --test --once',
		'mailctl webhooks listen --port 8080',
		'mailctl webhooks listen --register --type HARDBOUNCED --once --wait 2m -o json',
		'mailctl webhooks listen --forward-to http://127.0.0.1:3000/hooks',
	],
	output: 'an array of {"id", "type", "verified", "refused", "forwarded", "body"}; with --once of one',
	exits: [5, 9, 12, 130],
	writes: true,
	columns,
	async run(cx, { options }) {
		const forwardTo = options.forwardTo === undefined ? null : webUrl(options.forwardTo, '--forward-to');
		const publicUrl = options.url === undefined ? null : webUrl(options.url, '--url');
		assertRegisters(options);
		const api = await cx.api();
		const secret = await givenSecret(options.secretFile);
		if (cx.dryRun) {
			const { port, register, type, test } = options;
			return cx.wouldDo('listen for notifications', {
				listen: port,
				with: { register, type, ...(test && { test }) },
			});
		}
		const takeBack = options.register && publicUrl === null ? await agreeToPrivateTargets(cx) : null;
		const secrets = await secretsOf(cx, api, secret);
		const { once, wait } = options;
		const inbox = createInbox<Received>(cx, {
			...{ most: once ? 1 : undefined, wait },
			counts: ({ refused }) => refused === null,
		});
		const receiver = await open({ cx, port: options.port, secrets, forwardTo, inbox });
		const made: Webhook[] = [];
		try {
			await cx.note(`listening on ${receiver.url}`);
			if (options.register) {
				await nameLeftovers(cx, new URL(receiver.url).port);
				const url = publicUrl?.href ?? temporaryUrl(receiver.url);
				const types = options.type.length > 0 ? options.type : webhookTypes;
				await register(cx, { url, types, made }).catch(async (error: unknown) => {
					await takeBack?.();
					throw error;
				});
				if (options.test) await sendTest(cx, made, inbox);
				else await hintTest(cx, made);
				if (!(options.test && once)) await hintSender(cx);
			} else
				await cx.hint(
					`only a webhook whose URL leads to ${receiver.url} is received here; --register makes one for as long as this runs, and --test with it sends a test`,
				);
			await showArrivals(cx, inbox, { columns, lineOf });
		} finally {
			// Whatever ended it, a signal too: the calls are not the command's own.
			await unregister(cx, api, made);
			await receiver.close();
		}
		if (cx.signal.aborted) throw cx.signal.reason;
		if (inbox.count === 0) throw await nothingCame(cx);
		return exits.done;
	},
});

async function hintSender(cx: CommandContext): Promise<void> {
	const sends = await missingSender(cx);
	if (sends !== null && !isMachine(cx.out.format)) await cx.hint(sends);
}

async function nothingCame(cx: CommandContext): Promise<CliError> {
	const hint = await missingSender(cx);
	return new CliError('nothing_received', exits.outOfTime, 'no notification came within --wait', {
		retryable: true,
		...(hint !== null && { hint }),
	});
}

/** On a database of this machine: what sends notifications, where no such process runs. */
async function missingSender(cx: CommandContext): Promise<Hint | null> {
	const { local } = await cx.connection();
	if (local === null || (await local.queue.hasWorker())) return null;
	const [serve, worker] = [mailctl('serve'), mailctl('worker')];
	return ['notifications are sent while ', serve, ' or ', worker, ' runs on this database'];
}

/** For people: a machine's format holds a hint back, and a test is of use only while this waits. */
async function hintTest(cx: CommandContext, [hook]: readonly Webhook[]): Promise<void> {
	if (hook === undefined || isMachine(cx.out.format)) return;
	const command = mailctl('webhooks', 'test', String(hook.id));
	await cx.hint(['in another terminal this sends one: ', command, '; with --test this one does']);
}

async function sendTest(
	cx: CommandContext,
	[hook, ...others]: readonly Webhook[],
	inbox: Inbox<Received>,
): Promise<void> {
	if (hook === undefined) return;
	if (others.length > 0) await cx.note(`the test is of ${hook.type} alone; --type names another event`);
	const { webhooks } = await cx.api();
	const answer = await webhooks.test(hook.id, { signal: cx.signal });
	// A target that --forward-to names may refuse what arrived here.
	if (answer.result !== false || inbox.count > 0) return;
	await hintTarget(cx, answer);
	throw new CliError('test_failed', exits.partly, sentenceOf(answer));
}

function assertRegisters({
	register,
	test,
	url,
	type,
}: {
	register: boolean;
	test: boolean;
	url?: string | undefined;
	type: readonly string[];
}): void {
	if (!register && (test || url !== undefined || type.length > 0))
		throw new UsageError('--url, --type and --test go with --register');
}

function webUrl(text: string, flag: string): URL {
	const url = canParseUrl(text) ? new URL(text) : null;
	if (url === null || !/^https?:$/.test(url.protocol))
		throw new UsageError(`${flag}: "${shownUrl(text)}" is no URL of http or https`);
	return url;
}

type Secrets = () => Promise<readonly string[] | null>;

/** How long secrets are taken for the current ones: they rotate in hours. */
const secretsForMs = 2_000;

async function givenSecret(file: FileSource | undefined): Promise<string | null> {
	if (file === undefined) return null;
	const text = (await file.text()).trim();
	if (/^(whsec_)?[A-Za-z0-9+/]{16,}={0,2}$/.test(text)) return text;
	throw new UsageError('--secret-file holds no secret: whsec_ and base64');
}

async function secretsOf(cx: CommandContext, api: Api, given: string | null): Promise<Secrets> {
	if (given !== null) return async () => [given];
	const { ext } = await api.capabilities();
	const { deliveries } = ext;
	if (deliveries === undefined) {
		await cx.hint('signatures are not checked: this deployment tells no secret; --secret-file gives one');
		return async () => null;
	}
	const read = async () => (await deliveries.secrets({ signal: cx.signal })).map(({ secret }) => secret);
	let known = { at: performance.now(), secrets: await read() };
	return async () => {
		if (performance.now() - known.at > secretsForMs) {
			// The last known secrets stay valid while the deployment is away.
			known = { at: performance.now(), secrets: await read().catch(() => known.secrets) };
		}
		return known.secrets;
	};
}

interface Opening {
	cx: CommandContext;
	port: number;
	secrets: Secrets;
	forwardTo: URL | null;
	inbox: Inbox<Received>;
}

async function open({ cx, port, secrets, forwardTo, inbox }: Opening): Promise<Receiver> {
	const { startReceiver } = await import('./receiver.js');
	try {
		return await startReceiver({
			...{ port, secrets, forwardTo },
			nowMs: () => cx.clock.now() / microsPerMs,
			onReceived: inbox.add,
			onUnanswered: ({ url, why }) => void cx.warn(`${url} did not answer: ${why}`),
		});
	} catch (error) {
		throw cannotListen(error, { host: '127.0.0.1', port });
	}
}

function lineOf({ id, type, verified, refused, forwarded, body }: Received): string {
	const check = refused ?? (verified === null ? 'not checked' : 'verified');
	const parts = [
		type ?? 'no notification',
		recipientOf(body),
		id,
		check,
		forwarded === null ? null : `→ ${forwarded}`,
	];
	return clean(parts.filter((part) => part !== null && part !== '').join('  '));
}

function recipientOf(body: unknown): string {
	if (typeof body !== 'object' || body === null || !('message' in body)) return '';
	const { message } = body;
	return typeof message === 'object' && message !== null && 'to' in message ? String(message.to) : '';
}
