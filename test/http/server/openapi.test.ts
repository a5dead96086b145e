import { describe, expect, it } from 'vitest';
import { operations } from '../../../src/api/operations.js';
import { describeApi } from '../../../src/http/server/openapi.js';
import { ask, deploy } from './serving.js';

const document = describeApi('0.0.0');

interface Described {
	operationId: string;
	parameters?: { name: string; in: string; required?: boolean; schema: object }[];
	responses: Record<string, object>;
}

const paths = document['paths'] as Record<string, Record<string, Described>>;
const described = Object.entries(paths).flatMap(([path, methods]) =>
	Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

describe('the OpenAPI document', () => {
	it('describes every operation once, under its own name', () => {
		const names = described.map(({ operation }) => operation.operationId);
		expect(new Set(names).size).toBe(names.length);
		expect(names).toEqual(expect.arrayContaining(Object.keys(operations)));
		expect(names.filter((name) => name.startsWith('service.')).length).toBe(5);
		expect(names.length).toBe(Object.keys(operations).length + 5);
	});

	it('refers only to existing parts, and contains no unused parts', () => {
		const references = new Set(referencesIn(document));
		for (const reference of references) expect(lookUp(reference), reference).toBeDefined();
		const kept = Object.entries(document['components'] as Record<string, object>)
			.filter(([kind]) => kind !== 'securitySchemes')
			.flatMap(([kind, entries]) => Object.keys(entries).map((name) => `#/components/${kind}/${name}`));
		expect(kept.filter((name) => !references.has(name))).toEqual([]);
	});

	it('is not sent again to a client that already has the current one', async () => {
		const deployment = await deploy();
		const asked = (known: string) =>
			ask(deployment, 'GET', '/openapi.json', { token: null, headers: { 'If-None-Match': known } });
		const etag = (await asked('x')).headers.get('etag') ?? '';
		const answers = await Promise.all([etag, `"other", W/${etag}`, '*', '"other"'].map(asked));
		await deployment.close();
		expect(answers.map(({ status }) => status)).toEqual([304, 304, 304, 200]);
		expect(answers.map(({ text }) => text === '')).toEqual([true, true, true, false]);
		expect(new Set(answers.map(({ headers }) => headers.get('etag')))).toEqual(new Set([etag]));
	});
});

function referencesIn(value: unknown): string[] {
	if (typeof value !== 'object' || value === null) return [];
	return Object.entries(value).flatMap(([key, inner]) =>
		key === '$ref' ? [String(inner)] : referencesIn(inner),
	);
}

function lookUp(reference: string): unknown {
	expect(reference.startsWith('#/')).toBe(true);
	return reference
		.slice(2)
		.split('/')
		.reduce<unknown>(
			(at, part) =>
				typeof at === 'object' && at !== null
					? Object.entries(at).find(([key]) => key === part)?.[1]
					: undefined,
			document,
		);
}
