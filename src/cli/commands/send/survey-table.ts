/**
 * What a dry run of `send --csv` finds without staging anything: each row is checked as a job would check it, and an
 * address that comes again is known by 64 bits of a hash. Suppressions are looked up only where rows are staged.
 */
import { type EmailKey, parseAddress } from '../../../api/address.js';
import type { Recipient } from '../../../api/capabilities.js';
import { builtInVariables } from '../../../api/fields.js';
import { usedVariables } from '../../../content/variable-names.js';
import { AddressSet } from '../../../jobs/foreign/address-set.js';
import { duplicate } from '../../../jobs/foreign/mailings/requests.js';
import { checkRecipient, type Wanted } from '../../../jobs/foreign/mailings/rows.js';
import type { CommandContext } from '../../context.js';
import { assertAllowed } from './allowed.js';
import { type FieldValues, readFieldValues } from './field-values.js';
import { missingVariable } from './findings.js';
import { contentOf, isOpaque, type Prepared } from './request.js';
import type { OpenTable } from './source.js';

/** What is in a table. */
export interface TableCounts {
	rows: number;
	/** Rows that would be sent to. */
	recipients: number;
	/** Those whose address stands in a row before. */
	duplicates: number;
	/** Rows that would be refused; duplicates are among them. */
	rejected: number;
}

/** The first row that can be sent to, null if there is none, the counts, and the first findings, a line each. */
export interface TableSurvey {
	first: Recipient | null;
	counts: TableCounts;
	lines: string[];
	/** A variable without a value is among all findings. */
	lacksValues: boolean;
}

export interface TableSurveyHow {
	prepared: Prepared;
	/** A variable without a value refuses. */
	strict: boolean;
	/** Findings to keep. */
	most: number;
}

/** Reads the table to its end. Throws `UsageError` for an address the profile may not write to. */
export async function surveyTable(
	cx: CommandContext,
	table: OpenTable,
	{ prepared, strict, most }: TableSurveyHow,
): Promise<TableSurvey> {
	const counts: TableCounts = { rows: 0, recipients: 0, duplicates: 0, rejected: 0 };
	const lines: string[] = [];
	let first: Recipient | null = null;
	let lacksValues = false;
	const check = await checker(cx, table, { prepared, strict });
	for await (const row of table.rows) {
		if (row.refused === undefined) assertAllowed(cx, [row.to]);
		counts.rows += 1;
		const found = check(row);
		if (found === null) {
			counts.recipients += 1;
			first ??= row;
			continue;
		}
		counts.rejected += 1;
		lacksValues ||= found.code === missingVariable;
		if (found.code === 'duplicate') counts.duplicates += 1;
		if (lines.length < most) lines.push(sentenceOf(row, found.error));
	}
	return { first, counts, lines, lacksValues };
}

/** What is wrong with a row; null: nothing. */
type Check = (row: Recipient) => { code: string; error: string } | null;

async function checker(
	cx: CommandContext,
	{ columns }: OpenTable,
	{ prepared, strict }: Pick<TableSurveyHow, 'prepared' | 'strict'>,
): Promise<Check> {
	const { ext } = await (await cx.api()).capabilities();
	const isOurs = ext.mailings !== undefined;
	const wanted = wantedOf(prepared, { isStrict: strict, isOurs });
	const given = [...Object.keys(wanted.shared), ...columns.variables.map(({ name }) => name)];
	const open = (wanted.used ?? []).filter((name) => !given.includes(name) && !isBuiltIn(name));
	// Others are told all of a person with the call, which knows the row alone.
	const known = strict && isOurs ? await readFieldValues(cx, open) : null;
	const met = new AddressSet();
	return (row) => {
		const { key, item } = checkRecipient(row, filled(wanted, { row, open, known }));
		if ('code' in item) return item;
		return key === null || met.add(key) ? null : duplicate(item.to, {});
	};
}

function wantedOf(prepared: Prepared, { isStrict, isOurs }: { isStrict: boolean; isOurs: boolean }): Wanted {
	const used = isOpaque(prepared) ? null : usedVariables(contentOf(prepared));
	return {
		// Ours have a value for these whoever it is.
		used: isOurs ? (used?.filter((name) => !isBuiltIn(name)) ?? null) : used,
		shared: prepared.request.context ?? {},
		isStrict,
	};
}

/** What a field says of the person is not missing. */
function filled(
	wanted: Wanted,
	{ row, open, known }: { row: Recipient; open: readonly string[]; known: FieldValues | null },
): Wanted {
	const key: EmailKey | undefined =
		known === null || open.length === 0 ? undefined : parseAddress(row.to)?.key;
	if (known === null || key === undefined) return wanted;
	return { ...wanted, used: wanted.used?.filter((name) => !known(key, name)) ?? null };
}

function isBuiltIn(name: string): boolean {
	return builtInVariables.some((builtIn) => builtIn === name);
}

/** As the results of a job say it: the words name the address by themselves where they are about it. */
function sentenceOf({ line, to }: Recipient, error: string): string {
	const place = line === undefined ? '' : `line ${line}: `;
	return to === '' || error.includes(to) ? `${place}${error}` : `${place}${to}: ${error}`;
}
