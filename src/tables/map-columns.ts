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
	/** Column of an import batch, such as `email` or `meta.VARIABLE`. `batchColumns` turns `state` into two columns. */
	target: string;
}

export interface Mapping {
	columns: readonly MappedColumn[];
	newFields: readonly KnownField[];
	ignored: readonly string[];
	/** Positions of columns that the user left out, now or in the import that wrote this rejects file. */
	leftOut: readonly number[];
	/** The position of `_code` in a rejects file. The import rejects rows that still have a code of `refusedAgain`. */
	codeColumn?: number;
	states?: readonly StateColumn[];
}

export interface HeaderOptions {
	fields: readonly KnownField[];
	/** `--map` as given: `E-Mail Address=email`, `First+Last=name`. The target `-` leaves the column out. */
	map?: readonly string[];
	unknown?: 'refuse' | 'create' | 'ignore';
	/** Cells of the first rows. `mapHeader` refuses an unmapped column whose cells seem to say who may get mail. */
	sampled?: Sampled;
	stateWords?: Readonly<Record<string, State>>;
	/** The columns that are not fields. Defaults to those of a subscriber. */
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

/** `field` is a field to create for the target. Null leaves the column out. */
type Decision = { target: string; field?: KnownField } | HeaderFinding | null;

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

/** Tries `map`, then exact names, then folded names. Refuses a header without email, or two columns for one target. */
export function mapHeader(given: readonly string[], options: HeaderOptions): HeaderResult {
	return new Header(given.map(clean), options).result();
}

export function batchColumns(columns: readonly MappedColumn[]): MappedColumn[] {
	const first = columns.find(({ target }) => target === 'state');
	return columns.flatMap((column) => {
		if (column.target !== 'state') return [column];
		return column === first ? ['is_active', 'disable_reason'].map((target) => ({ ...column, target })) : [];
	});
}

class Header {
	readonly #names: readonly string[];
	readonly #options: HeaderOptions;
	readonly #record: RecordColumns;
	readonly #named = new Map<string, string>();
	readonly #joins: { source: string; parts: readonly string[]; target: string }[] = [];
	readonly #findings: HeaderFinding[] = [];
	readonly #columns: MappedColumn[] = [];
	readonly #newFields = new Map<string, KnownField>();
	readonly #ignored: string[] = [];
	readonly #leftOut: number[] = [];

	constructor(names: readonly string[], options: HeaderOptions) {
		this.#names = names;
		this.#options = options;
		this.#record = options.record ?? subscriber;
	}

	result(): HeaderResult {
		const names = this.#names;
		this.#readMap();
		const email = this.#findEmail();
		if (email !== null) this.#named.set(email, 'email');
		const twice = names.filter((name, at) => name !== '' && names.indexOf(name) !== at);
		for (const column of new Set(twice))
			this.#refuse('duplicate', column, `the column ${show(column)} appears twice`);
		this.#mapAll();
		for (const { source, parts, target } of this.#joins) {
			const [index = 0, ...joined] = parts.map((part) => names.indexOf(part));
			const decision = this.#findTarget(source, target);
			if (decision === null || 'code' in decision || canBeJoined(decision.target))
				this.#take({ index, joined }, source, decision);
			else {
				const given = show(`${source}=${target}`);
				this.#refuse(
					'bad_map',
					source,
					`--map ${given}: several columns can be joined only into the name or a field`,
				);
			}
		}
		this.#checkTargets();
		if (this.#findings.length > 0) return { kind: 'refused', findings: this.#findings };
		const columns = this.#columns;
		const codeColumn = findCodeColumn(names);
		const isRejects = codeColumn !== null && columns.every(({ index }) => index !== codeColumn);
		const states = columns
			.filter(({ target }) => target === 'state')
			.map(({ index }) => stateColumn(names[index] ?? '', index, this.#options.stateWords ?? {}));
		const mapping = {
			...{ columns, newFields: [...this.#newFields.values()] },
			...{ ignored: this.#ignored, leftOut: this.#leftOut },
			...(isRejects && { codeColumn }),
			...(states.length > 0 && { states }),
		};
		return { kind: 'mapped', mapping };
	}

	#readMap(): void {
		const names = this.#names;
		const find = (wanted: string) =>
			names.find((name) => name === wanted) ?? names.find((name) => fold(name) === fold(wanted));
		for (const pair of this.#options.map ?? []) {
			const cut = pair.lastIndexOf('=');
			const target = pair.slice(cut + 1).trim();
			const column = clean(pair.slice(0, Math.max(0, cut)));
			const found = find(column);
			const parts = found === undefined ? partsOf(column, find) : null;
			if (!isWhole(cut, target)) this.#refuse('bad_map', pair, `--map ${show(pair)}: COLUMN=FIELD is needed`);
			// `--map "=-"` is valid even if all columns have names: the CSV reader drops blank columns at the end.
			else if (column === '' && found === undefined) continue;
			else if (parts !== null && target === '-') for (const part of parts) this.#named.set(part, target);
			else if (parts !== null) this.#joins.push({ source: column, parts, target });
			else if (found !== undefined) this.#named.set(found, target);
			else {
				const message = `--map ${show(column)}: the file has no such column`;
				this.#refuse('unknown_map_source', column, message, suggest(column, names));
			}
		}
	}

	/** Returns the only column whose name is in `emailNames`, or null if that column or `email` is already mapped. */
	#findEmail(): string | null {
		const names = this.#names;
		const found = names.filter((column) => emailNames.has(fold(column)));
		const [only] = found;
		if (only === undefined || found.length > 1 || this.#named.has(only)) return null;
		const targets = names.map((column) => this.#targetsOf(this.#named.get(column) ?? column)[0]);
		return targets.includes('email') || targets[names.indexOf(only)] !== undefined ? null : only;
	}

	#mapAll(): void {
		const parts = new Set(this.#joins.flatMap((join) => join.parts));
		const fixed = this.#passedOver();
		const leftOutStart = findLeftOutStart(this.#names);
		// If a column gives the state of each subscriber, fields may contain words such as `unsubscribed`.
		const tellsLeavers =
			this.#names.some((column) => /^(is_?)?active$|^disable.?reason$/i.test(column)) ||
			[...this.#named.values()].some((target) => /^(state|is_active|disable_reason)$/.test(target));
		for (const [index, column] of this.#names.entries()) {
			const target = this.#named.get(column);
			if (target !== undefined)
				this.#take({ index }, column, this.#decideNamed(column, index, { target, tellsLeavers }));
			else if (fixed.has(column) || isRejectColumn(column)) this.#ignore(column, index);
			else if (parts.has(column)) continue;
			else if (index >= leftOutStart) this.#take({ index }, column, null);
			else this.#take({ index }, column, this.#decide(column, index, tellsLeavers));
		}
	}

	/** Returns the read-only columns of an export of this API, which an import skips. Empty for other files. */
	#passedOver(): ReadonlySet<string> {
		const names = this.#names;
		const found = Object.entries(readOnly).filter(([column]) => names.includes(column));
		const holds = (column: string, form: RegExp) =>
			this.#cellsOf(names.indexOf(column))?.every((cell) => form.test(cell)) === true;
		const isOwn = names.includes('is_active') || found.some(([column, { own }]) => own && holds(column, own));
		const isExport =
			names.includes('email') && isOwn && found.every(([column, { cell }]) => holds(column, cell));
		return new Set(isExport ? found.map(([column]) => column) : []);
	}

	#cellsOf(index: number): readonly string[] | undefined {
		return this.#options.sampled?.cells[index];
	}

	#decideNamed(
		column: string,
		index: number,
		{ target, tellsLeavers }: { target: string; tellsLeavers: boolean },
	): Decision {
		const named = this.#findTarget(column, target);
		// `--map Status=status --create-fields` would activate unsubscribed people. Require `meta.status` instead.
		const isNew = named !== null && 'field' in named && !target.startsWith('meta.');
		const isSlip = isNew && (fold(target) === fold(column) || this.#cellsOf(index)?.some(tellsOfLeaver));
		return (isSlip && !tellsLeavers && this.#findState(column, index)) || named;
	}

	#decide(column: string, index: number, tellsLeavers: boolean): Decision {
		const [target, ...others] = this.#targetsOf(column);
		const cells = this.#cellsOf(index);
		if (target !== undefined && others.length > 0) {
			const targets = [target, ...others];
			const message = `column ${show(column)} may be ${targets.join(' or ')}: --map ${show(`${column}=FIELD`)}`;
			return finding('ambiguous', column, message, targets);
		}
		if (target !== undefined) {
			const isLeaving = target.startsWith('meta.') && !tellsLeavers && cells?.some(tellsOfLeaver);
			return isLeaving ? state(column, cells) : { target };
		}
		const told = this.#findState(column, index);
		if (told !== null || this.#options.unknown === 'ignore') return told;
		if (this.#options.unknown === 'create') return createField(column);
		const message = column === '' ? nameless : `unknown column ${show(column)}`;
		return finding('unknown', column, message, suggest(column, this.#targetNames()));
	}

	#findState(column: string, index: number): HeaderFinding | null {
		const { sampled } = this.#options;
		const isState = sampled !== undefined && tellsState(column, index, sampled);
		return isState ? state(column, sampled.cells[index]) : null;
	}

	/** If a folded name matches both an alias and a field, the field wins, except over `email`. */
	#targetsOf(column: string): string[] {
		const { fields } = this.#options;
		if (this.#record.names.includes(column)) return [column];
		const variable = /^meta\./i.test(column) ? column.slice('meta.'.length) : column;
		if (fields.some((field) => field.variable === variable)) return [`meta.${variable}`];
		const folded = fold(column);
		if (folded === '') return [];
		const alias = this.#record.aliases.get(folded);
		const matches = fields.filter(({ variable, name }) => fold(variable) === folded || fold(name) === folded);
		if (matches.length > 0 && alias !== 'email') return matches.map(({ variable }) => `meta.${variable}`);
		return alias === undefined ? [] : [alias];
	}

	#findTarget(column: string, target: string): Decision {
		if (target === '-') return null;
		if (target === 'state' && this.#options.sampled !== undefined) return { target };
		const [found, ...others] = this.#targetsOf(target);
		if (found !== undefined && others.length === 0) return { target: found };
		const variable = target.replace(/^meta\./, '');
		if (this.#options.unknown === 'create' && isFreeVariable(variable))
			return { target: `meta.${variable}`, field: { variable, name: column } };
		const message = `--map ${column}=${target}: no column or field is called ${target}`;
		return finding('unknown_map_target', column, message, suggest(target, this.#targetNames()));
	}

	#targetNames(): string[] {
		const fields = this.#options.fields.flatMap(({ variable, name }) => [variable, name]);
		return [...this.#record.names, ...fields.filter((name) => name !== '')];
	}

	#take(at: Place, column: string, decision: Decision): void {
		if (decision === null) {
			this.#ignore(column, at.index);
			this.#leftOut.push(at.index);
		} else if ('code' in decision) this.#findings.push(decision);
		else {
			const { target, field } = decision;
			this.#columns.push({ ...at, target });
			if (field !== undefined) this.#newFields.set(field.variable, field);
		}
	}

	#ignore(column: string, index: number): void {
		this.#ignored.push(column || `column ${index + 1} (no name)`);
	}

	#refuse(...found: Parameters<typeof finding>): void {
		this.#findings.push(finding(...found));
	}

	#checkTargets(): void {
		const firsts = new Map<string, string>();
		for (const { target, ...at } of batchColumns(this.#columns)) {
			const column = mappedName(this.#names, at);
			const first = firsts.get(target) ?? column;
			firsts.set(target, first);
			if (first === column) continue;
			const message = `the columns ${show(first)} and ${show(column)} are both ${target}: --map ${show(`${column}=-`)} leaves the second out`;
			this.#refuse('same_target', column, message);
		}
		if (firsts.has('email')) return;
		const shown = this.#names.slice(0, 10).map(show).join(', ');
		if (this.#names.some(isEmailAddress))
			this.#refuse('no_header', '', `the first line looks like data, not a header: ${shown}`);
		else {
			const message = `no email column among ${shown}; use --map "COLUMN=email"`;
			this.#refuse('no_email', '', message, suggest('email', this.#names));
		}
	}
}

/** Without COLUMN, only `-` is valid, because several columns may lack a name. */
function isWhole(cut: number, target: string): boolean {
	return cut > 0 ? target !== '' : cut === 0 && target === '-';
}

/** Control characters can reorder displayed text, so names of fields must not contain them. */
const hasControls = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
const nameless = 'a column without a name: --map "=-" leaves it out';

function createField(column: string): Decision {
	const variable = hasControls.test(column) ? null : variableOf(column);
	if (variable !== null) return { target: `meta.${variable}`, field: { variable, name: column } };
	const message = `no field can be named after the column ${show(column)}: --map ${show(`${column}=VARIABLE`)}`;
	return finding('bad_field_name', column, column === '' ? nameless : message);
}

function state(column: string, cells: readonly string[] = []): HeaderFinding {
	const examples = [...new Set(cells)].slice(0, 3).map(show).join(', ');
	const says = `says who may get mail${examples && ` (${examples})`}`;
	const message =
		column === ''
			? `a column without a name ${says}: name it in the header, or --map "=-" leaves it out`
			: `the column ${show(column)} ${says}`;
	return finding('state', column, message);
}

function finding(
	code: HeaderFinding['code'],
	column: string,
	message: string,
	suggestions: readonly string[] = [],
): HeaderFinding {
	return { code, column, message, suggestions };
}

export function clean(name: string): string {
	return name.replace(/^\uFEFF/, '').trim();
}

export function show(name: string): string {
	return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}
