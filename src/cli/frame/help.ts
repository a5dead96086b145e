import { fitLines, refitLines } from '../render/wrapping.js';
import {
	type ArgSpec,
	type Command,
	type CommandGroup,
	flagOf,
	flagsOf,
	headings,
	isCommand,
	type OptionSpec,
	type TreeEntry,
	takesValue,
	visibleIn,
} from './command.js';
import { exitMeanings } from './exit.js';
import { globalGroups, globalOptions } from './globals.js';

export const purpose = 'manage a mailing service or a local database from the command line';

export function rootHelp(entries: readonly TreeEntry[]): string {
	const width = Math.max(...entries.map(({ name }) => name.length));
	return page([
		`mailctl: ${purpose}`,
		section('Usage', ['mailctl <command> [options]']),
		...headings.map((heading) =>
			section(
				heading,
				entries.filter((one) => one.heading === heading).map(({ name, summary }) => [name, summary]),
				width,
			),
		),
		section('Help', [
			['mailctl <command> --help', 'show the help of a command'],
			['mailctl help options', 'show the options of all commands'],
			['mailctl help <topic>', `${topicNames.slice(1, 5).join(', ')},`],
			['', topicNames.slice(5).join(', ')],
		]),
	]);
}

export function globalHelp(): string {
	const intro = 'Use these options before or after any command. Brackets name environment variables.';
	return page([
		intro,
		...sectionsOf({ options: globalOptions, optionGroups: globalGroups }).map((one) => section(...one)),
	]);
}

interface Screen {
	isTTY: boolean;
	columns: number;
}

export async function fitHelp(text: string, { isTTY, columns }: Screen): Promise<string> {
	return isTTY ? fitLines(text, columns) : text;
}

export async function fitTopic(text: string, { isTTY, columns }: Screen): Promise<string> {
	return isTTY ? refitLines(text, Math.min(columns, 120)) : text;
}

export function nodeHelp(node: Command | CommandGroup, path: readonly string[]): string {
	const name = `mailctl ${path.join(' ')}`;
	const self = isCommand(node) ? node : node.self;
	const below = isCommand(node) ? [] : visibleIn(node);
	const commands = below.map(
		(one): Row => [[one.name, ...(isCommand(one) ? one.args.map(argWord) : [])].join(' '), one.summary],
	);
	const usage = [
		...(self === undefined ? [] : [`${name} ${tail(self)}`.trimEnd()]),
		...(commands.length === 0 ? [] : [`${name} <command> [options]`]),
	];
	return page([
		`${name}: ${node.summary}`,
		...paragraphs(node.description ?? self?.description),
		section('Usage', usage),
		...(commands.length === 0 ? [] : [section('Commands', commands)]),
		...sectionsOf(self ?? node).map((one) => section(...one)),
		'Global options: mailctl help options',
	]);
}

type Row = readonly [left: string, right: string];

/** A title with lines, or with rows of two columns. Sections that share `width` align their right columns. */
type Section = readonly [title: string, rows: readonly (string | Row)[], width?: number];

function sectionsOf(described: Partial<Command>): Section[] {
	const { args = [], options = {}, optionGroups = {}, output, exits = [], examples = [] } = described;
	const { aliases = [] } = described;
	const words = new Map(
		Object.entries(options).flatMap(([key, spec]): [string, Row][] =>
			spec.hidden === true ? [] : [[key, [optionLabel(key, spec), optionSummary(spec)]]],
		),
	);
	const width = columnOf([...words.values()]);
	const grouped = new Set(Object.values(optionGroups).flat());
	const groups = { ...optionGroups, Options: [...words.keys()].filter((key) => !grouped.has(key)) };
	const all: Section[] = [
		['Aliases', aliases.length === 0 ? [] : [aliases.join(', ')]],
		['Arguments', args.map((arg) => [argWord(arg), arg.summary])],
		...Object.entries(groups).map(
			([title, keys]): Section => [
				title,
				keys.map((key) => words.get(key)).filter((row) => row !== undefined),
				width,
			],
		),
		['Output (-o json)', output === undefined ? [] : [output]],
		['Exit codes', exits.map((code) => [String(code), exitMeanings[code]])],
		['Examples', examples],
	];
	return all.filter(([, rows]) => rows.length > 0);
}

export function environmentRows(): Row[] {
	return Object.entries(globalOptions).flatMap(([key, spec]): Row[] =>
		spec.env === undefined || spec.hidden === true ? [] : [[spec.env, optionLabel(key, spec).trim()]],
	);
}

function tail(command: Command): string {
	const required = Object.entries(command.options).flatMap(([key, spec]) =>
		spec.required === true ? [`${flagOf(key)} ${placeholder(spec)}`] : [],
	);
	const more = Object.values(command.options).some((spec) => spec.required !== true) ? ['[options]'] : [];
	return [...command.args.map(argWord), ...required, ...more].join(' ');
}

function argWord({ name, optional, many }: ArgSpec): string {
	const word = many === true ? `${name}…` : name;
	return optional === true ? `[${word}]` : `<${word}>`;
}

function optionLabel(key: string, spec: OptionSpec): string {
	const short = spec.short === undefined ? '    ' : `-${spec.short}, `;
	if (!takesValue(spec)) return short + flagsOf(key, spec).join(' | ');
	const word = `${short}${flagOf(key)} ${placeholder(spec)}`;
	if (spec.kind === 'choices') return `${word},…`;
	return spec.kind === 'list' || spec.kind === 'pairs' ? `${word}…` : word;
}

function optionSummary(spec: OptionSpec): string {
	const notes = [
		...(spec.required === true ? ['required'] : []),
		...('choices' in spec ? [spec.choices.join(', ')] : []),
		...('default' in spec && spec.default !== undefined && spec.kind !== 'duration'
			? [`default ${spec.default}`]
			: []),
		...(spec.env === undefined ? [] : [spec.env]),
	];
	return notes.length === 0 ? spec.summary : `${spec.summary} [${notes.join('; ')}]`;
}

export function placeholder(spec: OptionSpec): string {
	if (spec.placeholder !== undefined) return spec.placeholder;
	const words: Partial<Record<OptionSpec['kind'], string>> = {
		integer: 'N',
		pairs: 'K=V',
		duration: 'DUR',
		date: 'DATE',
		file: 'FILE',
		path: 'FILE',
		content: 'TEXT|@FILE|-',
		choice: 'WORD',
		choices: 'WORD',
	};
	return words[spec.kind] ?? 'TEXT';
}

const textWidth = 80;

function paragraphs(text: string | undefined): string[] {
	if (text === undefined) return [];
	return text.split('\n\n').map((one) => (one.startsWith(' ') ? one : filled(one)));
}

function filled(text: string): string {
	const lines: string[] = [''];
	for (const word of text.split(' ')) {
		const last = lines.at(-1) ?? '';
		if (last.length + 1 + word.length > textWidth) lines.push(word);
		else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
	}
	return lines.join('\n');
}

function page(parts: readonly string[]): string {
	return `${parts.join('\n\n')}\n`;
}

function section(...[title, rows, width]: Section): string {
	const wide = width ?? columnOf(rows.filter((row) => typeof row !== 'string'));
	const lines = rows.map((row) => {
		if (typeof row === 'string') return row;
		const [left, right] = row;
		return left.length <= wide
			? `${left.padEnd(wide)}  ${right}`
			: `${left}\n  ${' '.repeat(wide)}  ${right}`;
	});
	return [`${title}:`, ...lines.map((line) => `  ${line}`)].join('\n');
}

function columnOf(rows: readonly Row[]): number {
	return Math.min(34, Math.max(...rows.map(([left]) => left.length)));
}

const verbs: Readonly<Record<string, readonly string[]>> = {
	...{ show: ['get', 'show'], view: ['get', 'show'], info: ['get', 'show'] },
	...{ add: ['create', 'add'], new: ['create', 'add'], create: ['create', 'add'] },
	...{ edit: ['update', 'set'], change: ['update', 'set'], update: ['update', 'set'] },
	remove: ['delete', 'remove', 'unset', 'revoke'],
	delete: ['delete', 'remove', 'unset', 'revoke'],
};

const nouns: Readonly<Record<string, readonly string[]>> = {
	...{ contact: ['subscribers'], member: ['subscribers'], people: ['subscribers'] },
	...{ audience: ['lists'], segment: ['lists'], domain: ['senders', 'engine dkim'] },
	...{ broadcast: ['campaigns', 'send'], newsletter: ['campaigns', 'send'] },
};

export function commandsFor(noun: string): readonly string[] {
	const one = noun.toLowerCase().replace(/s$/, '');
	return (Object.hasOwn(nouns, one) ? nouns[one] : undefined) ?? [];
}

export function verbsFor(word: string, known: readonly string[]): string[] {
	const same = Object.hasOwn(verbs, word) ? verbs[word] : [word];
	return known.filter((verb) => same?.includes(verb));
}

export const topicNames = [
	'options',
	'exit-codes',
	'output',
	'environment',
	'sending',
	'importing',
	'states',
	'bounces',
	'notifications',
] as const;

export type Topic = (typeof topicNames)[number];
