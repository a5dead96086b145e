import type { Call } from './api.js';
import { char, pattern, type TextRule } from './schema/fields.js';
import { fieldSet } from './schema.js';

/** Assumption: a letter or underscore, then up to 63 letters, digits, underscores; ASCII. */
export const variablePattern = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

export const builtInVariables: readonly string[] = [
	'email',
	'name',
	'unsubscribe_url',
	'view_url',
	'email_reason',
];

/** The last one names no variable, but an assignment to it would change an object's prototype instead of its keys. */
export const reservedNames: ReadonlySet<string> = new Set([...builtInVariables, '__proto__']);

const notReserved: TextRule = (value) =>
	reservedNames.has(value) ? { code: 'reserved', message: `"${value}" is a reserved variable name.` } : null;

/** Service document, "Additional fields". */
export const fieldFields = fieldSet({
	// The length has a rule of its own, so that its error is specific.
	variable: pattern(/^[A-Za-z_][A-Za-z0-9_]*$/, { max: 64, rules: [notReserved] }),
	name: char({ max: 255 }),
});

export interface FieldsPlus {
	countUses(id: number, call?: Call): Promise<number>;
}
