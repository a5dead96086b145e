import type { PageRequest, WireRequest } from '../../../api/api.js';
import { isRecord } from '../../../api/json.js';
import { iterate } from '../../../api/pages.js';
import type { Page } from '../../../api/records.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { cleanJsonLines } from '../../render/clean.js';
import { assertSuccess, parsed } from './send.js';

export async function printPages(cx: CommandContext, first: WireRequest): Promise<ExitCode> {
	let separator = '[\n';
	for await (const row of iterate((request) => readPage(cx, first, request))) {
		const text = `${separator}${JSON.stringify(row)}`;
		await cx.out.raw(cx.io.stdout.isTTY ? cleanJsonLines(text) : text);
		separator = ',\n';
	}
	await cx.out.raw(separator === '[\n' ? '[]\n' : '\n]\n');
	return exits.done;
}

async function readPage(
	cx: CommandContext,
	first: WireRequest,
	{ query }: PageRequest,
): Promise<Page<unknown>> {
	cx.signal.throwIfAborted();
	const [bare = ''] = first.path.split('?', 1);
	const request = query === undefined ? first : { ...first, path: `${bare}${query}` };
	const { exchange } = await cx.connection();
	const answer = await exchange(request);
	assertSuccess(request, answer);
	const page = parsed(answer.body);
	if (isPage(page)) return { count: 0, previous: null, ...page, next: page.next ?? null };
	const what = `the answer to ${request.path} is not a page of a collection`;
	throw new CliError('bad_answer', exits.server, what);
}

function isPage(value: unknown): value is { next?: string | null; results: unknown[] } {
	if (!isRecord(value) || !Array.isArray(value['results'])) return false;
	const { next = null } = value;
	return next === null || typeof next === 'string';
}
