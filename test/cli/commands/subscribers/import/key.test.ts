import { describe, expect, it } from 'vitest';
import { type ImportIdentity, importKey } from '../../../../../src/cli/commands/subscribers/import/run.js';

const identity: ImportIdentity = {
	spec: { list_id: 1, on_conflict: 'update', reactivate: false },
	source: { sha256: 'ab' },
	mapping: { columns: [{ index: 0, target: 'email' }], newFields: [], ignored: [], leftOut: [] },
	encoding: 'utf8',
	delimiter: ',',
};

describe('the key that identifies an import', () => {
	it('does not depend on new fields or ignored columns', () => {
		const again = {
			...identity,
			mapping: { ...identity.mapping, newFields: [{ variable: 'x', name: 'x' }], ignored: ['y'] },
		};
		expect(importKey(again)).toBe(importKey(identity));
		expect(importKey(identity)).toMatch(/^[0-9a-f]{64}$/);
	});

	it('differs for another list, conflict rule, source, mapping, encoding or delimiter', () => {
		const others: ImportIdentity[] = [
			{ ...identity, spec: { ...identity.spec, list_id: 2 } },
			{ ...identity, spec: { ...identity.spec, on_conflict: 'skip' } },
			{ ...identity, spec: { ...identity.spec, reactivate: true } },
			{ ...identity, source: { sha256: 'ac' } },
			{ ...identity, source: { job: 'ab' } },
			{ ...identity, mapping: { ...identity.mapping, columns: [{ index: 1, target: 'email' }] } },
			{ ...identity, encoding: 'windows-1251' },
			{ ...identity, delimiter: ';' },
		];
		expect(new Set([identity, ...others].map(importKey)).size).toBe(9);
	});
});
