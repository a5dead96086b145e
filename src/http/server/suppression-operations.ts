/** The routes of suppressions as calls of the `Api`. */
import type { SuppressionFilter, SuppressionRow } from '../../api/suppressions.js';
import { parseBody, suppressionRows } from './bodies.js';
import type { Perform } from './operations.js';
import { readPage } from './page.js';
import type { Query } from './query.js';

/** Part of the one table. Values are the Api's business; what comes in is handed on as it came. */
export const suppressionOperations = {
	'ext.suppressions.page': ({ ext }, { query, call }) => {
		const filter = filterOf(query);
		return readPage(query, (page) => ext.suppressions.page({ ...filter, ...page }, call));
	},
	'ext.suppressions.slice': ({ ext }, { query, call }) => {
		const cursor = query.text('cursor');
		const request = { ...filterOf(query), limit: query.integer('limit') ?? 1000 };
		return ext.suppressions.slice({ ...request, ...(cursor !== undefined && { cursor }) }, call);
	},
	'ext.suppressions.create': ({ ext }, { body, call }) => ext.suppressions.create(unchecked(body), call),
	'ext.suppressions.put': ({ ext }, { body, call }) => ext.suppressions.put(rowsOf(body), call),
	'ext.suppressions.check': ({ ext }, { body, call }) => ext.suppressions.check(rowsOf(body), call),
	'ext.suppressions.remove': ({ ext }, { body, call }) => ext.suppressions.remove(unchecked(body), call),
} as const satisfies Record<string, Perform>;

function rowsOf(body: unknown): readonly SuppressionRow[] {
	return unchecked(parseBody(suppressionRows, body).rows);
}

function filterOf(query: Query): SuppressionFilter {
	const names = ['email__icontains', 'email__exact', 'reason', 'source'] as const;
	const values = names.flatMap((name) => {
		const value = query.filter(name);
		return value === undefined ? [] : [[name, value] as const];
	});
	return unchecked(Object.fromEntries(values));
}

/** The engine checks every input itself, rows and words too. */
function unchecked<T>(value: unknown): T {
	return value as T;
}
