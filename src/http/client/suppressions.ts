/** Suppressions of a deployment of ours. */
import type { Suppressions } from '../../api/suppressions.js';
import { type Check, every, listOf, pageOf, record, within } from './decode.js';
import { encodeQuery } from './encode.js';
import type { AskFor } from './extensions.js';
import { pageQuery } from './resources.js';

const suppression: Check = record({ email: 'text', reason: 'text', source: 'text' });
const ack = every(
	within('counts', record({ created: 'count', updated: 'count', unchanged: 'count', rejected: 'count' })),
	record({ rejects: 'array' }),
);

/** The extension over its routes. */
export function suppressions(ask: AskFor): Suppressions {
	return {
		page: (request, call) =>
			ask({ operation: 'ext.suppressions.page', query: pageQuery(request), call }, pageOf(suppression)),
		slice: (request, call) =>
			ask(
				{ operation: 'ext.suppressions.slice', query: encodeQuery({ ...request }), call },
				within('results', listOf(suppression)),
			),
		create: (body, call) => ask({ operation: 'ext.suppressions.create', body, call }, suppression),
		put: (rows, call) => ask({ operation: 'ext.suppressions.put', body: { rows }, call }, ack),
		check: (rows, call) => ask({ operation: 'ext.suppressions.check', body: { rows }, call }, ack),
		remove: (body, call) =>
			ask(
				{ operation: 'ext.suppressions.remove', body, call },
				every(within('removed', listOf(suppression)), record({ inactive_subscribers: 'count' })),
			),
	};
}
