/** One line of NDJSON as cells by column name. Pure. */
import { parseJson } from '../../api/json.js';
import type { RowFault } from './finding.js';
import { faultMessages } from './row-faults.js';

/** `cells` by column, in the order of the object; names may be those of objects (`__proto__`), so never an object. */
export type JsonRecord =
	| { kind: 'record'; cells: ReadonlyMap<string, string> }
	| { kind: 'bad'; code: RowFault; error: string };

/**
 * An import takes texts: numbers and booleans become the text they are written as, null and an absent key an empty
 * cell (which keeps what is there). `meta` as an object, or as the text of one, becomes columns `meta.x`, and a column
 * `meta` for those of its values that are no texts; any other object or array stays its JSON, so that a column nobody
 * wants does not cost the row.
 */
export function parseRecord(line: string): JsonRecord {
	const parsed = parseJson(line);
	if (parsed.kind === 'invalid') return refusals[parsed.code];
	if (!isObject(parsed.value)) return bad('bad_json', faultMessages.bad_json);
	const cells = new Map<string, string>();
	for (const [key, value] of Object.entries(parsed.value)) {
		const meta = key === 'meta' ? metaOf(value) : null;
		const entries = meta === null ? [[key, value] as const] : metaEntries(meta);
		for (const [name, item] of entries) {
			if (!isAsWritten(item, line))
				return bad('bad_json', `${name}: a number this long would be changed: quote it`);
			if (meta === null || !isTyped(item)) cells.set(name, cellOf(item));
			else cells.set(name, '');
		}
		if (meta !== null) cells.set('meta', typedValues(meta));
	}
	return { kind: 'record', cells };
}

/** What no cell of its own can say: an empty one keeps what is there. */
function isTyped(value: unknown): boolean {
	return value === null || value === '' || typeof value === 'number' || typeof value === 'boolean';
}

/** The JSON of an object, empty when all values are texts. */
function typedValues(meta: Readonly<Record<string, unknown>>): string {
	const typed = Object.entries(meta).filter(([, value]) => isTyped(value));
	return typed.length === 0 ? '' : JSON.stringify(Object.fromEntries(typed));
}

/** JSON's numbers are read with 53 bits: a longer one must stand in the line as it would be written again. */
function isAsWritten(value: unknown, line: string): boolean {
	if (typeof value !== 'number' || Number.isSafeInteger(value)) return true;
	return Number.isFinite(value) && (!Number.isInteger(value) || line.includes(String(value)));
}

function bad(code: RowFault, error: string): JsonRecord & { kind: 'bad' } {
	return { kind: 'bad', code, error };
}

const refusals = {
	syntax: bad('bad_json', faultMessages.bad_json),
	too_deep: bad('bad_json', 'JSON that is nested too deep'),
	null_characters_not_allowed: bad('nul', faultMessages.nul),
	surrogate_characters_not_allowed: bad('encoding', 'half a character (a lone surrogate)'),
} as const;

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The service document shows meta as the text of an object, its answers hold the object. */
function metaOf(value: unknown): Readonly<Record<string, unknown>> | null {
	if (isObject(value)) return value;
	if (typeof value !== 'string') return null;
	const parsed = parseJson(value);
	return parsed.kind === 'valid' && isObject(parsed.value) ? parsed.value : null;
}

function metaEntries(meta: Readonly<Record<string, unknown>>): (readonly [string, unknown])[] {
	return Object.entries(meta).map(([variable, value]) => [`meta.${variable}`, value] as const);
}

function cellOf(value: unknown): string {
	if (value === null || value === undefined) return '';
	if (typeof value === 'string') return value;
	return typeof value === 'number' ? String(value) : JSON.stringify(value);
}
