/** One raw exchange: consent for what changes something, the answer on stdout, its status as the exit code. */
import { ApiError } from '../../../api/errors.js';
import type { WireRequest, WireResponse } from '../../../api/wire.js';
import { codeOf } from '../../../http/errors.js';
import type { CommandContext } from '../../context.js';
import { CliError, UsageError } from '../../errors.js';
import { type ExitCode, exits } from '../../exit.js';
import { cleanLines } from '../../render/clean.js';
import { assertAllowed } from '../send/allowed.js';
import { maybeSent } from '../send/once.js';

const sendPath = /^\/message\/send\/?(\?|$)/;

export async function send(
	cx: CommandContext,
	request: WireRequest,
	{ include }: { include: boolean },
): Promise<ExitCode | undefined> {
	if (changes(request)) {
		await assertRecipients(cx, request);
		const what = `${request.method} ${request.path}`;
		if (cx.dryRun) {
			const { method, path } = request;
			return cx.wouldDo(what, { method, path, body: shownBody(request) }).then(() => undefined);
		}
		await confirmProtected(cx, what);
	}
	const { exchange } = await cx.connection();
	const answering = exchange(request);
	const answer = await (sendPath.test(request.path) && request.method === 'POST'
		? maybeSent(cx, answering, request.headers?.['idempotency-key'] ?? null)
		: answering);
	if (include) await cx.out.raw(await headOf(answer));
	await printBody(cx, request, answer);
	assertSuccess(request, answer);
	return exits.done;
}

/** Throws what the status means everywhere else. */
export function assertSuccess(request: WireRequest, { status, body }: WireResponse): void {
	if (status >= 200 && status < 300) return;
	const [path = ''] = request.path.split('?', 1);
	const http = { status, method: request.method, path };
	if (status < 400)
		throw new ApiError(
			'bad_answer',
			`the service answered ${status}, a redirect, to ${request.method} ${path}`,
			{
				http,
			},
		);
	throw new ApiError(
		codeOf(status),
		`the service answered ${status} to ${request.method} ${path}${saying(body)}`,
		{
			http,
		},
	);
}

/** The text of a body as JSON; undefined when it is none. */
export function parsed(body: Uint8Array): unknown {
	try {
		return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
	} catch {
		return undefined;
	}
}

/** A GET that sends a test notification changes nothing stored, but is no reading either. */
function changes({ method, path }: WireRequest): boolean {
	return !['GET', 'HEAD', 'OPTIONS'].includes(method) || /\/run_test\/?(\?|$)/.test(path);
}

/** As it would be sent, but for a password: a plan ends up in logs. */
function shownBody({ body }: WireRequest): unknown {
	if (body === undefined) return null;
	const bytes = typeof body === 'string' ? Buffer.from(body) : body;
	const json = parsed(bytes);
	if (typeof json !== 'object' || json === null) return Buffer.from(bytes).toString('utf8');
	return 'password' in json ? { ...json, password: null } : json;
}

async function confirmProtected(cx: CommandContext, what: string): Promise<void> {
	const { profile, target } = cx.settings;
	if (profile.protected !== true) return;
	await cx.confirm({ kind: 'mild', what: `change "${target.profile}", a protected profile (${what})` });
}

/** The recipients a profile allows are allowed here too: a raw request is no way round them. */
async function assertRecipients(cx: CommandContext, { path, body }: WireRequest): Promise<void> {
	if (cx.settings.profile.allowRecipients === undefined) return;
	if (/^\/ext\/mailings\//.test(path))
		throw new UsageError('this profile says whom it may write to', {
			hint: 'a mailing goes by mailctl send --list',
		});
	if (!sendPath.test(path)) return;
	const request = parsed(typeof body === 'string' ? Buffer.from(body) : (body ?? new Uint8Array()));
	const lists = ['to', 'cc', 'bcc'].map((key) =>
		typeof request === 'object' && request !== null
			? Object.getOwnPropertyDescriptor(request, key)?.value
			: [],
	);
	assertAllowed(
		cx,
		lists
			.flat()
			.filter((one) => one !== undefined && one !== null)
			.map(String),
	);
}

async function headOf({ status, headers }: WireResponse): Promise<string> {
	const { STATUS_CODES } = await import('node:http');
	const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
	return `${cleanLines([`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd(), ...lines].join('\n'))}\n\n`;
}

async function printBody(cx: CommandContext, request: WireRequest, answer: WireResponse): Promise<void> {
	const { body } = answer;
	if (body.length === 0) return;
	const json = parsed(body);
	const wantsJson = cx.globals.json === true || cx.globals.output === 'json';
	if (wantsJson && json === undefined && answer.status < 400) {
		const [path = ''] = request.path.split('?', 1);
		throw new CliError('bad_answer', exits.server, `the answer to ${request.method} ${path} is no JSON`, {
			hint: 'leave -o json out to see it',
		});
	}
	if (!cx.io.stdout.isTTY) return cx.out.raw(body);
	const text = json === undefined ? new TextDecoder().decode(body) : JSON.stringify(json, null, 2);
	await cx.out.raw(`${cleanLines(text.replaceAll('\r\n', '\n').replace(/\n$/, ''))}\n`);
}

/** What DRF says in `detail`; other bodies are on stdout anyway. */
function saying(body: Uint8Array): string {
	const json = parsed(body);
	const detail: unknown =
		typeof json === 'object' && json !== null
			? Object.getOwnPropertyDescriptor(json, 'detail')?.value
			: undefined;
	return typeof detail === 'string' ? `: ${detail}` : '';
}
