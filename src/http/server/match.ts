/**
 * Reads the target of a request: the operation of its path, and its query. The last slash of a path may be missing; ids
 * are read later, as in DRF. The query is read by Django's rules: the last of repeated values counts, a plus is a blank.
 */

import type { PageRequest } from '../../api/api.js';
import { isSha256 } from '../../api/attachments.js';
import { invalid } from '../../api/errors.js';
import type { Page } from '../../api/records.js';
import { parseInteger, trimWhitespace } from '../../api/schema/python.js';
import { texts } from '../../api/schema/texts.js';
import type { HttpRequest } from '../messages.js';
import { type Method, metricsPath, type Operation, openPaths, type Route, routes } from '../routes.js';

/** The result of matching a request. */
export interface Match {
	/** Null: there is no such path. */
	path: ApiPath | ServicePath | null;
	/** Null: the path has no operation of this method. */
	operation: Operation | null;
	query: Query;
	/** For the log: the path when it contains nothing secret, else its shape. */
	shownPath: string;
}

/** A path of the table of routes. */
export interface ApiPath {
	kind: 'api';
	/** As in the table, with `{id}`. */
	template: string;
	operations: Readonly<Partial<Record<Method, Operation>>>;
	/** Methods in DRF's order, for the header. */
	allow: string;
	/** Decoded parts by the name of their placeholder. */
	values: Readonly<Record<string, string>>;
	/** Null: one of these cannot be an id. */
	ids: PathIds | null;
}

/** A path beside the API: the identity, state and capabilities of the service. */
export interface ServicePath {
	kind: 'service';
	name: ServicePathName;
	allow: string;
}

export type ServicePathName = (typeof openPaths)[keyof typeof openPaths] | typeof metricsPath;

/** Ids of a path. */
export interface PathIds {
	ids: Record<string, number>;
	/** UUIDs and hashes, in lower case. */
	uuids: Record<string, string>;
}

/** Path and query of a target. A proxy may send the whole URL (RFC 9112 s.3.2.2). */
export function originForm(target: string): string {
	return target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
}

/** Never throws. */
export function matchRequest({ method, target: sent }: Pick<HttpRequest, 'method' | 'target'>): Match {
	const [text = '', query = ''] = splitOnce(originForm(sent), '?');
	const path = findPath(text);
	return {
		path,
		operation: path?.kind === 'api' ? operationOf(path, method) : null,
		query: parseQuery(query),
		shownPath: isHarmless(path) ? text : maskPath(text),
	};
}

/** The label for metrics: one of few. */
export function operationName({ path, operation }: Match): string {
	if (path?.kind === 'service') return path.name;
	return operation ?? 'other';
}

/** Integers as Python reads them (` 01` is 1), UUIDs in any case; null when a part is neither. */
export function readIds(values: ApiPath['values']): PathIds | null {
	const ids: Record<string, number> = {};
	const uuids: Record<string, string> = {};
	for (const [name, text] of Object.entries(values)) {
		if (name === 'uuid') {
			if (!uuidPattern.test(text)) return null;
			uuids[name] = text.toLowerCase();
		} else if (name === 'sha256') {
			if (!isSha256(text.toLowerCase())) return null;
			uuids[name] = text.toLowerCase();
		} else {
			const id = parseInteger(text);
			if (id === null || id < 0) return null;
			ids[name] = id;
		}
	}
	return { ids, uuids };
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** `path` without query, as sent. Null: there is no such path. */
function findPath(path: string): ApiPath | ServicePath | null {
	if (isServicePath(path)) return { kind: 'service', name: path, allow: readOnly };
	const parts = decodeParts(path);
	if (parts === null) return null;
	const fits = (part: string | null, index: number) => part === null || part === parts[index];
	const row = table.get(parts.length)?.find(({ parts: wanted }) => wanted.every(fits));
	if (row === undefined) return null;
	const { template, operations, allow } = row;
	const values: Record<string, string> = {};
	for (const [name, index] of row.names) values[name] = parts[index] ?? '';
	return { kind: 'api', template, operations, allow, values, ids: readIds(values) };
}

function operationOf({ operations: here }: ApiPath, method: string): Operation | null {
	// HEAD of a GET with an effect would have the effect unintentionally (api-decisions 33).
	if (method === 'HEAD')
		return here.GET !== undefined && routes[here.GET].isUnsafe !== true ? here.GET : null;
	return Object.hasOwn(here, method) ? (here[method as Method] ?? null) : null;
}

/** Words of the table, integers and UUIDs: no token is one of these. */
function isHarmless(path: Match['path']): boolean {
	return path !== null && (path.kind === 'service' || path.ids !== null);
}

/** An unknown path may contain a token: only words are shown, and none of public pages. */
function maskPath(path: string): string {
	if (/^\/[ocuv]\//.test(path)) return `${path.slice(0, 3)}…`;
	const parts = path.slice(0, 512).split('/');
	return parts.map((part) => (/^[a-z_.-]{0,20}$/.test(part) ? part : '…')).join('/');
}

function splitOnce(text: string, separator: string): [string, string] {
	const at = text.indexOf(separator);
	return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

const readOnly = 'GET, HEAD, OPTIONS';
const servicePaths: ReadonlySet<string> = new Set([...Object.values(openPaths), metricsPath]);

interface Row {
	template: string;
	/** `null` stands for any part. */
	parts: readonly (string | null)[];
	names: readonly (readonly [string, number])[];
	operations: Partial<Record<Method, Operation>>;
	allow: string;
}

const table = compile();

/** By number of parts; fixed parts come before placeholders (`progress` before `{uuid}`). */
function compile(): ReadonlyMap<number, readonly Row[]> {
	const rows = new Map<string, Row>();
	// Keys and values of the table belong together; Object.entries forgets that.
	for (const [operation, route] of Object.entries(routes) as [Operation, Route][]) {
		const row = rows.get(route.path) ?? rowOf(route.path);
		row.operations[route.method] = operation;
		rows.set(route.path, row);
	}
	const byLength = new Map<number, Row[]>();
	for (const row of rows.values()) {
		row.allow = allowOf(row.operations);
		const length = row.parts.length;
		byLength.set(length, [...(byLength.get(length) ?? []), row]);
	}
	for (const same of byLength.values()) same.sort((a, b) => a.names.length - b.names.length);
	return byLength;
}

function rowOf(path: string): Row {
	const parts = path.slice(1, -1).split('/');
	const wanted = parts.map((part) => (part.startsWith('{') ? null : part));
	const names = parts.flatMap((part, index) =>
		part.startsWith('{') ? [[part.slice(1, -1), index] as const] : [],
	);
	return { template: path, parts: wanted, names, operations: {}, allow: '' };
}

// Django's View lists methods in this order; HEAD follows from GET, unless that GET has an effect.
function allowOf(operations: Row['operations']): string {
	const methods: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
	const get = operations.GET === undefined ? undefined : routes[operations.GET];
	const hasHead = get !== undefined && get.isUnsafe !== true;
	return [
		...methods.filter((method) => operations[method] !== undefined),
		...(hasHead ? ['HEAD'] : []),
		'OPTIONS',
	].join(', ');
}

function isServicePath(path: string): path is ServicePathName {
	return servicePaths.has(path);
}

function decodeParts(path: string): string[] | null {
	if (!path.startsWith('/')) return null;
	const text = path.endsWith('/') ? path.slice(1, -1) : path.slice(1);
	try {
		const parts = text.split('/').map(decodeURIComponent);
		return parts.includes('') ? null : parts;
	} catch {
		return null;
	}
}

/** Query parameters by kind. Absent and unusable values are distinguished where the service does. */
export interface Query {
	/** The last value; `undefined` when absent. */
	text(name: string): string | undefined;
	/** The same for a text that is looked for as it is. Throws `invalid` for NUL. */
	exact(name: string): string | undefined;
	/** A filter by django-filter's rules: trimmed, and none when blank. Throws `invalid` for NUL. */
	filter(name: string): string | undefined;
	/**
	 * An integer by Python's rules (` 01` is 1); `NaN` for any other text, so that a page of that number does not exist.
	 */
	integer(name: string): number | undefined;
	/** True/False/true/false/1/0; any other value does not filter, `FALSE` too (api-decisions 9, 43). */
	boolean(name: string): boolean | undefined;
	/** The documented parameters of the report; `event_types` with all its values. */
	reportQuery(): Record<string, string | string[]>;
	/** The query with `page` set or, for null, without: sorted and encoded as DRF's links are; no `?`. */
	withPage(page: number | null): string;
}

/** `text` without its `?`; never throws. */
export function parseQuery(text: string): Query {
	return text === '' ? noQuery : queryOf(collect(new URLSearchParams(text)));
}

function queryOf(values: ReadonlyMap<string, string[]>): Query {
	const last = (name: string) => values.get(name)?.at(-1);
	return {
		text: last,
		exact: (name) => withoutNul(name, last(name)),
		filter: (name) => filterOf(name, last(name)),
		integer: (name) => numberOf(last(name)),
		boolean: (name) => booleans.get(last(name) ?? ''),
		reportQuery: () => {
			const single = ['date_from', 'date_to', 'campaign_unique_id'].flatMap((name) => {
				const value = last(name);
				return value === undefined ? [] : [[name, value] as const];
			});
			const types = values.get('event_types');
			return { ...Object.fromEntries(single), ...(types !== undefined && { event_types: types }) };
		},
		withPage: (page) => encode(page === null ? without(values) : new Map(values).set('page', [String(page)])),
	};
}

const noQuery = queryOf(new Map());

function withoutNul(name: string, text: string | undefined): string | undefined {
	if (text?.includes('\0') !== true) return text;
	throw invalid({ [name]: [{ code: 'null_characters_not_allowed', message: texts.nullCharacters }] });
}

function filterOf(name: string, text: string | undefined): string | undefined {
	const trimmed = trimWhitespace(withoutNul(name, text) ?? '');
	return trimmed === '' ? undefined : trimmed;
}

const booleans: ReadonlyMap<string, boolean> = new Map([
	['True', true],
	['False', false],
	['true', true],
	['false', false],
	['1', true],
	['0', false],
]);

function collect(parameters: URLSearchParams): Map<string, string[]> {
	const values = new Map<string, string[]>();
	for (const [name, value] of parameters) {
		const known = values.get(name);
		if (known === undefined) values.set(name, [value]);
		else known.push(value);
	}
	return values;
}

function numberOf(text: string | undefined): number | undefined {
	if (text === undefined) return undefined;
	return parseInteger(text) ?? Number.NaN;
}

function without(values: ReadonlyMap<string, readonly string[]>): Map<string, readonly string[]> {
	const rest = new Map(values);
	rest.delete('page');
	return rest;
}

// urllib.parse.urlencode(sorted(…), doseq=True), which DRF's replace_query_param calls.
function encode(values: ReadonlyMap<string, readonly string[]>): string {
	return [...values]
		.sort(([a], [b]) => (a < b ? -1 : 1))
		.flatMap(([name, all]) => all.map((value) => `${quotePlus(name)}=${quotePlus(value)}`))
		.join('&');
}

function quotePlus(text: string): string {
	return encodeURIComponent(text)
		.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
		.replaceAll('%20', '+');
}

/** The page of a query, by number or `last`. Throws the errors of `read`: `not_found` "Invalid page." for any other page. */
export async function readPage<Results extends { length: number }>(
	query: Query,
	read: (request: PageRequest) => Promise<Page<unknown, Results>>,
): Promise<Page<unknown, Results>> {
	const page_size = query.integer('page_size');
	const size = page_size === undefined ? {} : { page_size };
	if (query.text('page') === 'last') return relink(query, await readLast(size, read));
	const page = query.integer('page');
	return relink(query, await read({ ...size, ...(page !== undefined && { page }) }));
}

/** `?page=last` is DRF's. The first page shows the number of pages. */
async function readLast<Results extends { length: number }>(
	size: PageRequest,
	read: (request: PageRequest) => Promise<Page<unknown, Results>>,
): Promise<Page<unknown, Results>> {
	const first = await read({ ...size });
	if (first.next === null) return first;
	return read({ ...size, page: Math.ceil(first.count / first.results.length) });
}

/** Base and path of a link are the Api's; its query is the request's with another page. */
function relink<Results>(query: Query, page: Page<unknown, Results>): Page<unknown, Results> {
	const { count, results, cursor } = page;
	const [next, previous] = [link(query, page.next), link(query, page.previous)];
	return { count, next, previous, results, ...(cursor !== undefined && { cursor }) };
}

function link(query: Query, url: string | null): string | null {
	if (url === null) return null;
	const at = url.indexOf('?');
	const place = at === -1 ? url : url.slice(0, at);
	const number = at === -1 ? null : new URLSearchParams(url.slice(at)).get('page');
	const text = query.withPage(number === null ? null : Number(number));
	return text === '' ? place : `${place}?${text}`;
}
