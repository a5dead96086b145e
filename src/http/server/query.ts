/** The query of a request as Django reads it: the last of repeated values counts, a plus is a blank. */

import { invalid } from '../../api/errors.js';
import { trimWhitespace } from '../../api/schema/python.js';

/** Query parameters by kind. Absent and unusable are told apart where the service does. */
export interface Query {
	/** The last value; `undefined` when absent. */
	text(name: string): string | undefined;
	/** A filter as django-filter reads it: trimmed, and none when blank. Throws `invalid` for NUL. */
	filter(name: string): string | undefined;
	/** `NaN` for what is no plain decimal number, so that a page of that number does not exist. */
	integer(name: string): number | undefined;
	/** True/False/true/false/1/0 in any case; everything else filters nothing (api-decisions 9). */
	boolean(name: string): boolean | undefined;
	/** The documented parameters of the report; `event_types` with all its values. */
	reportQuery(): Record<string, string | string[]>;
	/** The query with `page` set or, for null, without: sorted and encoded as DRF's links are; no `?`. */
	withPage(page: number | null): string;
}

/** `text` without its `?`; never throws, whatever it holds. */
export function parseQuery(text: string): Query {
	const values = text === '' ? none : collect(new URLSearchParams(text));
	const last = (name: string) => values.get(name)?.at(-1);
	return {
		text: last,
		filter: (name) => filterOf(name, last(name)),
		integer: (name) => numberOf(last(name)),
		boolean: (name) => booleans.get(last(name)?.toLowerCase() ?? ''),
		reportQuery: () => {
			const single = ['date_from', 'date_to', 'campaign_unique_id'].flatMap((name) => {
				const value = last(name);
				return value === undefined ? [] : [[name, value] as const];
			});
			const types = values.get('event_types');
			return { ...Object.fromEntries(single), ...(types !== undefined && { event_types: types }) };
		},
		withPage: (page) => encode(page === null ? without(values) : new Map(values).set('page', [String(page)])),
	};
}

const none: ReadonlyMap<string, string[]> = new Map();

function filterOf(name: string, text: string | undefined): string | undefined {
	if (text?.includes('\0') === true)
		throw invalid({
			[name]: [{ code: 'null_characters_not_allowed', message: 'Null characters are not allowed.' }],
		});
	const trimmed = trimWhitespace(text ?? '');
	return trimmed === '' ? undefined : trimmed;
}

const booleans: ReadonlyMap<string, boolean> = new Map([
	['true', true],
	['false', false],
	['1', true],
	['0', false],
]);

function collect(parameters: URLSearchParams): Map<string, string[]> {
	const values = new Map<string, string[]>();
	for (const [name, value] of parameters) {
		const known = values.get(name);
		if (known === undefined) values.set(name, [value]);
		else known.push(value);
	}
	return values;
}

function numberOf(text: string | undefined): number | undefined {
	if (text === undefined) return undefined;
	return /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN;
}

function without(values: ReadonlyMap<string, readonly string[]>): Map<string, readonly string[]> {
	const rest = new Map(values);
	rest.delete('page');
	return rest;
}

// urllib.parse.urlencode(sorted(…), doseq=True), which DRF's replace_query_param calls.
function encode(values: ReadonlyMap<string, readonly string[]>): string {
	return [...values]
		.sort(([a], [b]) => (a < b ? -1 : 1))
		.flatMap(([name, all]) => all.map((value) => `${quotePlus(name)}=${quotePlus(value)}`))
		.join('&');
}

function quotePlus(text: string): string {
	return encodeURIComponent(text)
		.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
		.replaceAll('%20', '+');
}
