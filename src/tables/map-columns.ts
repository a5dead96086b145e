import { isEmailAddress } from '../api/address.js';
import { suggest } from '../api/suggest.js';
import {
	canBeJoined,
	emailNames,
	fold,
	isFreeVariable,
	mappedName,
	type Place,
	partsOf,
	variableOf,
} from './column-names.js';
import { findCodeColumn, findLeftOutStart, isRejectColumn } from './finding.js';
import {
	type Sampled,
	type State,
	type StateColumn,
	stateColumn,
	tellsOfLeaver,
	tellsState,
} from './states.js';

interface KnownField {
	variable: string;
	name: string;
}

export interface MappedColumn extends Place {
	/** A column of an import batch: `email`, `name`, `is_active`, `disable_reason`, `meta`, `meta.VARIABLE`; or `state`. */
	target: string;
}

export interface Mapping {
	columns: readonly MappedColumn[];
	newFields: readonly KnownField[];
	ignored: readonly string[];
	/** Positions of columns that the user left out, now or in the import that wrote this rejects file. */
	leftOut: readonly number[];
	/** The position of `_code` in a rejects file, because duplicates and rows of another width are rejected again. */
	codeColumn?: number;
	states?: readonly StateColumn[];
}

export interface HeaderOptions {
	fields: readonly KnownField[];
	/** `--map` as given: `E-Mail Address=email`, `First+Last=name`. The target `-` leaves the column out. */
	map?: readonly string[];
	unknown?: 'refuse' | 'create' | 'ignore';
	/** Cells of the first rows. Columns that seem to say who may get mail are refused unless they are mapped. */
	sampled?: Sampled;
	stateWords?: Readonly<Record<string, State>>;
	/** Columns that are not fields. The default is a subscriber's. */
	record?: RecordColumns;
}

interface RecordColumns {
	names: readonly string[];
	/** Other names of these columns, folded. */
	aliases: ReadonlyMap<string, string>;
}

export interface HeaderFinding {
	code:
		| 'no_email'
		| 'no_header' // no email column, but an address in the header
		| 'duplicate'
		| 'same_target'
		| 'unknown'
		| 'state' // the column may say who may get mail, and is not mapped
		| 'ambiguous'
		| 'unknown_map_source'
		| 'unknown_map_target'
		| 'bad_map'
		| 'bad_field_name';
	column: string;
	message: string;
	suggestions: readonly string[];
}

export type HeaderResult =
	| { kind: 'mapped'; mapping: Mapping }
	| { kind: 'refused'; findings: readonly HeaderFinding[] };

type Decision = 'ignored' | 'left_out' | 'joined' | { target: string; field?: KnownField } | HeaderFinding;

const subscriber: RecordColumns = {
	names: ['email', 'name', 'is_active', 'disable_reason', 'meta'],
	aliases: aliasesOf({
		email: 'email emailaddress mail mailaddress subscriberemail',
		name: 'name',
		meta: 'meta',
		is_active: 'isactive active',
		disable_reason: 'disablereason',
	}),
};

export function aliasesOf(names: Readonly<Record<string, string>>): RecordColumns['aliases'] {
	return new Map(
		Object.entries(names).flatMap(([column, words]) =>
			words.split(' ').map((word) => [word, column] as const),
		),
	);
}

/** Read-only columns of an export and the form of their cells. `own`: a form that only this API writes. */
const readOnly: Readonly<Record<string, { cell: RegExp; own?: RegExp }>> = {
	id: { cell: /^\d+$/ },
	list_id: { cell: /^\d+$/ },
	is_email_verified: { cell: /^(true|false)$/ },
	opt_in_signed: { cell: /^(true|false)$/ },
	source: { cell: /^[A-Z_]+$/, own: /^(API|IMPORT|FORM|APP)$/ },
	date_created: { cell: /^\d{4}-\d\d-\d\dT[\d:.]+Z?$/, own: /^[\d-]{10}T[\d:]{8}\.\d{6}Z?$/ },
};

/** Read-only columns, if the file is an export of this API. In another file they are ordinary columns. */
function passedOver(header: readonly string[], { sampled }: HeaderOptions): ReadonlySet<string> {
	const found = Object.entries(readOnly).filter(([column]) => header.includes(column));
	const holds = (column: string, form: RegExp) =>
		sampled?.cells[header.indexOf(column)]?.every((cell) => form.test(cell)) === true;
	const isOwn = header.includes('is_active') || found.some(([column, { own }]) => own && holds(column, own));
	const isExport =
		header.includes('email') && isOwn && found.every(([column, { cell }]) => holds(column, cell));
	return new Set(isExport ? found.map(([column]) => column) : []);
}

/** Tries `map` first, then exact names, then folded names. A mapping has an email column, and no target twice. */
export function mapHeader(given: readonly string[], options: HeaderOptions): HeaderResult {
	const header = given.map(clean);
	const { named, joins, findings } = readMap(header, options);
	const email = findEmail(header, named, options);
	if (email !== null) named.set(email, 'email');
	const leftOutStart = findLeftOutStart(header);
	findings.push(...findDuplicates(header));
	const parts = new Set(joins.flatMap(({ parts }) => parts));
	const fixed = passedOver(header, options);
	// If another column says who left, a field may contain such words.
	const tellsLeavers =
		header.some((column) => /^(is_?)?active$|^disable.?reason$/i.test(column)) ||
		[...named.values()].some((target) => /^(state|is_active|disable_reason)$/.test(target));
	const decisionOf = (column: string, index: number): Decision => {
		const target = named.get(column);
		if (target !== undefined) {
			const named = decideNamed(column, target, options);
			// `--map Status=status --create-fields` would import leavers as active, so new fields need `meta.status`.
			const isNew = typeof named !== 'string' && 'field' in named && !target.startsWith('meta.');
			const cells = options.sampled?.cells[index] ?? [];
			const isSlip = isNew && (fold(target) === fold(column) || cells.some(tellsOfLeaver));
			return (isSlip && !tellsLeavers && findState(column, index, options)) || named;
		}
		if (fixed.has(column) || isRejectColumn(column)) return 'ignored';
		if (parts.has(column)) return 'joined';
		if (index >= leftOutStart) return 'left_out';
		return decide(column, { index, tellsLeavers }, options);
	};
	const decided = [
		...header.map((column, index) => ({ at: { index }, column, decision: decisionOf(column, index) })),
		...joins.map((join) => decideJoin(join, header, options)),
	];
	const { columns, newFields, ignored, leftOut } = collected(decided, findings);
	findings.push(...findSameTargets(batchColumns(columns), header));
	if (!columns.some(({ target }) => target === 'email')) findings.push(noEmail(header));
	if (findings.length > 0) return { kind: 'refused', findings };
	const codeColumn = findCodeColumn(header);
	const isRejects = codeColumn !== null && columns.every(({ index }) => index !== codeColumn);
	const states = columns
		.filter(({ target }) => target === 'state')
		.map(({ index }) => stateColumn(header[index] ?? '', index, options.stateWords ?? {}));
	const mapping = {
		...{ columns, newFields: [...newFields.values()], ignored, leftOut },
		...(isRejects && { codeColumn }),
		...(states.length > 0 && { states }),
	};
	return { kind: 'mapped', mapping };
}

function collected(
	decided: readonly { at: Place; column: string; decision: Decision }[],
	findings: HeaderFinding[],
) {
	const columns: MappedColumn[] = [];
	const newFields = new Map<string, KnownField>();
	const ignored: string[] = [];
	const leftOut: number[] = [];
	for (const { at, column, decision } of decided) {
		if (decision === 'ignored' || decision === 'left_out')
			ignored.push(column || `column ${at.index + 1} (no name)`);
		if (decision === 'left_out') leftOut.push(at.index);
		if (typeof decision === 'string') continue;
		if ('code' in decision) findings.push(decision);
		else {
			const { target, field } = decision;
			columns.push({ ...at, target });
			if (field !== undefined) newFields.set(field.variable, field);
		}
	}
	return { columns, newFields, ignored, leftOut };
}

/** Replaces the first state column by the two columns of `stateCells`, and drops the other state columns. */
export function batchColumns(columns: readonly MappedColumn[]): MappedColumn[] {
	const first = columns.find(({ target }) => target === 'state');
	return columns.flatMap((column) => {
		if (column.target !== 'state') return [column];
		return column === first ? ['is_active', 'disable_reason'].map((target) => ({ ...column, target })) : [];
	});
}

function decide(
	column: string,
	{ index, tellsLeavers }: { index: number; tellsLeavers: boolean },
	options: HeaderOptions,
): Decision {
	const found = findTarget(column, options);
	const { sampled } = options;
	const cells = sampled?.cells[index];
	const isField = found.length === 1 && found[0]?.startsWith('meta.') === true;
	if (isField && !tellsLeavers && cells?.some(tellsOfLeaver)) return state(column, cells);
	if (found.length === 1) return { target: found[0] ?? '' };
	if (found.length > 1) {
		const message = `column ${show(column)} may be ${found.join(' or ')}: --map ${show(`${column}=FIELD`)}`;
		return finding('ambiguous', column, message, found);
	}
	return findState(column, index, options) ?? decideUnknown(column, options);
}

function findState(column: string, index: number, { sampled }: HeaderOptions): HeaderFinding | null {
	return sampled !== undefined && tellsState(column, index, sampled)
		? state(column, sampled.cells[index])
		: null;
}

/** Returns the only column with another name for e-mail, unless some column is named `email`; null if there is none. */
function findEmail(
	columns: readonly string[],
	named: ReadonlyMap<string, string>,
	options: HeaderOptions,
): string | null {
	const found = columns.filter((column) => emailNames.has(fold(column)));
	const [only] = found;
	if (only === undefined || found.length > 1 || named.has(only)) return null;
	const targets = columns.map((column) => findTarget(named.get(column) ?? column, options)[0]);
	return targets.includes('email') || targets[columns.indexOf(only)] !== undefined ? null : only;
}

/** Prefers exact to folded names, and the record's columns to fields. Several matches make the header ambiguous. */
function findTarget(column: string, { fields, record = subscriber }: HeaderOptions): string[] {
	const exact = exactTarget(column, fields, record);
	if (exact !== null) return [exact];
	const folded = fold(column);
	if (folded === '') return [];
	const alias = record.aliases.get(folded);
	const matches = fields.filter(({ variable, name }) => fold(variable) === folded || fold(name) === folded);
	if (matches.length > 0 && alias !== 'email') return matches.map(({ variable }) => `meta.${variable}`);
	return alias === undefined ? [] : [alias];
}

function exactTarget(column: string, fields: readonly KnownField[], record: RecordColumns): string | null {
	if (record.names.includes(column)) return column;
	const variable = /^meta\./i.test(column) ? column.slice('meta.'.length) : column;
	return fields.some((field) => field.variable === variable) ? `meta.${variable}` : null;
}

function decideNamed(column: string, target: string, options: HeaderOptions): Decision {
	if (target === '-') return 'left_out';
	if (target === 'state' && options.sampled !== undefined) return { target };
	const found = findTarget(target, options);
	if (found.length === 1) return { target: found[0] ?? '' };
	const variable = target.replace(/^meta\./, '');
	if (options.unknown === 'create' && isFreeVariable(variable))
		return { target: `meta.${variable}`, field: { variable, name: column } };
	const suggestions = suggest(target, targetNames(options));
	const message = `--map ${column}=${target}: no column or field is called ${target}`;
	return finding('unknown_map_target', column, message, suggestions);
}

interface Join {
	source: string;
	parts: readonly string[];
	target: string;
}

function decideJoin({ source, parts, target }: Join, columns: readonly string[], options: HeaderOptions) {
	const [index = 0, ...joined] = parts.map((part) => columns.indexOf(part));
	const at: Place = { index, joined };
	const decision = decideNamed(source, target, options);
	if (typeof decision === 'string' || 'code' in decision || canBeJoined(decision.target))
		return { at, column: source, decision };
	const message = `--map ${show(`${source}=${target}`)}: only the name and fields are joined of several columns`;
	return { at, column: source, decision: finding('bad_map', source, message) };
}

function decideUnknown(column: string, options: HeaderOptions): Decision {
	if (options.unknown === 'ignore') return 'left_out';
	if (options.unknown === 'create') return createField(column);
	const suggestions = suggest(column, targetNames(options));
	const message = column === '' ? nameless : `unknown column ${show(column)}`;
	return finding('unknown', column, message, suggestions);
}

/** Controls can reorder the displayed text, so names of fields must not contain them. */
const hasControls = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** `First Name` becomes `first_name`. A name that gives no variable requires `--map`. */
function createField(column: string): Decision {
	const variable = hasControls.test(column) ? null : variableOf(column);
	if (variable !== null) return { target: `meta.${variable}`, field: { variable, name: column } };
	const message =
		column === ''
			? nameless
			: `no field can be named after the column ${show(column)}: --map ${show(`${column}=VARIABLE`)}`;
	return finding('bad_field_name', column, message);
}

const nameless = 'a column without a name: --map "=-" leaves it out';

function targetNames({ fields, record = subscriber }: HeaderOptions): string[] {
	return [
		...record.names,
		...fields.flatMap(({ variable, name }) => (name === '' ? [variable] : [variable, name])),
	];
}

/** True if COLUMN and FIELD are given. Columns without a name can only be left out, because there may be several. */
function isWhole(cut: number, target: string): boolean {
	return cut > 0 ? target !== '' : cut === 0 && target === '-';
}

function readMap(
	header: readonly string[],
	{ map = [] }: HeaderOptions,
): { named: Map<string, string>; joins: Join[]; findings: HeaderFinding[] } {
	const named = new Map<string, string>();
	const joins: Join[] = [];
	const findings: HeaderFinding[] = [];
	const find = (wanted: string) =>
		header.find((name) => name === wanted) ?? header.find((name) => fold(name) === fold(wanted));
	for (const pair of map) {
		const cut = pair.lastIndexOf('=');
		const target = pair.slice(cut + 1).trim();
		const column = clean(pair.slice(0, Math.max(0, cut)));
		const found = find(column);
		const parts = found === undefined ? partsOf(column, find) : null;
		if (!isWhole(cut, target))
			findings.push(finding('bad_map', pair, `--map ${show(pair)}: COLUMN=FIELD is needed`));
		// Skip an unnamed column without cells, which is left out anyway.
		else if (column === '' && found === undefined) continue;
		else if (parts !== null && target === '-') for (const part of parts) named.set(part, target);
		else if (parts !== null) joins.push({ source: column, parts, target });
		else if (found !== undefined) named.set(found, target);
		else {
			const message = `--map ${show(column)}: the file has no such column`;
			findings.push(finding('unknown_map_source', column, message, suggest(column, header)));
		}
	}
	return { named, joins, findings };
}

export function clean(name: string): string {
	return name.replace(/^\uFEFF/, '').trim();
}

function finding(
	code: HeaderFinding['code'],
	column: string,
	message: string,
	suggestions: readonly string[] = [],
): HeaderFinding {
	return { code, column, message, suggestions };
}

/** Several columns may lack a name: each is unknown by itself. */
function findDuplicates(header: readonly string[]): HeaderFinding[] {
	const twice = header.filter((name, at) => name !== '' && header.indexOf(name) !== at);
	return [...new Set(twice)].map((column) =>
		finding('duplicate', column, `the column ${show(column)} appears twice`),
	);
}

function findSameTargets(
	columns: readonly (Place & { target: string })[],
	header: readonly string[],
): HeaderFinding[] {
	const firsts = new Map<string, string>();
	const findings: HeaderFinding[] = [];
	for (const { target, ...at } of columns) {
		const column = mappedName(header, at);
		const first = firsts.get(target);
		if (first === undefined) firsts.set(target, column);
		else if (first !== column) {
			const message = `the columns ${show(first)} and ${show(column)} are both ${target}: --map ${show(`${column}=-`)}`;
			findings.push(finding('same_target', column, message));
		}
	}
	return findings;
}

function state(column: string, cells: readonly string[] = []): HeaderFinding {
	const examples = [...new Set(cells)].slice(0, 3).map(show).join(', ');
	const says = `says who may get mail${examples && ` (${examples})`}`;
	if (column !== '') return finding('state', column, `the column ${show(column)} ${says}`);
	return finding(
		'state',
		'',
		`a column without a name ${says}: name it in the header, or --map "=-" leaves it out`,
	);
}

function noEmail(header: readonly string[]): HeaderFinding {
	const shown = header.slice(0, 10).map(show);
	if (header.some(isEmailAddress)) {
		return finding('no_header', '', `the first line looks like data, not a header: ${shown.join(', ')}`);
	}
	const message = `no email column among ${shown.join(', ')}: --map "COLUMN=email"`;
	return finding('no_email', '', message, suggest('email', header));
}

export function show(name: string): string {
	return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}
