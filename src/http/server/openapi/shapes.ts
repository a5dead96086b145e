/** The shapes that schemas of records are made of. */
import type { JsonSchema } from '../../../api/schema/field.js';

export const text = { type: 'string' };
export const textOrNull = { type: ['string', 'null'] };
export const count = { type: 'integer', minimum: 0 };

/** All keys are always present. */
export function record(properties: Record<string, JsonSchema>): JsonSchema {
	return { type: 'object', properties, required: Object.keys(properties) };
}

export function listOf(items: JsonSchema): JsonSchema {
	return { type: 'array', items };
}

/** A reference to one of the document's schemas. */
export function ref(name: string): JsonSchema {
	return { $ref: `#/components/schemas/${name}` };
}
