import type { WireRequest } from '../../api/api.js';
import { headerNames } from '../../http/wire.js';
import { type ContentSource, command } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { type Base, wirePath } from './api/wire-path.js';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];

export { api as command };

const api = command({
	name: 'api',
	summary: 'make one raw API request',
	description:
		'Prints the answer as it is, or indented JSON on a terminal. It never repeats a request. The path starts ' +
		'at the base URL; on a local database the answers are those of `serve`.',
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
	run: async (cx, { args, options }) => {
		assertOutput(cx);
		const { target } = await cx.connection();
		const base: Base = target.kind === 'remote' ? target.baseUrl : null;
		const request = {
			method: methodOf(args.method),
			path: wirePath(args.path, options.param, base),
			headers: parseHeaders(options.header),
			signal: cx.signal,
		};
		if (options.paginate) {
			if (args.method.toUpperCase() !== 'GET' || options.data !== undefined || options.include)
				throw new UsageError('--paginate needs GET, and neither --data nor --include');
			const { printPages } = await import('./api/pages.js');
			return printPages(cx, request);
		}
		const full = { ...request, ...(await bodyOf(options.data, request)) };
		const { send } = await import('./api/send.js');
		return send(cx, full, { include: options.include || request.method === 'HEAD' });
	},
});

function assertOutput(cx: CommandContext): void {
	const { output } = cx.globals;
	if (output !== undefined && output !== 'json')
		throw new UsageError(`api prints the answer as it is, so -o ${output} has no effect`);
}

function methodOf(text: string): string {
	const method = text.toUpperCase();
	if (methods.includes(method)) return method;
	throw new UsageError(`"${text}" is not a method of the API`, { hint: `methods: ${methods.join(', ')}` });
}

async function bodyOf(
	data: ContentSource | undefined,
	{ method, headers }: { method: string; headers: Readonly<Record<string, string>> },
): Promise<Partial<WireRequest>> {
	if (data === undefined) return {};
	if (method === 'GET' || method === 'HEAD')
		throw new UsageError(`a ${method} request has no body: leave --data out`);
	return { body: await data.text(), headers: { 'content-type': 'application/json', ...headers } };
}

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
