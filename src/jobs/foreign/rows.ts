/** A row of an import as a deployment that is not ours takes it: what to create, what to change. Pure. */
import { type EmailKey, emailKey } from '../../api/address.js';
import type { ImportBatch } from '../../api/capabilities.js';
import type { SubscriberInput } from '../../api/inputs.js';
import { parseMetaCell } from '../../api/meta-cell.js';
import type { Meta, MetaValue, Subscriber } from '../../api/records.js';

/** `null` keeps what is there. */
export interface ForeignRow {
	/** Trimmed; whether it is an address is for the service to say. */
	email: string;
	key: EmailKey;
	name: string | null;
	/** A reason alone means inactive, as our own engine reads it. */
	isActive: boolean | null;
	/** The document knows no way to set one. */
	hasReason: boolean;
	/** Only the cells that are given. */
	meta: ReadonlyMap<string, MetaValue>;
}

/** What of a subscriber decides whether a row changes anything. */
export type Known = Pick<Subscriber, 'id' | 'email' | 'name' | 'is_active' | 'meta'>;

/** One entry a row, in order. */
export function readRows({ columns, cells }: ImportBatch): ForeignRow[] {
	const width = columns.length;
	const rows: ForeignRow[] = [];
	for (let start = 0; start + width <= cells.length; start += width)
		rows.push(readRow(columns, cells.slice(start, start + width)));
	return rows;
}

function readRow(columns: readonly string[], cells: readonly (string | null)[]): ForeignRow {
	const cell = (name: string) => cells[columns.indexOf(name)] ?? null;
	const email = (cell('email') ?? '').trim();
	const hasReason = (cell('disable_reason') ?? '').trim() !== '';
	const active = cell('is_active');
	const meta = columns.flatMap((column, index): [string, string][] => {
		const value = cells[index] ?? null;
		return column.startsWith('meta.') && value !== null ? [[column.slice('meta.'.length), value]] : [];
	});
	// What is no object says nothing here; who reads the table has refused it before.
	const stated = parseMetaCell(cell('meta'));
	return {
		email,
		key: emailKey(email),
		name: cell('name')?.trim() ?? null,
		isActive: active === null ? (hasReason ? false : null) : active === 'true',
		hasReason,
		meta: new Map([...(stated.kind === 'values' ? stated.values : []), ...meta]),
	};
}

/** Active unless the row says otherwise, which is the service's own default. */
export function creationOf({ email, name, isActive, meta }: ForeignRow): SubscriberInput {
	return {
		email,
		...(name !== null && { name }),
		...(meta.size > 0 && { meta: Object.fromEntries(meta) }),
		...(isActive === false && { is_active: false }),
	};
}

/**
 * What a row changes of somebody who is there, null when nothing. Activity is left alone unless the row takes it away
 * or `reactivate` gives it back. PATCH replaces meta whole, so that of `known` goes along.
 */
export function patchOf(
	{ name, isActive, meta }: ForeignRow,
	known: Known,
	reactivate: boolean,
): Partial<SubscriberInput> | null {
	const isMetaChanged = [...meta].some(
		([key, value]) => !Object.hasOwn(known.meta, key) || known.meta[key] !== value,
	);
	const patch: Partial<SubscriberInput> = {
		...(name !== null && name !== known.name && { name }),
		...(isMetaChanged && { meta: mergedMeta(known.meta, meta) }),
		...(isActive === false && known.is_active && { is_active: false }),
		...(isActive !== false && reactivate && !known.is_active && { is_active: true }),
	};
	return Object.keys(patch).length === 0 ? null : patch;
}

/** Entries, never assignments: a key may be called `__proto__`. */
function mergedMeta(stored: Readonly<Record<string, unknown>>, given: ReadonlyMap<string, MetaValue>): Meta {
	// A deployment may hold any JSON in meta; it goes back as it came.
	return Object.fromEntries([...Object.entries(stored), ...given]) as Meta;
}
