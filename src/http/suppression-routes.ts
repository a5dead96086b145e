/** Suppressions as HTTP has them (api-decisions 38). Bodies name the address: in a path it would stand in every log. */
import type { Route } from './routes.js';

const suppressions = '/ext/suppressions/';
const filters = ['email__icontains', 'email__exact', 'reason', 'source'] as const;

/** Part of the one table. */
export const suppressionRoutes = {
	'ext.suppressions.page': {
		method: 'GET',
		path: suppressions,
		success: 200,
		scope: 'read',
		query: [...filters, 'page', 'page_size'],
		extension: 'suppressions',
	},
	/** `{results, next}`; `next` is the `cursor` of what follows. For reading all of them, where pages would be slow. */
	'ext.suppressions.slice': {
		method: 'GET',
		path: '/ext/suppressions/slices/',
		success: 200,
		scope: 'read',
		query: [...filters, 'cursor', 'limit'],
		extension: 'suppressions',
	},
	/** Body `{email, reason, expires_at}`. */
	'ext.suppressions.create': {
		method: 'POST',
		path: suppressions,
		success: 201,
		scope: 'admin',
		hasBody: true,
		extension: 'suppressions',
	},
	/** Body `{rows: […]}`, at most 5,000. PUT: the same rows again change nothing. */
	'ext.suppressions.put': {
		method: 'PUT',
		path: suppressions,
		success: 200,
		scope: 'admin',
		hasBody: true,
		extension: 'suppressions',
	},
	/** Body as of a PUT; nothing is written. */
	'ext.suppressions.check': {
		method: 'POST',
		path: '/ext/suppressions/check/',
		success: 200,
		scope: 'read',
		hasBody: true,
		extension: 'suppressions',
	},
	/** Body `{email}`, or with `reason` that one alone. */
	'ext.suppressions.remove': {
		method: 'POST',
		path: '/ext/suppressions/remove/',
		success: 200,
		scope: 'admin',
		hasBody: true,
		extension: 'suppressions',
	},
} as const satisfies Record<string, Route>;
