import { ApiError } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import type { Field } from '../../api/records.js';
import type { CommandContext } from '../frame/context.js';
import { type Column, type Columns, parseFields, unknownField } from '../render/columns.js';
import { collect, unknownColumn, walk } from './listing.js';

export function metaName(variable: string): string {
	return `meta.${variable}`;
}

export async function readFields(cx: CommandContext): Promise<Field[]> {
	return collect(walk((await cx.api()).fields, {}, { signal: cx.signal }));
}

/** Finds a field by variable or else by name, preferring exact case. Null if no field matches, or several do. */
export function variableOf(fields: readonly Field[], text: string): string | null {
	const same = (one: string) => one === text;
	const alike = (one: string) => one.toLowerCase() === text.toLowerCase();
	const ways = (['variable', 'name'] as const).flatMap((key) =>
		[same, alike].map((isMeant) => fields.filter((field) => isMeant(field[key]))),
	);
	const found = ways.find(({ length }) => length > 0) ?? [];
	return found.length === 1 ? (found[0]?.variable ?? null) : null;
}

export function readableFields(cx: CommandContext): Promise<Field[] | null> {
	return readFields(cx).catch((error: unknown) => {
		if (error instanceof ApiError && error.http !== null && error.http.status < 500) return null;
		throw error;
	});
}

/** Replaces the name of a field in `--sort meta.NAME` by its variable. Throws `UsageError` for an unknown field. */
export async function sortByVariable<T>(
	cx: CommandContext,
	sort: string | undefined,
	columns: Columns<T>,
): Promise<string | undefined> {
	const [, sign = '', typed] = /^(-?)meta\.(.+)$/.exec(sort ?? '') ?? [];
	const fields = typed === undefined ? null : await readableFields(cx);
	if (typed === undefined || fields === null) return sort;
	const variable = variableOf(fields, typed);
	if (variable === null) throw unknownColumn(metaName(typed), validNames(columns, fields));
	return `${sign}${metaName(variable)}`;
}

function validNames<T>(columns: Columns<T>, fields: readonly Field[]): string[] {
	return [...columns.map(({ key }) => key), ...fields.map(({ variable }) => metaName(variable))];
}

/**
 * Adds a column for each `meta.X` of `--fields`. Throws `UsageError` for an unknown field. If the service refuses to
 * list fields, returns the columns unchanged, and any X is accepted.
 */
export async function withMetaColumns<T>(cx: CommandContext, columns: Columns<T>): Promise<Columns<T>> {
	const named = (parseFields(cx.globals.fields) ?? []).filter((one) => /^meta\../.test(one));
	const whole = columns.find(({ key }) => key === 'meta');
	if (named.length === 0 || whole === undefined) return columns;
	const fields = await readableFields(cx);
	if (fields === null) return columns;
	const more = named.map((key): Column<T> => {
		const typed = key.slice('meta.'.length);
		const variable = variableOf(fields, typed);
		if (variable === null) throw unknownField(key, validNames(columns, fields));
		return {
			key,
			header: typed.toUpperCase(),
			wide: true,
			value: (record) => {
				const meta = whole.value(record);
				return isRecord(meta) && Object.hasOwn(meta, variable) ? meta[variable] : null;
			},
		};
	});
	return [...columns, ...more];
}
