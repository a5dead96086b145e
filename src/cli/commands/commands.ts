import {
	type Command,
	type CommandGroup,
	command as describe,
	flagsOf,
	isCommand,
	loadNode,
} from '../frame/command.js';
import { type Columns, column } from '../render/columns.js';

type Row = ReturnType<typeof rowOf>;

const columns: Columns<Row> = [
	column('command', 'COMMAND', { isName: true }),
	column('summary', 'SUMMARY'),
	{ key: 'arguments', header: 'ARGUMENTS', value: (row) => row.arguments.join(' '), wide: true },
	{ key: 'options', header: 'OPTIONS', value: (row) => row.options.join(' '), wide: true },
	{ key: 'aliases', header: 'ALIASES', value: (row) => row.aliases.join(' '), wide: true },
	column('writes', 'WRITES', { wide: true }),
];

export const command = describe({
	name: 'commands',
	summary: 'list all commands, for scripts',
	columns,
	output: 'an array of {"command", "aliases", "summary", "arguments", "options", "writes"}',
	examples: ['mailctl commands', 'mailctl commands -o json'],
	needsNoTarget: true,
	run: async (cx) => {
		const nodes = await Promise.all(cx.tree.map(loadNode));
		await cx.out.rows(
			nodes.flatMap((node) => rowsOf(node, [])),
			columns,
			{ all: true },
		);
	},
});

function rowsOf(node: Command | CommandGroup, above: readonly string[]): Row[] {
	const path = [...above, node.name];
	if (isCommand(node)) return node.hidden === true ? [] : [rowOf(node, path)];
	const self = node.self === undefined ? [] : [rowOf(node.self, path)];
	return [...self, ...node.commands.flatMap((child) => rowsOf(child, path))];
}

function rowOf(node: Command, path: readonly string[]) {
	return {
		command: path.join(' '),
		aliases: node.aliases ?? [],
		summary: node.summary,
		arguments: node.args.map(
			({ name, many, optional }) => `${optional === true ? '?' : ''}${name}${many === true ? '...' : ''}`,
		),
		options: Object.entries(node.options).flatMap(([key, spec]) => flagsOf(key, spec)),
		writes: node.writes === true,
	};
}
