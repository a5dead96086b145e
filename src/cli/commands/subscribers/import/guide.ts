import { isEmailAddress } from '../../../../api/address.js';
import type { Field, List } from '../../../../api/records.js';
import { nameParts, variableOf } from '../../../../tables/column-names.js';
import { type HeaderFinding, mapHeader } from '../../../../tables/map-columns.js';
import type { Table } from '../../../../tables/read-table.js';
import type { Sampled } from '../../../../tables/states.js';
import { mailctl, optionWords } from '../../../frame/command-line.js';
import type { CommandContext } from '../../../frame/context.js';
import { shorten } from '../../../render/width.js';
import { importName, longestName } from '../../../verbs/importing.js';
import { wordOfList } from '../../../verbs/resolve.js';
import { creating } from '../../lists/offer.js';
import { headerOptions, holdingAddresses, readFields, sample } from './columns.js';
import { type ImportOptions, importOptions } from './options.js';

/** A question for each: more than this is a wrong delimiter. */
const mostQuestions = 30;

/** The other findings are wrong with the file itself, or with the command line. */
const answerable: ReadonlySet<HeaderFinding['code']> = new Set(['unknown', 'bad_field_name', 'state']);

/**
 * The options with a `--map` for each column that no name explains; unchanged where all are known, and without some where
 * the columns are to be refused.
 */
export async function guideColumns(
	cx: CommandContext,
	{ table, file }: { table: Table; file: string },
	options: ImportOptions,
): Promise<ImportOptions> {
	const header = table.header.map((name) => name.trim());
	const guide = new Guide(
		cx,
		{ header, sampled: await sample(table), fields: await readFields(cx) },
		options,
	);
	await guide.findEmail(importName(file));
	// No answer would be of use.
	if (!(await guide.isAnswerable())) return guide.options;
	await guide.askName();
	const open = await guide.findings();
	if (open.length > mostQuestions || !(await guide.isAnswerable())) return guide.options;
	for (const { code, column } of open) await guide.askColumn(column, code === 'state');
	return guide.options;
}

class Guide {
	options: ImportOptions;
	readonly #cx: CommandContext;
	readonly #header: readonly string[];
	readonly #sampled: Sampled;
	readonly #fields: readonly Field[];

	constructor(
		cx: CommandContext,
		{ header, sampled, fields }: { header: readonly string[]; sampled: Sampled; fields: readonly Field[] },
		options: ImportOptions,
	) {
		this.#cx = cx;
		this.#header = header;
		this.#sampled = sampled;
		this.#fields = fields;
		this.options = options;
	}

	async findings(): Promise<readonly HeaderFinding[]> {
		const options = await headerOptions(this.options);
		const mapped = mapHeader(this.#header, { fields: this.#fields, sampled: this.#sampled, ...options });
		return mapped.kind === 'refused' ? mapped.findings : [];
	}

	async isAnswerable(): Promise<boolean> {
		return (await this.findings()).every(({ code }) => answerable.has(code));
	}

	/**
	 * Without a column of that name, the one whose cells are addresses; a person chooses among several, and where other
	 * texts stand among the addresses.
	 */
	async findEmail(name: string): Promise<void> {
		if (!(await this.findings()).some(({ code }) => code === 'no_email')) return;
		const sure = holdingAddresses(this.#header, this.#sampled);
		const found =
			sure.length > 0 ? sure : this.#header.filter((one) => this.#cells(one).some(isEmailAddress));
		const [first] = found.filter((one) => one !== '');
		if (first === undefined) return;
		const choices = found.map((value) => ({ name: shown(value), value }));
		const question = `Which column of ${name} has the e-mail addresses?`;
		const column = sure.length === 1 ? first : await this.#cx.choose(question, choices);
		await this.#cx.note(`"${shown(column)}" holds e-mail addresses`);
		this.#map(column, 'email');
	}

	/** First and last name may be the name together. A field of such a name, or a `--map`, has said what it is. */
	async askName(): Promise<void> {
		const [first, last] = nameParts(this.#header) ?? [];
		if (first === undefined || last === undefined || !this.#isFree(`${first}+${last}`, 'name')) return;
		if (!(await this.findings()).some(({ column }) => column === first)) return;
		const question = `What are the columns "${shown(first)}" and "${shown(last)}"?`;
		const areJoined = await this.#cx.choose(question, [
			{ name: 'the name of the subscriber, joined', value: true },
			{ name: 'columns of their own', value: false },
		]);
		if (areJoined) this.#map(`${first}+${last}`, 'name');
	}

	/** `isState`: it seems to say who may get mail. */
	async askColumn(column: string, isState: boolean): Promise<void> {
		const target = column === '' ? '-' : await this.#askTarget(column, isState);
		this.#map(column, target);
		// A name for a field that is not there yet makes it.
		const isKnown = ['-', 'state', 'name', ...this.#fields.map(({ variable }) => variable)].includes(target);
		if (!isKnown) this.options = { ...this.options, createFields: true };
	}

	async #askTarget(column: string, isState: boolean): Promise<string> {
		const cells = this.#cells(column);
		const isFree = (target: string) => this.#isFree(column, target);
		const variable = variableOf(column);
		const another = '';
		const examples = [...new Set(cells)].slice(0, 3).map((cell) => shorten(cell, longestCell));
		const what = cells.length === 0 ? 'no values' : examples.join(' · ');
		const target = await this.#cx.choose(`What is the column "${shown(column)}" (${what})?`, [
			...(isState && isFree('state')
				? [{ name: 'who may get mail (active, unsubscribed, bounced …)', value: 'state' }]
				: []),
			...(variable === null || !isFree(variable)
				? []
				: [{ name: `a new field, ${variable}`, value: variable }]),
			{ name: 'a new field, named by you', value: another },
			{ name: 'leave it out', value: '-' },
			...this.#fields
				.filter(({ variable }) => isFree(variable))
				.map(({ variable }) => ({ name: `the field ${variable}`, value: variable })),
			...(isFree('name') ? [{ name: 'the name of the subscriber', value: 'name' }] : []),
		]);
		if (target !== another) return target;
		const { checkOf } = await import('../../../frame/asking.js');
		const isVariable = await checkOf('variable');
		const check = async (text: string) =>
			(await isVariable(text)) ?? (isFree(text.trim()) ? null : `another column is ${text.trim()} already`);
		return (await this.#cx.ask('Variable of the new field:', { check })).trim();
	}

	/** Whether the column may be this: another one may have its place already. */
	#isFree(column: string, target: string): boolean {
		const map = [...this.options.map, `${column}=${target}`];
		const how = { fields: this.#fields, sampled: this.#sampled, map, unknown: 'create' } as const;
		const mapped = mapHeader(this.#header, how);
		return mapped.kind === 'mapped' || mapped.findings.every(({ code }) => code !== 'same_target');
	}

	#cells(column: string): readonly string[] {
		return this.#sampled.cells[this.#header.indexOf(column)] ?? [];
	}

	#map(column: string, target: string): void {
		this.options = { ...this.options, map: [...this.options.map, `${column}=${target}`] };
	}
}

const longestCell = 20;

/** A header may be as long as a page. */
function shown(column: string): string {
	return shorten(column, longestName);
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
