import type { WireRequest, WireResponse } from '../../../api/api.js';
import { ApiError } from '../../../api/errors.js';
import { isRecord, readJson, tooDeep } from '../../../api/json.js';
import { codeOf, refusedFor, scopesIn } from '../../../http/wire.js';
import { confirmChange } from '../../config/profiles.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { cleanJsonLines, cleanLines } from '../../render/clean.js';
import { assertAllowed } from '../../verbs/allowed.js';
import { maybeSent } from '../send/delivery.js';

const runTest = /\/run_test\/?(\?|$)/;
const sendPath = /^\/message\/send\/?(\?|$)/;

export async function send(
	cx: CommandContext,
	request: WireRequest,
	{ include }: { include: boolean },
): Promise<ExitCode | undefined> {
	if (changes(request)) {
		await assertRecipients(cx, request);
		await cx.connection();
		if (cx.dryRun) return foresee(cx, request, { include });
		await confirmChange(cx, asked(request));
	}
	const { exchange } = await cx.connection();
	const answering = exchange(request);
	if (!sendPath.test(spelledOut(request.path)) || request.method !== 'POST')
		return print(cx, request, { answer: await answering, include });
	const key = request.headers?.['idempotency-key'] ?? null;
	const answer = await maybeSent(cx, answering, key);
	return maybeSent(cx, print(cx, request, { answer, include }), key);
}

/** With a local database, makes the request and rolls it back, so that a dry run is refused for the same reasons. */
async function foresee(
	cx: CommandContext,
	request: WireRequest,
	{ include }: { include: boolean },
): Promise<ExitCode> {
	const { local, exchange } = await cx.connection();
	const { method, path } = request;
	const body = shownBody(request);
	if (local !== null) {
		// A test notification cannot be rolled back, so the dry run reads its webhook instead.
		const [webhook, isTest] = [path.replace(runTest, '/$1'), runTest.test(path)];
		const answer = await exchange(isTest ? { ...request, method: 'GET', path: webhook } : request);
		if (answer.status < 200 || answer.status >= 300) return print(cx, request, { answer, include });
	}
	await cx.wouldDo(asked(request), { request: { method, path, body } });
	return exits.done;
}

function asked({ method, path }: Pick<WireRequest, 'method' | 'path'>): string {
	return `${method} ${path}`;
}

async function print(
	cx: CommandContext,
	request: WireRequest,
	{ answer, include }: { answer: WireResponse; include: boolean },
): Promise<ExitCode> {
	if (include) await cx.out.raw(await headOf(answer));
	await printBody(cx, request, answer);
	assertSuccess(request, answer);
	return exits.done;
}

export function assertSuccess(request: WireRequest, { status, headers, body }: WireResponse): void {
	if (status >= 200 && status < 300) return;
	const [path = ''] = request.path.split('?', 1);
	const http = { status, method: request.method, path };
	if (status < 400)
		throw new ApiError('bad_answer', `the service answered ${status}, a redirect, to ${asked(http)}`, {
			http,
		});
	const said = `the service answered ${status} to ${request.method} ${path}${saying(body)}`;
	const scopes = status === 403 ? scopesIn(headers) : null;
	throw new ApiError(codeOf(status), scopes === null ? said : refusedFor(said, scopes), {
		http,
		...(scopes !== null && { scopes }),
		// A 503 with Retry-After means that the service did nothing.
		...(status === 503 && headers['retry-after'] !== undefined && { retryAfterMs: 0 }),
	});
}

export function parsed(body: Uint8Array): unknown {
	const json = readJson(body);
	return json.kind === 'valid' ? json.value : undefined;
}

function parsedData(body: Uint8Array): unknown {
	const json = readJson(body);
	if (json.kind === 'invalid' && json.fault === tooDeep) throw new UsageError(`--data ${tooDeep}`);
	return json.kind === 'valid' ? json.value : undefined;
}

/** A GET that sends a test notification changes no data, but is not a read either. */
function changes({ method, path }: WireRequest): boolean {
	return !['GET', 'HEAD', 'OPTIONS'].includes(method) || runTest.test(path);
}

/** Masks passwords, because plans are stored in logs. */
function shownBody({ body }: WireRequest): unknown {
	if (body === undefined) return null;
	const bytes = typeof body === 'string' ? Buffer.from(body) : body;
	const json = parsedData(bytes);
	if (typeof json !== 'object' || json === null) return Buffer.from(bytes).toString('utf8');
	return 'password' in json ? { ...json, password: null } : json;
}

/** Decodes the path as a server does: `%73end` becomes `send`. */
function spelledOut(path: string): string {
	try {
		return decodeURIComponent(path);
	} catch {
		return path;
	}
}

/** Applies the profile's allowed recipients, so that a raw request cannot bypass them. */
async function assertRecipients(cx: CommandContext, { path, body }: WireRequest): Promise<void> {
	if (cx.settings.profile.allowRecipients === undefined) return;
	if (/^\/ext\/mailings\//.test(spelledOut(path)))
		throw new UsageError('this profile limits its recipients', {
			hint: ['a campaign goes by ', mailctl('send', '--list')],
		});
	if (!sendPath.test(spelledOut(path))) return;
	const request = parsedData(typeof body === 'string' ? Buffer.from(body) : (body ?? new Uint8Array()));
	if (!isRecord(request)) return;
	const recipients = ['to', 'cc', 'bcc'].flatMap((key) => request[key] ?? []);
	assertAllowed(cx, recipients.filter((one) => one !== null).map(String));
}

async function headOf({ status, headers }: WireResponse): Promise<string> {
	const { STATUS_CODES } = await import('node:http');
	const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
	return `${cleanLines([`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd(), ...lines].join('\n'))}\n\n`;
}

async function printBody(cx: CommandContext, request: WireRequest, answer: WireResponse): Promise<void> {
	const { body } = answer;
	if (body.length === 0) return;
	const wantsJson = cx.globals.json === true || cx.globals.output === 'json';
	if (!cx.io.stdout.isTTY && !wantsJson) await cx.out.raw(body);
	const json = parsed(body);
	if (wantsJson && json === undefined && answer.status < 400)
		throw new CliError('bad_answer', exits.server, `the answer to ${asked(request)} is not JSON`);
	if (!cx.io.stdout.isTTY) {
		if (wantsJson) await cx.out.raw(body);
		return;
	}
	const text =
		json === undefined
			? cleanLines(new TextDecoder().decode(body).replaceAll('\r\n', '\n').replace(/\n$/, ''))
			: cleanJsonLines(JSON.stringify(json, null, 2));
	await cx.out.raw(`${text}\n`);
}

function saying(body: Uint8Array): string {
	const json = parsed(body);
	return isRecord(json) && typeof json['detail'] === 'string' ? `: ${json['detail']}` : '';
}
