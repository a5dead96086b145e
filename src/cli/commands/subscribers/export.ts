import type { List, Subscriber, SubscriberFilter } from '../../../api/records.js';
import type { PeopleColumn } from '../../../tables/write-people.js';
import { command } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import type { ExitCode } from '../../frame/exit.js';
import { parseFields, unknownField } from '../../render/columns.js';
import { matcherOf } from '../../verbs/conditions.js';
import { destinationOf, exportArg, exportOptions, exportRecords } from '../../verbs/exporting.js';
import { readFields, variableOf } from '../../verbs/field-names.js';
import {
	filterOf,
	filterOptions,
	inList,
	listOption,
	tupleOf,
	walkSubscribers,
	walkTuples,
} from './lookup.js';

export const subscriberExport = command({
	name: 'export',
	summary: 'export subscribers to a file or standard output',
	description:
		'The file has email, name, is_active, disable_reason, the fields, and meta for values that a cell cannot hold. ' +
		'Importing it gives the same subscribers. --fields names other columns. An existing file is replaced only with ' +
		'--force. With --safe-csv the file is for spreadsheets, not for importing.',
	args: [exportArg],
	options: { ...listOption, ...exportOptions, ...filterOptions },
	columns: 'own',
	output: 'with a file: {"list_id", "file", "format", "exported"}; else the subscribers themselves',
	exits: [3, 74],
	examples: [
		'mailctl subscribers export readers.csv --list 12',
		'mailctl subscribers export readers.ndjson --list 12 --active',
		'mailctl subscribers export --list 12 --format csv --fields email,city',
	],
	run: async (cx, { args, options }): Promise<ExitCode> => {
		const to = await destinationOf(cx, args.file, options);
		const { list } = await inList(cx, options);
		const columns = await columnsOf(cx);
		const filter = filterOf(options);
		const matches = await matcherOf(cx, options.where);
		const { csvFormat, formatHeader, jsonFormat, keysOf } = await import('../../../tables/write-people.js');
		const keys = keysOf(columns);
		async function* matching(matches: (person: Subscriber) => boolean) {
			for await (const piece of walkSubscribers(cx, list, filter))
				yield piece.filter(matches).map((person) => tupleOf(person, keys));
		}
		return exportRecords(cx, to, {
			header: formatHeader(columns),
			line: to.format === 'csv' ? csvFormat(columns, to.guard) : jsonFormat(columns),
			pieces: matches === null ? walkTuples(cx, list, { ...filter, keys }) : matching(matches),
			total: matches === null ? expected(list, filter) : null,
			noun: 'subscriber',
			answer: { list_id: list.id },
		});
	},
});

async function columnsOf(cx: CommandContext): Promise<readonly PeopleColumn[]> {
	const { allColumns, usualColumns } = await import('../../../tables/write-people.js');
	const fields = await readFields(cx);
	const variables = fields.map(({ variable }) => variable);
	const named = parseFields(cx.globals.fields);
	if (named === null) return usualColumns(variables);
	const all = allColumns(variables);
	return named.map((name) => {
		const variable = variableOf(fields, name.replace(/^meta\./, ''));
		const isField = (one: PeopleColumn) => one.kind === 'field' && one.variable === variable;
		const found = all.find((one) => one.name === name) ?? all.find(isField);
		if (found !== undefined) return found;
		throw unknownField(
			name,
			all.map((one) => one.name),
		);
	});
}

function expected(list: List, { email__icontains, is_active }: SubscriberFilter): number | null {
	if (email__icontains !== undefined) return null;
	if (is_active === undefined) return list.overall_subscribers_count;
	return is_active ? list.active_subscribers_count : list.inactive_subscribers_count;
}
