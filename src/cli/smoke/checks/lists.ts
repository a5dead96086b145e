/** Lists. Service document, "Lists". */

import { type CheckContext, paths } from '../check-context.js';
import type { Check } from '../model.js';
import { listShape } from '../shapes.js';
import { collectionChecks } from './collections.js';
import { crudChecks } from './crud.js';

/** In the order of `crudChecks`. The list stays empty, so its three counters must be 0. */
export function listChecks({ names, records }: CheckContext): Check[] {
	const base = { group: 'lists', one: 'list', shape: listShape, path: async () => paths.lists } as const;
	const body = { name: names.list, email_reason: 'a check of this deployment' };
	const replaced = { name: `${names.list}-replaced`, email_reason: 'a check, replaced' };
	const none = {
		active_subscribers_count: 0,
		inactive_subscribers_count: 0,
		overall_subscribers_count: 0,
	};
	return crudChecks(
		{
			...base,
			mark: 'name',
			post: (probe, ask) => records.create(probe, 'list', ask),
			create: async () => ({ body, expected: { ...body, ...none } }),
			patch: { name: `${names.list}-patched` },
			replace: { body: replaced, expected: { ...replaced, ...none } },
			refusals: [
				{
					id: 'requires-reason',
					what: 'a list without email_reason',
					body: { name: `${names.list}-refused` },
					key: 'email_reason',
					isDocumented: true,
				},
			],
		},
		collectionChecks(base),
	);
}
