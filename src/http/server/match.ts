import { invalid } from '../../api/errors.js';
import {
	type Method,
	metricsPath,
	type Operation,
	type OperationName,
	openPaths,
	operations,
} from '../../api/operations.js';
import { parseInteger, trimWhitespace } from '../../api/schema/python.js';
import { texts } from '../../api/schema/texts.js';
import type { HttpRequest } from '../wire.js';

export interface Match {
	path: ApiPath | ServicePath | null;
	operation: OperationName | null;
	query: Query;
	shownPath: string;
}

export interface ApiPath {
	kind: 'api';
	template: string;
	operations: Readonly<Partial<Record<Method, OperationName>>>;
	allow: string;
	values: Readonly<Record<string, string>>;
	ids: PathIds | null;
}

export interface ServicePath {
	kind: 'service';
	name: ServicePathName;
	allow: string;
}

type ServicePathName = (typeof openPaths)[keyof typeof openPaths] | typeof metricsPath;

export type PathIds = Readonly<Record<string, number | string>>;

/** A proxy may send the whole URL (RFC 9112 s.3.2.2). */
export function originForm(target: string): string {
	return target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
}

export function matchRequest({ method, target: sent }: Pick<HttpRequest, 'method' | 'target'>): Match {
	const [text = '', query = ''] = splitOnce(originForm(sent), '?');
	const path = findPath(text);
	return {
		path,
		operation: path?.kind === 'api' ? operationOf(path, method) : null,
		query: new Query(query),
		shownPath: path?.kind === 'service' || path?.ids != null ? text : maskPath(text),
	};
}

export function operationName({ path, operation }: Match): string {
	if (path?.kind === 'service') return path.name;
	return operation ?? 'other';
}

/** Parses integers like Python (` 01` is 1), and UUIDs in any case. */
export function readIds(values: ApiPath['values']): PathIds | null {
	const ids: Record<string, number | string> = {};
	for (const [name, text] of Object.entries(values)) {
		const known = name === 'uuid' ? uuidPattern : name === 'sha256' ? sha256Pattern : null;
		const id = known === null ? parseInteger(text) : known.test(text) ? text.toLowerCase() : null;
		if (id === null || (typeof id === 'number' && id < 0)) return null;
		ids[name] = id;
	}
	return ids;
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const sha256Pattern = /^[0-9a-f]{64}$/i;

function findPath(path: string): ApiPath | ServicePath | null {
	if (isServicePath(path)) return { kind: 'service', name: path, allow: readOnly };
	const parts = decodeParts(path);
	if (parts === null) return null;
	const fits = (part: string | null, index: number) => part === null || part === parts[index];
	const row = table.get(parts.length)?.find(({ parts: wanted }) => wanted.every(fits));
	if (row === undefined) return null;
	const { template, operations: here, allow } = row;
	const values: Record<string, string> = {};
	for (const [name, index] of row.names) values[name] = parts[index] ?? '';
	return { kind: 'api', template, operations: here, allow, values, ids: readIds(values) };
}

function operationOf({ operations: here }: ApiPath, method: string): OperationName | null {
	// Refuse HEAD for a GET that has an effect, such as `run_test` (api-decisions 33).
	if (method === 'HEAD') return here.GET !== undefined && isSafe(here.GET) ? here.GET : null;
	return Object.hasOwn(here, method) ? (here[method as Method] ?? null) : null;
}

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
	parts: readonly (string | null)[];
	names: readonly (readonly [string, number])[];
	operations: Partial<Record<Method, OperationName>>;
	allow: string;
}

const table = compile();

/** Fixed segments come before placeholders (`progress` before `{uuid}`). */
function compile(): ReadonlyMap<number, readonly Row[]> {
	const rows = new Map<string, Row>();
	for (const [name, { path, method }] of Object.entries(operations) as [OperationName, Operation][]) {
		const row = rows.get(path) ?? rowOf(path);
		row.operations[method] = name;
		rows.set(path, row);
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

// Lists methods in Django's order.
function allowOf(here: Row['operations']): string {
	const methods: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
	const hasHead = here.GET !== undefined && isSafe(here.GET);
	return [
		...methods.filter((method) => here[method] !== undefined),
		...(hasHead ? ['HEAD'] : []),
		'OPTIONS',
	].join(', ');
}

function isSafe(name: OperationName): boolean {
	const operation: Operation = operations[name];
	return operation.isUnsafe !== true;
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

/** Parses query parameters like Django: the last of repeated values counts, and a plus is a space. */
export class Query {
	readonly #values = new Map<string, string[]>();

	constructor(text: string) {
		if (text === '') return;
		for (const [name, value] of new URLSearchParams(text)) {
			const known = this.#values.get(name);
			if (known === undefined) this.#values.set(name, [value]);
			else known.push(value);
		}
	}

	text(name: string): string | undefined {
		return this.#values.get(name)?.at(-1);
	}

	texts(name: string): readonly string[] | undefined {
		return this.#values.get(name);
	}

	exact(name: string): string | undefined {
		const text = this.text(name);
		if (text?.includes('\0') !== true) return text;
		throw invalid({ [name]: [{ code: 'null_characters_not_allowed', message: texts.nullCharacters }] });
	}

	filter(name: string): string | undefined {
		const trimmed = trimWhitespace(this.exact(name) ?? '');
		return trimmed === '' ? undefined : trimmed;
	}

	integer(name: string): number | undefined {
		const text = this.text(name);
		return text === undefined ? undefined : (parseInteger(text) ?? Number.NaN);
	}

	/** Treats any other value as missing (api-decisions 43). */
	boolean(name: string): boolean | undefined {
		const text = this.text(name) ?? '';
		if (['True', 'true', '1'].includes(text)) return true;
		return ['False', 'false', '0'].includes(text) ? false : undefined;
	}

	/** Encodes the query like DRF's replace_query_param: `urlencode(sorted(…), doseq=True)`. */
	withPage(page: number | null): string {
		const values = new Map(this.#values);
		if (page === null) values.delete('page');
		else values.set('page', [String(page)]);
		return [...values]
			.sort(([a], [b]) => (a < b ? -1 : 1))
			.flatMap(([name, all]) => all.map((value) => `${quotePlus(name)}=${quotePlus(value)}`))
			.join('&');
	}
}

function quotePlus(text: string): string {
	return encodeURIComponent(text)
		.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
		.replaceAll('%20', '+');
}
