/** Collections as the document has them: the envelope, and pages that lead somewhere. */

import { isRecord } from '../../api/json.js';
import { canParseUrl } from '../../api/schema/url.js';
import { expectObject, isSame } from './assertions.js';
import { Broken, type Probe, Skipped } from './model.js';
import { type Json, shown } from './shapes.js';

/** A page whose envelope holds; `count` null where the deployment has none. */
export interface ReadPage {
	count: number | null;
	next: string | null;
	previous: string | null;
	results: readonly Json[];
}

/** `path` with a query, which may have one already. */
export function withQuery(path: string, query: Readonly<Record<string, string | number>>): string {
	const words = Object.entries(query).map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`);
	return `${path}${path.includes('?') ? '&' : '?'}${words.join('&')}`;
}

/** One page of a collection. Throws `Broken` for an answer without the envelope. */
export async function readPage(probe: Probe, path: string): Promise<ReadPage> {
	const body = await expectObject(probe, { method: 'GET', path }, 200);
	const { results } = body;
	if (!Array.isArray(results)) throw new Broken(`results is ${shown(results)}, not an array`);
	const odd = results.find((one) => !isRecord(one));
	if (odd !== undefined) throw new Broken(`results hold ${shown(odd)}, which is no object`);
	return {
		count: countOf(probe, body),
		next: linkOf(probe, body, 'next'),
		previous: linkOf(probe, body, 'previous'),
		results: results.filter(isRecord),
	};
}

/** The page of a link; the client uses only its query (api-decisions 8). */
export function pageNumber(link: string): number {
	const base = 'http://localhost/';
	const text = canParseUrl(link, base) ? (new URL(link, base).searchParams.get('page') ?? '1') : '';
	if (!/^\d{1,15}$/.test(text) || Number(text) < 1) throw new Broken(`the link ${shown(link)} names no page`);
	return Number(text);
}

/** Checks of a first page alone: no previous, and a count that fits its rows. */
export function judgeFirstPage(probe: Probe, page: ReadPage): void {
	if (page.previous !== null) probe.fault(`the first page has a previous one: ${shown(page.previous)}`);
	const { count, results } = page;
	if (count !== null && page.next === null && count !== results.length)
		probe.fault(`count is ${count}, but the only page has ${results.length}`);
	if (count !== null && page.next !== null && count <= results.length)
		probe.fault(`count is ${count}, but there is a page behind the first ${results.length}`);
	if (page.next !== null && results.length === 0) probe.fault('an empty page has a next one');
}

/**
 * Two pages one behind the other: links that lead on and back, rows that are not met twice, a count that fits. Asks for
 * pages of one row where all fit in one. Throws `Skipped` without a second page.
 */
export async function judgePaging(probe: Probe, path: string): Promise<string> {
	const plain = await readPage(probe, path);
	const small = plain.next === null && plain.results.length > 1 ? withQuery(path, { page_size: 1 }) : path;
	const first = small === path ? plain : await readPage(probe, small);
	if (first.next === null) throw new Skipped(`one page holds all ${first.results.length}`);
	const number = pageNumber(first.next);
	if (number !== 2) throw new Broken(`next of the first page leads to page ${number}`);
	if (!/^https?:\/\//i.test(first.next)) probe.deviate(`next is no absolute URL: ${shown(first.next)}`);
	const second = await readPage(probe, withQuery(small, { page: 2 }));
	judgeSecond(probe, first, second);
	return `${first.results.length} a page`;
}

/** Every row, page by page, for a search; `maxPages` bounds the cost on a big deployment. */
export async function* walkPages(
	probe: Pick<Probe, 'call' | 'fault' | 'deviate'>,
	path: string,
	maxPages: number,
): AsyncGenerator<ReadPage> {
	const visited = new Set([1]);
	let page = await readPage(probe, path);
	yield page;
	for (let read = 1; page.next !== null && read < maxPages; read += 1) {
		const number = pageNumber(page.next);
		if (visited.has(number)) throw new Broken(`the pages of ${path} do not end: page ${number} comes again`);
		visited.add(number);
		page = await readPage(probe, withQuery(path, { page: number }));
		yield page;
	}
}

function judgeSecond(probe: Probe, first: ReadPage, second: ReadPage): void {
	if (second.previous === null) probe.fault('the second page has no previous one');
	else if (pageNumber(second.previous) !== 1)
		probe.fault(`previous of the second page leads to page ${pageNumber(second.previous)}`);
	if (second.next !== null && pageNumber(second.next) !== 3)
		probe.fault(`next of the second page leads to page ${pageNumber(second.next)}`);
	if (second.results.length === 0) probe.fault('the second page is empty');
	const known = new Set(first.results.map(({ id }) => id));
	const again = second.results.find(({ id }) => known.has(id));
	if (again !== undefined) probe.fault(`id ${shown(again['id'])} is on both pages`);
	const ids = [...first.results, ...second.results].map(({ id }) => Number(id));
	if (again === undefined && ids.some((id, at) => at > 0 && id <= (ids[at - 1] ?? 0)))
		probe.deviate('ids are not ascending');
	judgeSum(probe, first, second);
}

function judgeSum(probe: Probe, first: ReadPage, second: ReadPage): void {
	const sum = first.results.length + second.results.length;
	const { count } = second;
	if (count === null) return;
	if (second.next === null && count !== sum) probe.fault(`count is ${count}, but both pages have ${sum}`);
	if (second.next !== null && count <= sum) probe.fault(`count is ${count}, but there is more behind ${sum}`);
	if (!isSame(first.count, count)) probe.deviate(`count is ${first.count} on one page, ${count} on the next`);
}

/** Clients show the count and do not need it to walk the pages, so a deployment without one is a deviation. */
function countOf(probe: Probe, body: Json): number | null {
	const { count } = body;
	if (typeof count === 'number' && Number.isSafeInteger(count) && count >= 0) return count;
	if (count === undefined) probe.deviate('the envelope has no count');
	else probe.fault(`count is ${shown(count)}, not a number of objects`);
	return null;
}

function linkOf(probe: Probe, body: Json, key: 'next' | 'previous'): string | null {
	const link = body[key];
	if (typeof link === 'string' || link === null) return link;
	if (link === undefined && key === 'previous') probe.deviate('the envelope has no previous');
	else probe.fault(`${key} is ${shown(link)}, neither a link nor null`);
	return null;
}
