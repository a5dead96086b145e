import type { Field, List } from '../../../../api/records.js';
import { variableOf } from '../../../../tables/column-names.js';
import { type HeaderFinding, mapHeader } from '../../../../tables/map-columns.js';
import type { Table } from '../../../../tables/read-table.js';
import { mailctl, optionWords } from '../../../frame/command-line.js';
import type { CommandContext } from '../../../frame/context.js';
import { shorten } from '../../../render/width.js';
import { readFields } from '../../../verbs/field-names.js';
import { longestName } from '../../../verbs/importing.js';
import { wordOfList } from '../../../verbs/resolve.js';
import { type ImportOptions, importOptions } from '../import.js';
import { headerOptions, holdingAddresses, sample } from './columns.js';

/** With more findings, the table was probably read with a wrong delimiter, so do not ask about each. */
const mostQuestions = 30;

/** Findings that an answer can resolve. Others are faults of the file or of the command line. */
const answerable: ReadonlySet<HeaderFinding['code']> = new Set(['unknown', 'bad_field_name', 'state']);

export async function guideColumns(cx: CommandContext, table: Table, given: ImportOptions) {
	const known = { fields: await readFields(cx), sampled: await sample(table) };
	const header = table.header.map((name) => name.trim());
	const findingsOf = async (options: ImportOptions) => {
		const mapped = mapHeader(header, { ...known, ...(await headerOptions(options)) });
		return mapped.kind === 'refused' ? mapped.findings : [];
	};
	let options = given;
	const map = (column: string, target: string) => {
		options = { ...options, map: [...options.map, `${column}=${target}`] };
	};
	if ((await findingsOf(options)).some(({ code }) => code === 'no_email')) {
		const [first, ...others] = holdingAddresses(header, known.sampled);
		if (first === undefined) return options;
		const choices = [first, ...others].map((value) => ({ name: value, value }));
		const question = 'Which column has the e-mail addresses?';
		const column = others.length === 0 ? first : await cx.choose(question, choices);
		await cx.note(`"${column}" holds e-mail addresses`);
		map(column, 'email');
	}
	const open = await findingsOf(options);
	if (open.length > mostQuestions || !open.every(({ code }) => answerable.has(code))) return options;
	for (const { code, column } of open) {
		const isFree = (target: string) => {
			const how = { ...known, map: [...options.map, `${column}=${target}`], unknown: 'create' } as const;
			const mapped = mapHeader(header, how);
			return mapped.kind === 'mapped' || mapped.findings.every((one) => one.code !== 'same_target');
		};
		const cells = known.sampled.cells[header.indexOf(column)] ?? [];
		const isState = code === 'state' && isFree('state');
		const { fields } = known;
		const target = column === '' ? '-' : await askTarget(cx, column, { cells, fields, isState, isFree });
		map(column, target);
		if (!['-', 'state', 'name', ...fields.map(({ variable }) => variable)].includes(target))
			options = { ...options, createFields: true };
	}
	return options;
}

const longestCell = 20;

interface Possible {
	cells: readonly string[];
	fields: readonly Field[];
	isState: boolean;
	isFree: (target: string) => boolean;
}

async function askTarget(cx: CommandContext, column: string, possible: Possible): Promise<string> {
	const { cells, fields, isState, isFree } = possible;
	const examples = [...new Set(cells)].slice(0, 3).map((cell) => shorten(cell, longestCell));
	const shown = `"${shorten(column, longestName)}" (${examples.length === 0 ? 'no values' : examples.join(' · ')})`;
	const variable = variableOf(column);
	return cx.choose(`What is the column ${shown}?`, [
		...(isState ? [{ name: 'who may get mail (active, unsubscribed, bounced …)', value: 'state' }] : []),
		...(variable === null || !isFree(variable)
			? []
			: [{ name: `a new field, ${variable}`, value: isState ? `meta.${variable}` : variable }]),
		{ name: 'leave it out', value: '-' },
		...fields
			.filter(({ variable }) => isFree(variable))
			.map(({ variable }) => ({ name: `the field ${variable}`, value: variable })),
		...(isFree('name') ? [{ name: 'the name of the subscriber', value: 'name' }] : []),
	]);
}

export async function sayCommand(cx: CommandContext, file: string, list: List, options: ImportOptions) {
	// With `--by`, keep the given word: `--by` says whether the word is an id or a name.
	const word = options.by === undefined ? await wordOfList(await cx.api(), list, cx.signal) : options.list;
	const words = optionWords(importOptions, { ...options, list: word }, cx);
	await cx.hint(['the same without questions: ', mailctl('subscribers', 'import', file, ...words)]);
}
