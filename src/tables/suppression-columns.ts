import { withZone } from '../api/datetime.js';
import { suggest } from '../api/suggest.js';
import {
	type Suppression,
	type SuppressionReason,
	type SuppressionRow,
	suppressionReasons,
	suppressionSources,
} from '../api/suppressions.js';
import { fold } from './column-names.js';
import { findLeftOutStart, isRejectColumn } from './finding.js';
import { show } from './map-columns.js';
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

export interface SuppressionMapping {
	columns: readonly { index: number; part: SuppressionPart }[];
	ignored: readonly string[];
	leftOut: readonly number[];
}

type SuppressionHeader =
	| { kind: 'mapped'; mapping: SuppressionMapping }
	| { kind: 'refused'; findings: readonly string[] };

const names: ReadonlyMap<string, SuppressionPart> = new Map(
	(
		[
			['email', 'email emailaddress mail address recipient'],
			['reason', 'reason disablereason type suppressionreason'],
			['list_id', 'listid list'],
			['source', 'source'],
			['date_created', 'datecreated createdat created date'],
			['expires_at', 'expiresat expires'],
		] as const
	).flatMap(([part, words]) => words.split(' ').map((word): [string, SuppressionPart] => [word, part])),
);

const reasonNames = new Set(
	'status state statut estado stato bouncetype grund motif raison motivo reden powód orsak ステータス 理由'.split(
		' ',
	),
);

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
): SuppressionHeader {
	const { named, findings } = readMap(header, map);
	const columns: { index: number; part: SuppressionPart }[] = [];
	const ignored: string[] = [];
	const leftOut: number[] = [];
	const leftOutStart = findLeftOutStart(header);
	const partOf = partFinder(header, named);
	for (const [index, raw] of header.entries()) {
		const column = raw.trim();
		const wanted = named.get(fold(column));
		const near = suggest(column, suppressionParts).join(' or ');
		const part = partOf(column);
		const wasLeftOut = wanted === undefined && index >= leftOutStart;
		if (wanted === undefined && isRejectColumn(column)) ignored.push(column);
		else if (part === '-' || wasLeftOut || (part === undefined && unknown === 'ignore')) {
			ignored.push(column);
			leftOut.push(index);
		} else if (part === undefined)
			findings.push(`unknown column ${show(column)}${near === '' ? '' : ` (did you mean ${near}?)`}`);
		else if (columns.some((one) => one.part === part))
			findings.push(`a second column for ${part}: ${show(column)}`);
		else columns.push({ index, part });
	}
	if (!columns.some(({ part }) => part === 'email')) findings.push('no column for email');
	return findings.length > 0
		? { kind: 'refused', findings }
		: { kind: 'mapped', mapping: { columns, ignored, leftOut } };
}

function partFinder(header: readonly string[], named: ReadonlyMap<string, SuppressionPart | '-'>) {
	const given = (column: string) => named.get(fold(column)) ?? names.get(fold(column));
	const hasReason = header.some((column) => given(column) === 'reason');
	return (column: string) =>
		given(column) ?? (!hasReason && reasonNames.has(fold(column)) ? 'reason' : undefined);
}

export function toSuppressionRow(
	cells: readonly string[],
	{ columns }: SuppressionMapping,
	missing: Pick<SuppressionRow, 'reason' | 'expires_at'>,
): SuppressionRow {
	const given = columns.flatMap(({ index, part }) => {
		const cell = (cells[index] ?? '').trim();
		return cell === '' ? [] : [[part, readCell(part, cell)] as const];
	});
	// Any texts of a file: the service checks each row.
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

function readCell(part: SuppressionPart, cell: string): string {
	if (part === 'reason') {
		const state = wordState(cell);
		const other = otherReasons.get(fold(cell)) ?? (state && reasonOfState[state]);
		return other ?? oneOf(suppressionReasons, cell);
	}
	if (part === 'source') return oneOf(suppressionSources, cell);
	const isDay = part !== 'email' && /^\d{4}-\d{2}-\d{2}$/.test(cell);
	return isDay ? `${cell}T00:00:00` : cell;
}

/** `Hard-bounced` is HARDBOUNCED; an unknown word stays unchanged, to be quoted. */
function oneOf(words: readonly string[], cell: string): string {
	const word = fold(cell).toUpperCase();
	return words.find((one) => one === word) ?? cell;
}

function readMap(
	header: readonly string[],
	map: readonly string[],
): { named: Map<string, SuppressionPart | '-'>; findings: string[] } {
	const named = new Map<string, SuppressionPart | '-'>();
	const findings: string[] = [];
	const known = new Set(header.map(fold));
	for (const pair of map) {
		const cut = pair.lastIndexOf('=');
		const column = fold(pair.slice(0, Math.max(0, cut)));
		const target = pair.slice(cut + 1).trim();
		const part = target === '-' ? target : names.get(fold(target));
		if (cut < 1 || part === undefined) findings.push(`--map ${show(pair)}: COLUMN=FIELD is needed`);
		else if (!known.has(column)) findings.push(`--map ${show(pair)}: the file has no such column`);
		else named.set(column, part);
	}
	return { named, findings };
}
