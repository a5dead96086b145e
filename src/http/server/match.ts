/** From a path to what may be done there. The last slash may be missing; ids are looked at later, as DRF does. */
import { type Method, metricsPath, type Operation, openPaths, type Route, routes } from '../routes.js';

/** A path of the table: its operations by method, and the parts that stand for ids. */
export interface Place {
	kind: 'operations';
	/** As the table has it, `{id}` and all. */
	path: string;
	operations: Readonly<Partial<Record<Method, Operation>>>;
	/** Methods in DRF's order, for the header. */
	allow: string;
	/** Decoded parts by name. */
	values: Readonly<Record<string, string>>;
}

/** A path that every deployment of ours has, beside the table. */
export interface OwnPlace {
	kind: 'own';
	path: OwnPath;
	allow: string;
}

export type OwnPath = (typeof openPaths)[keyof typeof openPaths] | typeof metricsPath;

/** Ids of a path, or null when one of them cannot be one. */
export interface PathIds {
	ids: Record<string, number>;
	uuids: Record<string, string>;
}

const readOnly = 'GET, HEAD, OPTIONS';
const ownPaths: ReadonlySet<string> = new Set([...Object.values(openPaths), metricsPath]);

/** `path` without query, as sent. Null: nothing is there. */
export function findPlace(path: string): Place | OwnPlace | null {
	if (isOwn(path)) return { kind: 'own', path, allow: readOnly };
	const parts = decodeParts(path);
	if (parts === null) return null;
	for (const { template, names, ...place } of table.get(parts.length) ?? []) {
		if (!template.every((part, index) => part === null || part === parts[index])) continue;
		const values = names.map(([name, index]) => [name, parts[index] ?? '']);
		return { kind: 'operations', ...place, values: Object.fromEntries(values) };
	}
	return null;
}

/** Integers in plain decimal digits, UUIDs in any case; null when a part is neither. */
export function readIds(values: Place['values']): PathIds | null {
	const ids: Record<string, number> = {};
	const uuids: Record<string, string> = {};
	for (const [name, text] of Object.entries(values)) {
		if (name === 'uuid') {
			if (!uuidPattern.test(text)) return null;
			uuids[name] = text.toLowerCase();
		} else {
			const id = /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN;
			if (!Number.isSafeInteger(id)) return null;
			ids[name] = id;
		}
	}
	return { ids, uuids };
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

interface Row {
	path: string;
	/** `null` stands for any part. */
	template: readonly (string | null)[];
	names: readonly (readonly [string, number])[];
	operations: Partial<Record<Method, Operation>>;
	allow: string;
}

const table = compile();

/** By number of parts; what is spelt out comes before what stands for an id (`progress` before `{uuid}`). */
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
		const length = row.template.length;
		byLength.set(length, [...(byLength.get(length) ?? []), row]);
	}
	for (const same of byLength.values()) same.sort((a, b) => a.names.length - b.names.length);
	return byLength;
}

function rowOf(path: string): Row {
	const parts = path.slice(1, -1).split('/');
	const template = parts.map((part) => (part.startsWith('{') ? null : part));
	const names = parts.flatMap((part, index) =>
		part.startsWith('{') ? [[part.slice(1, -1), index] as const] : [],
	);
	return { path, template, names, operations: {}, allow: '' };
}

// Django's View lists methods in this order; HEAD follows from GET, unless looking does something.
function allowOf(operations: Row['operations']): string {
	const methods: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
	const get = operations.GET === undefined ? undefined : routes[operations.GET];
	const hasHead = get !== undefined && !('isUnsafe' in get);
	return [
		...methods.filter((method) => operations[method] !== undefined),
		...(hasHead ? ['HEAD'] : []),
		'OPTIONS',
	].join(', ');
}

function isOwn(path: string): path is OwnPath {
	return ownPaths.has(path);
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
