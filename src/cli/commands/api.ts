import type { PageRequest, WireRequest, WireResponse } from '../../api/api.js';
import { ApiError } from '../../api/errors.js';
import { isRecord, readJson, tooDeep } from '../../api/json.js';
import { iterate } from '../../api/pages.js';
import type { Page } from '../../api/records.js';
import { canParseUrl } from '../../api/schema/url.js';
import { codeOf, headerNames, refusedFor, scopesIn } from '../../http/wire.js';
import { confirmChange } from '../config/profiles.js';
import { command } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { cleanJsonLines, cleanLines } from '../render/clean.js';
import { assertAllowed } from '../verbs/allowed.js';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];

export { api as command };

const api = command({
	name: 'api',
	summary: 'make one raw API request',
	description:
		'Prints the answer as it is, or indented JSON on a terminal. The command never repeats the request. The ' +
		'path starts at the base URL. A local database gives the same answers as `serve`.',
	args: [
		{
			name: 'method',
			summary: 'GET, POST, PUT, PATCH, DELETE, HEAD or OPTIONS',
			choices: methods,
			ask: 'Method:',
		},
		{ name: 'path', summary: 'the path below the base URL, such as /sub/lists/', ask: 'Path:' },
	],
	options: {
		data: { kind: 'content', summary: 'send this body, as JSON unless --header says otherwise' },
		param: { kind: 'list', placeholder: 'K=V', summary: 'add a query parameter' },
		header: { kind: 'list', placeholder: "'NAME: VALUE'", summary: 'add a header' },
		include: { kind: 'flag', summary: 'print the status and headers first' },
		paginate: { kind: 'flag', summary: 'print the results of all pages of a GET as one JSON array' },
	},
	writes: true,
	asksItself: true,
	output: 'the body, which must be JSON; with --paginate an array of all results',
	exits: [3, 4, 5, 6, 7, 13],
	examples: [
		'mailctl api GET /sub/lists/ --param page_size=5',
		'mailctl api PATCH sub/lists/12/ --data \'{"name": "News"}\'',
		'mailctl api GET /sub/lists/12/subscribers/ --paginate',
	],
	run: async (cx, { args, options: { data, param, header, include, paginate } }) => {
		const { output } = cx.globals;
		if (output !== undefined && output !== 'json')
			throw new UsageError(`api prints the answer as it is, so -o ${output} has no effect`);
		const { target } = await cx.connection();
		const method = args.method.toUpperCase();
		if (!methods.includes(method))
			throw new UsageError(`"${args.method}" is not a method of the API`, {
				hint: `methods: ${methods.join(', ')}`,
			});
		const path = wirePath(args.path, param, target.kind === 'remote' ? target.baseUrl : null);
		const request = { method, path, headers: parseHeaders(header), signal: cx.signal };
		if (paginate) {
			if (method !== 'GET' || data !== undefined || include)
				throw new UsageError('--paginate needs GET, and neither --data nor --include');
			return printPages(cx, request);
		}
		const isHead = method === 'HEAD';
		if (data === undefined) return send(cx, request, include || isHead);
		if (method === 'GET' || isHead) throw new UsageError(`a ${method} request has no body: leave --data out`);
		const headers = { 'content-type': 'application/json', ...request.headers };
		return send(cx, { ...request, headers, body: await data.text() }, include);
	},
});

const reserved =
	'host content-length transfer-encoding connection upgrade expect keep-alive te trailer'.split(' ');

function parseHeaders(lines: readonly string[]): Record<string, string> {
	const headers: Record<string, string> = {};
	for (const line of lines) {
		const [, name = '', value = ''] =
			/^([\w!#$%&'*+.^`|~-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/.exec(line) ?? [];
		const key = name.toLowerCase();
		if (name === '')
			throw new UsageError('--header: expected NAME: VALUE', { hint: "--header 'Accept-Language: en'" });
		if (key === headerNames.token.toLowerCase())
			throw new UsageError(`--header ${name}: a token cannot be an argument`, {
				hint: 'MAILCTL_TOKEN, --token-file or --token-stdin',
			});
		if (reserved.includes(key)) throw new UsageError(`--header ${name}: mailctl sets this header itself`);
		if (Object.hasOwn(headers, key)) throw new UsageError(`--header ${name} is given twice`);
		headers[key] = value.trimEnd();
	}
	return headers;
}

const anyPath = mailctl('api', 'GET', '/sub/lists/');

/**
 * Returns the path and the query to send, with a leading `/`. Throws `UsageError` for a URL outside the base URL,
 * because another server must not get the token. `base` is null for a local database.
 */
function wirePath(text: string, query: readonly string[], base: string | null): string {
	const path = /^[a-z][a-z0-9+.-]*:/i.test(text) ? pathOfUrl(text, base) : pathOfText(text);
	const added = query.map(encodePair).join('&');
	if (added === '') return path;
	return `${path}${path.includes('?') ? '&' : '?'}${added}`;
}

function pathOfText(text: string): string {
	const path = text.startsWith('/') ? text : `/${text}`;
	const url = canParseUrl(`http://localhost${path}`) ? new URL(`http://localhost${path}`) : null;
	const [written = ''] = path.split(/[?#]/, 1);
	// `//host`, `\` and `..` could resolve to a URL outside the API's prefix.
	if (url === null || /^\/\/|\\|(^|\/)(\.|%2e){1,2}(\/|$)/i.test(written))
		throw new UsageError(`"${text}" is not a path of the API`, { hint: anyPath });
	return `${url.pathname}${url.search}`;
}

function pathOfUrl(text: string, base: string | null): string {
	if (base === null) throw new UsageError('give the path; --base-url takes the URL', { hint: anyPath });
	const url = canParseUrl(text) ? new URL(text) : null;
	const root = new URL(base);
	const prefix = root.pathname.replace(/(?<!\/)\/+$/, '');
	const isBelow =
		url !== null &&
		url.origin === root.origin &&
		url.username === '' &&
		url.password === '' &&
		url.pathname.startsWith(`${prefix}/`);
	if (isBelow) return pathOfText(`${url.pathname.slice(prefix.length)}${url.search}`);
	throw new UsageError(`"${text}" is not below ${base}; the token goes nowhere else`, {
		hint: 'give the path alone, or another --base-url with its own token',
	});
}

function encodePair(text: string): string {
	const at = text.indexOf('=');
	if (at < 1) throw new UsageError(`--param: "${text}" is not KEY=VALUE`);
	return `${encodeURIComponent(text.slice(0, at))}=${encodeURIComponent(text.slice(at + 1))}`;
}

async function printPages(cx: CommandContext, first: WireRequest): Promise<ExitCode> {
	const [bare = ''] = first.path.split('?', 1);
	const readPage = async ({ query }: PageRequest): Promise<Page<unknown>> => {
		cx.signal.throwIfAborted();
		const request = query === undefined ? first : { ...first, path: `${bare}${query}` };
		const { exchange } = await cx.connection();
		const answer = await exchange(request);
		assertSuccess(request, answer);
		const page = parsed(answer.body);
		if (isPage(page)) return { count: 0, previous: null, ...page, next: page.next ?? null };
		const what = `the answer to ${request.path} is not a page of a collection`;
		throw new CliError('bad_answer', exits.server, what);
	};
	let separator = '[\n';
	for await (const row of iterate(readPage)) {
		const text = `${separator}${JSON.stringify(row)}`;
		await cx.out.raw(cx.io.stdout.isTTY ? cleanJsonLines(text) : text);
		separator = ',\n';
	}
	await cx.out.raw(separator === '[\n' ? '[]\n' : '\n]\n');
	return exits.done;
}

function isPage(value: unknown): value is { next?: string | null; results: unknown[] } {
	if (!isRecord(value) || !Array.isArray(value['results'])) return false;
	const { next = null } = value;
	return next === null || typeof next === 'string';
}

const runTest = /\/run_test\/?(\?|$)/;
const sendPath = /^\/message\/send\/?(\?|$)/;

async function send(cx: CommandContext, request: WireRequest, include: boolean): Promise<ExitCode> {
	// A GET of `run_test` sends a test notification, so treat it as a change.
	if (!['GET', 'HEAD', 'OPTIONS'].includes(request.method) || runTest.test(request.path)) {
		assertRecipients(cx, request);
		if (cx.dryRun) return foresee(cx, request, include);
		await confirmChange(cx, asked(request));
	}
	const { exchange } = await cx.connection();
	const answering = exchange(request);
	if (!sendPath.test(spelledOut(request.path)) || request.method !== 'POST')
		return print(cx, request, await answering, include);
	const { maybeSent } = await import('./send/delivery.js');
	const key = request.headers?.['idempotency-key'] ?? null;
	const answer = await maybeSent(cx, answering, key);
	return maybeSent(cx, print(cx, request, answer, include), key);
}

/** With a local database, makes the request and rolls it back, so that a dry run reports the same errors. */
async function foresee(cx: CommandContext, request: WireRequest, include: boolean): Promise<ExitCode> {
	const { local, exchange } = await cx.connection();
	const { method, path } = request;
	const body = shownBody(request);
	if (local !== null) {
		// A test notification cannot be rolled back, so the dry run reads its webhook instead.
		const [webhook, isTest] = [path.replace(runTest, '/$1'), runTest.test(path)];
		const answer = await exchange(isTest ? { ...request, method: 'GET', path: webhook } : request);
		if (answer.status < 200 || answer.status >= 300) return print(cx, request, answer, include);
	}
	await cx.wouldDo(asked(request), { request: { method, path, body } });
	return exits.done;
}

function asked({ method, path }: Pick<WireRequest, 'method' | 'path'>): string {
	return `${method} ${path}`;
}

async function print(cx: CommandContext, request: WireRequest, answer: WireResponse, include: boolean) {
	if (include) {
		const { STATUS_CODES } = await import('node:http');
		const { status, headers } = answer;
		const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
		const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd(), ...lines].join('\n');
		await cx.out.raw(`${cleanLines(head)}\n\n`);
	}
	await printBody(cx, request, answer);
	assertSuccess(request, answer);
	return exits.done;
}

function assertSuccess(request: WireRequest, { status, headers, body }: WireResponse): void {
	if (status >= 200 && status < 300) return;
	const [path = ''] = request.path.split('?', 1);
	const http = { status, method: request.method, path };
	if (status < 400)
		throw new ApiError('bad_answer', `the service answered ${status}, a redirect, to ${asked(http)}`, {
			http,
		});
	const json = parsed(body);
	const detail = isRecord(json) && typeof json['detail'] === 'string' ? `: ${json['detail']}` : '';
	const said = `the service answered ${status} to ${request.method} ${path}${detail}`;
	const scopes = status === 403 ? scopesIn(headers) : null;
	throw new ApiError(codeOf(status), scopes === null ? said : refusedFor(said, scopes), {
		http,
		...(scopes !== null && { scopes }),
		// A 503 with Retry-After is safe to repeat, because the service has not run the request.
		...(status === 503 && headers['retry-after'] !== undefined && { retryAfterMs: 0 }),
	});
}

function parsed(body: Uint8Array): unknown {
	const json = readJson(body);
	return json.kind === 'valid' ? json.value : undefined;
}

function parsedData(body: Uint8Array): unknown {
	const json = readJson(body);
	if (json.kind === 'invalid' && json.fault === tooDeep) throw new UsageError(`--data ${tooDeep}`);
	return json.kind === 'valid' ? json.value : undefined;
}

/** Masks passwords, because CI logs store the plan of a dry run. */
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
function assertRecipients(cx: CommandContext, { path, body }: WireRequest): void {
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
