/** Additional fields. Service document, "Additional fields". */

import { type CheckContext, paths } from '../check-context.js';
import type { Check } from '../model.js';
import { fieldShape } from '../shapes.js';
import { collectionChecks } from './collections.js';
import { crudChecks } from './crud.js';

/** In the order of `crudChecks`. The document does not make variables unique: taking one twice is a deviation. */
export function fieldChecks({ names, records }: CheckContext): Check[] {
	const base = { group: 'fields', one: 'field', shape: fieldShape, path: async () => paths.fields } as const;
	const body = { variable: names.variable, name: 'Smoke' };
	const replaced = { variable: `${names.variable}_replaced`, name: 'Smoke, replaced' };
	return crudChecks(
		{
			...base,
			mark: 'variable',
			post: (probe, ask) => records.create(probe, 'field', ask),
			create: async () => ({ body, expected: body }),
			patch: { variable: `${names.variable}_patched` },
			replace: { body: replaced, expected: replaced },
			refusals: [
				{
					id: 'requires-name',
					what: 'a field without a name',
					body: { variable: `${names.variable}_refused` },
					key: 'name',
					isDocumented: true,
				},
				{
					id: 'unique',
					what: 'a second field of the same variable',
					body: replaced,
					key: 'variable',
					isDocumented: false,
				},
			],
		},
		collectionChecks(base),
	);
}
