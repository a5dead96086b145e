import { ApiError } from '../../../api/errors.js';
import type { WireRequest } from '../../../api/wire.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { cleanJsonLines } from '../../render/clean.js';
import { assertSuccess, parsed } from './send.js';
import { withQueryOf } from './wire-path.js';

interface Answered {
	next: string | null;
	results: readonly unknown[];
}

/** Follows `next` by its query until it is null. A loop is `bad_answer` (exit 7). */
export async function printPages(cx: CommandContext, first: WireRequest): Promise<ExitCode> {
	let separator = '[\n';
	for await (const { results } of pages(cx, first)) {
		const lines = results.map((one) => JSON.stringify(one));
		if (lines.length === 0) continue;
		const text = `${separator}${lines.join(',\n')}`;
		await cx.out.raw(cx.io.stdout.isTTY ? cleanJsonLines(text) : text);
		separator = ',\n';
	}
	await cx.out.raw(separator === '[\n' ? '[]\n' : '\n]\n');
	return exits.done;
}

async function* pages(cx: CommandContext, first: WireRequest): AsyncGenerator<Answered> {
	const visited = new Set<string>();
	let request = first;
	let before: string | null = null;
	while (true) {
		visited.add(request.path);
		const page = await readPage(cx, request);
		const rows = JSON.stringify(page.results);
		if (page.next !== null && rows === '[]') throw endless('an empty page has a next one');
		if (page.next !== null && rows === before) throw endless('two pages hold the same rows');
		before = rows;
		yield page;
		if (page.next === null) return;
		const path = withQueryOf(first.path, page.next);
		if (path === null) throw endless('the link to the next page is no link');
		if (visited.has(path)) throw endless('a page comes after itself');
		request = { ...first, path };
	}
}

async function readPage(cx: CommandContext, request: WireRequest): Promise<Answered> {
	cx.signal.throwIfAborted();
	const { exchange } = await cx.connection();
	const answer = await exchange(request);
	assertSuccess(request, answer);
	const page = parsed(answer.body);
	if (isPage(page)) return { next: page.next ?? null, results: page.results };
	throw new CliError('bad_answer', exits.server, `the answer to ${request.path} is no page of a collection`, {
		hint: 'leave --paginate out to see it',
	});
}

function isPage(value: unknown): value is { next?: string | null; results: readonly unknown[] } {
	if (typeof value !== 'object' || value === null || !('results' in value)) return false;
	const next = 'next' in value ? value.next : null;
	return Array.isArray(value.results) && (next === null || typeof next === 'string');
}

function endless(why: string): ApiError {
	return new ApiError('bad_answer', `The pages of this collection do not end: ${why}.`);
}
