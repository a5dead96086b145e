/** `subscribers import` at a terminal: columns are known by their cells too, and a person says what the rest is. */

import { isEmailAddress } from '../../../../api/address.js';
import type { Field, List } from '../../../../api/records.js';
import type { HeaderFinding } from '../../../../tables/header-findings.js';
import type { Table } from '../../../../tables/read-table.js';
import type { Sampled as CellSample } from '../../../../tables/states.js';
import { mailctl, optionWords } from '../../../frame/command-line.js';
import type { CommandContext } from '../../../frame/context.js';
import { shorten } from '../../../render/width.js';
import { importName, longestName } from '../../../verbs/importing.js';
import { walk } from '../../../verbs/listing.js';
import { wordOfList } from '../../../verbs/resolve.js';
import { creating } from '../../lists/offer.js';
import { headerOptions, holdingAddresses, sample } from './columns.js';
import { type ImportOptions, importOptions } from './options.js';

/** A question for each: more than this is a wrong delimiter. */
const mostQuestions = 30;

interface Sampled extends CellSample {
	header: readonly string[];
}

/**
 * The options with a `--map` for each column that no name explains; unchanged where all are known, and without some where
 * the columns are to be refused.
 */
export async function guideColumns(
	cx: CommandContext,
	{ table, file }: { table: Table; file: string },
	options: ImportOptions,
): Promise<ImportOptions> {
	const sampled = { ...(await sample(table)), header: table.header.map((name) => name.trim()) };
	const api = await cx.api();
	const fields: Field[] = [];
	for await (const field of walk(api.fields, {}, { signal: cx.signal })) fields.push(field);
	const found = await withEmail(cx, { sampled, fields, file }, options);
	const isWrong = (findings: readonly HeaderFinding[]) => findings.some(({ code }) => !answerable.has(code));
	// No answer would be of use.
	if (isWrong(await findingsOf(sampled, fields, found))) return found;
	const named = await withName(cx, { sampled, fields }, found);
	const open = await findingsOf(sampled, fields, named);
	const isUnclear = open.length > mostQuestions || isWrong(open);
	return isUnclear ? named : withRest(cx, { sampled, fields, open }, named);
}

/** After any question: the commands that do the same. `made`: the list, where this run has made it. */
export async function sayCommands(
	cx: CommandContext,
	{ file, list, made }: { file: string; list: Pick<List, 'id' | 'name'>; made: List | null },
	options: ImportOptions,
): Promise<void> {
	const same = 'the same without questions: ';
	// --by says what a given one is.
	const named = options.by === undefined ? await wordOfList(await cx.api(), list, cx.signal) : options.list;
	// An id is of this database.
	const words = { ...options, list: made === null ? named : made.name };
	const run = mailctl('subscribers', 'import', file, ...optionWords(importOptions, words, cx));
	if (made === null) return cx.hint([same, run]);
	await cx.hint([same, creating(made.name, made.email_reason)]);
	await cx.hint(['and then: ', run]);
}

/** The others are wrong with the file itself, or with the command line. */
const answerable: ReadonlySet<HeaderFinding['code']> = new Set(['unknown', 'bad_field_name', 'state']);

async function findingsOf(
	{ header, ...sampled }: Sampled,
	fields: readonly Field[],
	options: ImportOptions,
): Promise<readonly HeaderFinding[]> {
	const { mapHeader } = await import('../../../../tables/map-columns.js');
	const mapped = mapHeader(header, { fields, sampled, ...(await headerOptions(options)) });
	return mapped.kind === 'refused' ? mapped.findings : [];
}

/**
 * Without a column of that name, the one whose cells are addresses; a person chooses among several, and where other
 * texts stand among the addresses.
 */
async function withEmail(
	cx: CommandContext,
	{ sampled, fields, file }: { sampled: Sampled; fields: readonly Field[]; file: string },
	options: ImportOptions,
): Promise<ImportOptions> {
	const findings = await findingsOf(sampled, fields, options);
	if (!findings.some(({ code }) => code === 'no_email')) return options;
	const sure = holdingAddresses(sampled.header, sampled);
	const found = sure.length > 0 ? sure : holding(sampled, (cells) => cells.some(isEmailAddress));
	const [first] = found;
	if (first === undefined) return options;
	const column =
		sure.length === 1
			? first
			: await cx.choose(
					`Which column of ${importName(file)} has the e-mail addresses?`,
					found.map((name) => ({ name: shown(name), value: name })),
				);
	await cx.note(`"${shown(column)}" holds e-mail addresses`);
	return { ...options, map: [...options.map, `${column}=email`] };
}

function holding({ header, cells }: Sampled, matches: (cells: readonly string[]) => boolean): string[] {
	return header.filter((name, at) => name !== '' && matches(cells[at] ?? []));
}

/** First and last name may be the name together. */
async function withName(
	cx: CommandContext,
	{ sampled, fields }: { sampled: Sampled; fields: readonly Field[] },
	options: ImportOptions,
): Promise<ImportOptions> {
	const { nameParts } = await import('../../../../tables/column-names.js');
	const parts = nameParts(sampled.header);
	if (parts?.[1] === undefined) return options;
	// A field of such a name, or a --map, has said what it is.
	const open = (await findingsOf(sampled, fields, options)).map(({ column }) => column);
	const column = parts.join('+');
	const isFree = await freeTargets(sampled, { column, fields }, options);
	if (!open.includes(parts[0]) || !isFree('name')) return options;
	const [first, last] = parts.map((part = '') => `"${shown(part)}"`);
	const areJoined = await cx.choose(`What are the columns ${first} and ${last}?`, [
		{ name: 'the name of the subscriber, joined', value: true },
		{ name: 'columns of their own', value: false },
	]);
	return areJoined ? { ...options, map: [...options.map, `${column}=name`] } : options;
}

async function withRest(
	cx: CommandContext,
	{ sampled, fields, open }: { sampled: Sampled; fields: readonly Field[]; open: readonly HeaderFinding[] },
	options: ImportOptions,
): Promise<ImportOptions> {
	let guided = options;
	for (const { code, column } of open) {
		const cells = sampled.cells[sampled.header.indexOf(column)] ?? [];
		const isFree = await freeTargets(sampled, { column, fields }, guided);
		const target = await askTarget(cx, { column, cells, fields, isFree, isState: code === 'state' });
		// A name for a field that is not there yet makes it.
		const isNew =
			target !== '-' &&
			target !== 'state' &&
			target !== 'name' &&
			!fields.some(({ variable }) => variable === target);
		guided = {
			...guided,
			map: [...guided.map, `${column}=${target}`],
			createFields: guided.createFields || isNew,
		};
	}
	return guided;
}

/** Whether the column may be this: another one may have its place already. */
async function freeTargets(
	{ header, ...sampled }: Sampled,
	{ column, fields }: { column: string; fields: readonly Field[] },
	options: ImportOptions,
): Promise<(target: string) => boolean> {
	const { mapHeader } = await import('../../../../tables/map-columns.js');
	return (target) => {
		const map = [...options.map, `${column}=${target}`];
		const mapped = mapHeader(header, { fields, sampled, map, unknown: 'create' });
		return mapped.kind === 'mapped' || mapped.findings.every(({ code }) => code !== 'same_target');
	};
}

const another = '';

interface Asked {
	column: string;
	cells: readonly string[];
	fields: readonly Field[];
	isFree: (target: string) => boolean;
	/** It seems to say who may get mail. */
	isState: boolean;
}

async function askTarget(
	cx: CommandContext,
	{ column, cells, fields, isFree, isState }: Asked,
): Promise<string> {
	if (column === '') return '-';
	const { variableOf } = await import('../../../../tables/column-names.js');
	const variable = variableOf(column);
	const examples = [...new Set(cells)].slice(0, 3).map((cell) => shorten(cell, longestCell));
	const what = cells.length === 0 ? 'no values' : `${kindOf(cells)}: ${examples.join(' · ')}`;
	const target = await cx.choose(`What is the column "${shown(column)}" (${what})?`, [
		...(isState && isFree('state')
			? [{ name: 'who may get mail (active, unsubscribed, bounced …)', short: 'state', value: 'state' }]
			: []),
		...(variable === null || !isFree(variable)
			? []
			: [{ name: `a new field, ${variable}`, short: `new: ${variable}`, value: variable }]),
		{ name: 'a new field, named by you', value: another },
		{ name: 'leave it out', value: '-' },
		...fields
			.filter(({ variable }) => isFree(variable))
			.map(({ variable }) => ({ name: `the field ${variable}`, value: variable })),
		...(isFree('name') ? [{ name: 'the name of the subscriber', value: 'name' }] : []),
	]);
	if (target !== another) return target;
	const { checkOf } = await import('../../../frame/asking.js');
	const isVariable = await checkOf('variable');
	const check = async (text: string) =>
		(await isVariable(text)) ?? (isFree(text.trim()) ? null : `another column is ${text.trim()} already`);
	return (await cx.ask('Variable of the new field:', { check })).trim();
}

/** Characters of a cell in a question. */
const longestCell = 20;

/** A header may be as long as a page. */
function shown(column: string): string {
	return shorten(column, longestName);
}

type CellKind = 'addresses' | 'yes or no' | 'numbers' | 'dates' | 'texts';

const kinds: readonly (readonly [CellKind, (cell: string) => boolean])[] = [
	['addresses', isEmailAddress],
	['yes or no', (cell) => /^(true|false|yes|no|ja|nein|oui|non|sí|si|да|нет|0|1)$/i.test(cell)],
	['dates', (cell) => /^\d{4}-\d{2}-\d{2}|^\d{1,2}[./]\d{1,2}[./]\d{2,4}/.test(cell)],
	['numbers', (cell) => /^[-+]?\d{1,15}([.,' ]\d{1,15}){0,5}$/.test(cell)],
];

/** A tenth may be something else: typing errors and notes in between. */
function kindOf(cells: readonly string[]): CellKind {
	const found = kinds.find(
		([, matches]) => cells.length > 0 && cells.filter((cell) => matches(cell)).length >= cells.length * 0.9,
	);
	return found?.[0] ?? 'texts';
}
