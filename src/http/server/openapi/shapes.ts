/** Pieces of the schemas of answers. */
import { messageStates } from '../../../api/records.js';
import type { JsonSchema } from '../../../api/schema/field.js';

/** A reference to one of the document's schemas. */
export function ref(name: string): JsonSchema {
	return { $ref: `#/components/schemas/${name}` };
}

/** The envelope of a collection. `more`: what may be in it besides. */
export function pageOf(name: string, more: Record<string, JsonSchema> = {}): JsonSchema {
	const link = { type: ['string', 'null'], format: 'uri' };
	const results = { type: 'array', items: ref(name) };
	return record({ count, next: link, previous: link, results, ...more }, Object.keys(more));
}

export const text = { type: 'string' };
export const textOrNull = { type: ['string', 'null'] };
export const id = { type: 'integer', minimum: 1 };
export const count = { type: 'integer', minimum: 0 };
export const flag = { type: 'boolean' };
export const uuid = { type: 'string', format: 'uuid' };
export const uuidOrNull = { type: ['string', 'null'], format: 'uuid' };
export const moment = {
	type: 'string',
	description: 'UTC without a zone, six fractional digits.',
	pattern: String.raw`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$`,
};
export const momentOrNull = { ...moment, type: ['string', 'null'] };
export const day = { type: 'string', pattern: String.raw`^\d{2}\.\d{2}\.\d{4}$` };
export const states = {
	type: 'object',
	description: 'Messages by state; absent = 0.',
	properties: Object.fromEntries(messageStates.map((state) => [state, count])),
	additionalProperties: false,
};

/** All keys are always present but for the optional ones. */
export function record(properties: Record<string, JsonSchema>, optional: readonly string[] = []): JsonSchema {
	const required = Object.keys(properties).filter((name) => !optional.includes(name));
	return { type: 'object', properties, required };
}

export function listOf(items: JsonSchema): JsonSchema {
	return { type: 'array', items };
}
