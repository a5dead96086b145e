import { withZone } from '../api/datetime.js';
import {
	type Suppression,
	type SuppressionReason,
	type SuppressionRow,
	suppressionReasons,
	suppressionSources,
} from '../api/suppressions.js';
import { fold } from './column-names.js';
import { aliasesOf, type HeaderResult, mapHeader } from './map-columns.js';
import { type State, wordState } from './states.js';
import { formatCsvRow } from './write-csv.js';

export const suppressionParts = [
	'email',
	'reason',
	'list_id',
	'source',
	'date_created',
	'expires_at',
] as const;
export type SuppressionPart = (typeof suppressionParts)[number];

const aliases = {
	email: 'email emailaddress mail address recipient',
	reason: 'reason disablereason type suppressionreason',
	list_id: 'listid list',
	source: 'source',
	date_created: 'datecreated createdat created date',
	expires_at: 'expiresat expires',
};
/** More names of the reason column, for files that have none of its `aliases`. */
const reasonNames =
	'status state statut estado stato bouncetype grund motif raison motivo reden powód orsak ステータス 理由';

const reasonOfState: Readonly<Partial<Record<State, SuppressionReason>>> = {
	unsubscribed: 'UNSUBSCRIBED',
	bounced: 'HARDBOUNCED',
	complained: 'COMPLAINED',
};
const otherReasons: ReadonlyMap<string, SuppressionReason> = new Map([
	['softbounce', 'SOFTBOUNCED'],
	['manualsuppression', 'MANUAL'],
]);

export function mapSuppressionHeader(
	header: readonly string[],
	{ map, unknown }: { map: readonly string[]; unknown: 'refuse' | 'ignore' },
): HeaderResult {
	const plain = aliasesOf(aliases);
	const given = [...header, ...map.map((pair) => pair.slice(pair.lastIndexOf('=') + 1))];
	const hasReason = given.some((name) => plain.get(fold(name)) === 'reason');
	const more = hasReason ? plain : aliasesOf({ ...aliases, reason: `${aliases.reason} ${reasonNames}` });
	return mapHeader(header, { fields: [], map, unknown, record: { names: suppressionParts, aliases: more } });
}

export function toSuppressionRow(
	columns: readonly string[],
	cells: readonly (string | null)[],
	missing: Pick<SuppressionRow, 'reason' | 'expires_at'>,
): SuppressionRow {
	const given = columns.flatMap((column, at) => {
		const cell = cells[at]?.trim() ?? '';
		return cell === '' ? [] : [[column, readCell(column, cell)] as const];
	});
	// Do not check the cells, because the service checks each row.
	return { email: '', ...missing, ...Object.fromEntries(given) } as SuppressionRow;
}

export function suppressionLine(
	suppression: Suppression,
	parts: readonly SuppressionPart[],
	guard: (cell: string) => string = (cell) => cell,
): string {
	const cells = parts.map((part) => {
		const cell = String(suppression[part] ?? '');
		return guard(part === 'date_created' || part === 'expires_at' ? withZone(cell) : cell);
	});
	return formatCsvRow(cells);
}

function readCell(part: string, cell: string): string {
	if (part === 'reason') {
		const state = wordState(cell);
		const other = otherReasons.get(fold(cell)) ?? (state && reasonOfState[state]);
		return other ?? oneOf(suppressionReasons, cell);
	}
	if (part === 'source') return oneOf(suppressionSources, cell);
	const isDay = part !== 'email' && /^\d{4}-\d{2}-\d{2}$/.test(cell);
	return isDay ? `${cell}T00:00:00` : cell;
}

/** An unknown word stays unchanged, so that an error can quote it. */
function oneOf(words: readonly string[], cell: string): string {
	const word = fold(cell).toUpperCase();
	return words.find((one) => one === word) ?? cell;
}
