import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Api } from '../../../api/api.js';
import { microsPerMs } from '../../../api/datetime.js';
import { isRecord, readJson } from '../../../api/json.js';
import { shownUrl } from '../../../api/quote.js';
import { type Webhook, type WebhookType, webhookTypes } from '../../../api/records.js';
import { canParseUrl } from '../../../api/schema/url.js';
import { refuseSignature, signatureHeaders } from '../../../api/webhook-calls.js';
import { command, type FileSource } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { clean } from '../../render/clean.js';
import { type Columns, column } from '../../render/columns.js';
import { cannotListen, Inbox, portOption, showArrivals } from '../../verbs/inbox.js';
import { explained } from '../../verbs/refusals.js';
import { orNull } from '../../verbs/resolve.js';
import { sentenceOf } from './record.js';

const columns: Columns<Received> = [
	column('id', 'ID', { isName: true, isWhole: true }),
	column('type', 'TYPE'),
	column('verified', 'VERIFIED'),
	column('forwarded', 'FORWARDED', { align: 'right' }),
	{ key: 'to', header: 'TO', value: ({ body }: Received) => recipientOf(body) },
	column('refused', 'REFUSED', { wide: true }),
	{ key: 'body', header: 'BODY', wide: true, value: ({ body }: Received) => JSON.stringify(body) },
];

const urlOption = { kind: 'text', placeholder: 'URL' } as const;

export const listen = command({
	name: 'listen',
	summary: 'receive, check and forward notifications on this machine',
	description:
		'Answers 204, or 401 if the signature is wrong; with --forward-to, returns the answer of its URL. --register creates a temporary webhook for ' +
		'each --type. On a local database, the command asks before it sets allow_private_webhooks.',
	options: {
		port: { ...portOption, default: 0, summary: 'listen on this port of 127.0.0.1; 0 chooses a free port' },
		forwardTo: { ...urlOption, summary: 'forward notifications to this URL, and return its answer' },
		register: { kind: 'flag', summary: 'create temporary webhooks that call this machine' },
		type: { kind: 'choices', choices: webhookTypes, summary: 'register for these events (default: all)' },
		test: { kind: 'flag', summary: 'request a test notification after registering' },
		url: { ...urlOption, summary: 'register this URL, by which the service can reach this machine' },
		secretFile: { kind: 'file', summary: 'check signatures with the secret (whsec_…) in this file' },
		once: { kind: 'flag', summary: 'end after the first notification' },
		wait: { kind: 'duration', summary: 'end after this time; exit 12 if nothing arrives' },
	},
	examples: [
		'mailctl webhooks listen --register --test --once',
		'mailctl webhooks listen --port 8080',
		'mailctl webhooks listen --register --type HARDBOUNCED --once --wait 2m -o json',
		'mailctl webhooks listen --forward-to http://127.0.0.1:3000/hooks',
	],
	output: 'an array of {"id", "type", "verified", "refused", "forwarded", "body"}',
	exits: [5, 9, 12, 130],
	writes: true,
	columns,
	async run(cx, { options }) {
		const { port, register: isRegistered, type, test, once, wait, secretFile } = options;
		const forwardTo = webUrl(options.forwardTo, '--forward-to');
		const publicUrl = webUrl(options.url, '--url');
		if (!isRegistered && (test || publicUrl !== null || type.length > 0))
			throw new UsageError('--url, --type and --test need --register');
		const api = await cx.api();
		const secret = await givenSecret(secretFile);
		if (cx.dryRun)
			return cx.wouldDo('listen for notifications', {
				listen: port,
				with: { register: isRegistered, type, ...(test && { test }) },
			});
		if (isRegistered && publicUrl === null) await agreeToPrivateTargets(cx);
		const secrets = secret === null ? await secretsOf(cx, api) : async () => [secret];
		const counts = ({ refused }: Received) => refused === null;
		const inbox = new Inbox<Received>(cx, { most: once ? 1 : undefined, wait, counts });
		const receiver = await startReceiver({
			...{ port, secrets, forwardTo, onReceived: (received) => inbox.add(received) },
			nowMs: () => cx.clock.now() / microsPerMs,
			onUnanswered: ({ url, why }) => void cx.warn(`${url} did not answer: ${why}`),
		}).catch((error: unknown) => Promise.reject(cannotListen(error, { host: '127.0.0.1', port })));
		const made: Webhook[] = [];
		try {
			await cx.note(`listening on ${receiver.url}`);
			if (isRegistered) {
				const url = publicUrl?.href ?? receiver.url;
				const types = type.length > 0 ? type : webhookTypes;
				await register(cx, api, made, { url, types });
				if (test) await sendTest(cx, api, made, inbox);
			} else await cx.hint('--register creates a webhook that calls this address until the command ends');
			await showArrivals(cx, inbox, { columns, lineOf });
		} finally {
			await unregister(cx, api, made);
			await receiver.close();
		}
		if (cx.signal.aborted) throw cx.signal.reason;
		if (inbox.count > 0) return exits.done;
		throw new CliError('nothing_received', exits.outOfTime, 'no notification came within --wait', {
			retryable: true,
		});
	},
});

type Wanted = { url: string; types: readonly WebhookType[] };

async function register(cx: CommandContext, { webhooks }: Api, made: Webhook[], { url, types }: Wanted) {
	for (const type of types)
		made.push(await explained(webhooks.create({ url, type }), { input: { url, type } }));
	const which = made.map(({ id, type }) => `${id} (${type})`).join(', ');
	await cx.note(`registered ${made.length === 1 ? 'webhook' : 'webhooks'} ${which}`);
}

async function sendTest(cx: CommandContext, { webhooks }: Api, [hook]: Webhook[], inbox: Inbox<Received>) {
	if (hook === undefined) return;
	const answer = await webhooks.test(hook.id, { signal: cx.signal });
	// The notification arrived here, even if the target of --forward-to refused it.
	if (answer.result !== false || inbox.count > 0) return;
	throw new CliError('test_failed', exits.partly, sentenceOf(answer));
}

/** Passes no signal, because the webhooks must be deleted even if a signal ended the command. */
async function unregister(cx: CommandContext, { webhooks }: Api, made: readonly Webhook[]): Promise<void> {
	for (const { id } of made)
		await orNull(webhooks.delete(id)).catch(() =>
			cx.warn(`webhook ${id} was not deleted`, mailctl('webhooks', 'delete', String(id))),
		);
}

async function agreeToPrivateTargets(cx: CommandContext): Promise<void> {
	const setting = 'allow_private_webhooks';
	const { local } = await cx.connection();
	if (local === null || (await local.settings.get())[setting] === 'true') return;
	await cx.confirm({
		kind: 'mild',
		what: `set ${setting} to true: webhooks of ${local.path} may then call private addresses`,
	});
	await local.settings.set({ [setting]: 'true' });
	await cx.hint([mailctl('engine', 'settings', 'unset', setting), ' refuses them again']);
}

async function givenSecret(file: FileSource | undefined): Promise<string | null> {
	const text = (await file?.text())?.trim() ?? null;
	if (text === null || /^(whsec_)?[A-Za-z0-9+/]{16,}={0,2}$/.test(text)) return text;
	throw new UsageError('--secret-file: the file has no secret (whsec_ and base64)');
}

function webUrl(text: string | undefined, flag: string): URL | null {
	if (text === undefined) return null;
	if (/^https?:/i.test(text) && canParseUrl(text)) return new URL(text);
	throw new UsageError(`${flag}: "${shownUrl(text)}" is not an http or https URL`);
}

/** Returns a function that reads the secrets again, because they may rotate while this command listens. */
async function secretsOf(cx: CommandContext, api: Api): Promise<() => Promise<readonly string[] | null>> {
	const { deliveries } = (await api.capabilities()).ext;
	if (deliveries === undefined) {
		await cx.hint(
			'signatures are not checked: this service does not show secrets of webhooks; give the secret with --secret-file',
		);
		return async () => null;
	}
	const read = async () => (await deliveries.secrets({ signal: cx.signal })).map(({ secret }) => secret);
	let known = await read();
	return async () => {
		known = await read().catch(() => known);
		return known;
	};
}

function lineOf({ id, type, verified, refused, forwarded, body }: Received): string {
	const check = refused ?? (verified === null ? 'not checked' : 'verified');
	const handedOn = forwarded === null ? null : `→ ${forwarded}`;
	const parts = [type ?? 'no notification', recipientOf(body), id, check, handedOn];
	return clean(parts.filter((part) => part !== null && part !== '').join('  '));
}

function recipientOf(body: unknown): string {
	const message = isRecord(body) ? body['message'] : null;
	return isRecord(message) ? String(message['to'] ?? '') : '';
}

interface Received {
	id: string | null;
	type: string | null;
	/** Null if no secret is known. */
	verified: boolean | null;
	refused: string | null;
	/** The status that the target of --forward-to returned. Null if this command forwarded nothing, or got no answer. */
	forwarded: number | null;
	/** The parsed body, or a text if it is not JSON. */
	body: unknown;
}

/** `url` has no user name or password. */
type Forwarded = { kind: 'answered'; status: number } | { kind: 'unanswered'; url: string; why: string };

interface ReceiverOptions {
	port: number;
	/** Returns secrets such as `whsec_…`; null if none is known. */
	secrets: () => Promise<readonly string[] | null>;
	forwardTo: URL | null;
	nowMs: () => number;
	onReceived: (received: Received) => void;
	onUnanswered: (handedOn: Forwarded & { kind: 'unanswered' }) => void;
}

const maxBodyBytes = 1024 * 1024;
/** Shorter than the time limit of the notification's sender, so that the sender gets an answer. */
const forwardMs = 12_000;

async function startReceiver(options: ReceiverOptions) {
	const { createServer } = await import('node:http');
	const server = createServer((request, response) => {
		receive(options, request, response).catch(() => response.destroy());
	});
	await new Promise<void>((resolve, reject) => {
		server.once('error', reject);
		server.listen(options.port, '127.0.0.1', resolve);
	});
	// A listening TCP server has an address of this type.
	const { port } = server.address() as AddressInfo;
	return {
		url: `http://127.0.0.1:${port}/`,
		close: async () => {
			// Let requests in progress end, but do not let an idle connection keep the process alive.
			setTimeout(() => server.closeAllConnections(), 500).unref();
			await new Promise<void>((resolve) => {
				server.close(() => resolve());
				server.closeIdleConnections();
			});
		},
	};
}

async function receive(
	{ secrets, forwardTo, nowMs, onReceived, onUnanswered }: ReceiverOptions,
	request: IncomingMessage,
	response: ServerResponse,
): Promise<void> {
	const { headers } = request;
	if (request.method !== 'POST') return void response.writeHead(405, { allow: 'POST' }).end();
	const chunks: Buffer[] = [];
	let bytes = 0;
	for await (const chunk of request) {
		bytes += chunk.length;
		if (bytes > maxBodyBytes) return void response.writeHead(413, { connection: 'close' }).end();
		chunks.push(chunk);
	}
	const body = Buffer.concat(chunks);
	const known = await secrets();
	const refused =
		known && refuseSignature({ headers, body, secrets: known, now: Math.floor(nowMs() / 1000) });
	const handedOn = refused === null && forwardTo !== null ? await forward(forwardTo, headers, body) : null;
	const status = handedOn === null ? 204 : handedOn.kind === 'answered' ? handedOn.status : 502;
	response.writeHead(refused === null ? status : 401).end();
	if (handedOn?.kind === 'unanswered') onUnanswered(handedOn);
	const json = readJson(body);
	const parsed = json.kind === 'valid' ? json.value : body.toString('utf8');
	const id = headers[signatureHeaders.id];
	onReceived({
		id: typeof id === 'string' ? id : null,
		type: isRecord(parsed) && typeof parsed['type'] === 'string' ? parsed['type'] : null,
		verified: known === null ? null : refused === null,
		refused,
		forwarded: handedOn?.kind === 'answered' ? handedOn.status : null,
		body: parsed,
	});
}

/** Forwards the body unchanged, with the headers that the target needs to check and read the body. */
async function forward(to: URL, headers: IncomingHttpHeaders, body: Buffer): Promise<Forwarded> {
	const kept = new Headers();
	for (const name of ['content-type', 'authorization', ...Object.values(signatureHeaders)]) {
		const value = headers[name];
		if (typeof value === 'string') kept.set(name, value);
	}
	// fetch rejects a URL that contains a password.
	const url = new URL(to);
	url.username = '';
	url.password = '';
	try {
		const pair = [to.username, to.password].map(decodeURIComponent).join(':');
		if (pair !== ':') kept.set('authorization', `Basic ${Buffer.from(pair).toString('base64')}`);
		const signal = AbortSignal.timeout(forwardMs);
		const answer = await fetch(url, { method: 'POST', headers: kept, body, redirect: 'manual', signal });
		await answer.body?.cancel();
		return { kind: 'answered', status: answer.status };
	} catch (error) {
		// The cause is more specific than `fetch failed`.
		const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
		return { kind: 'unanswered', url: url.href, why: cause instanceof Error ? cause.message : String(cause) };
	}
}
