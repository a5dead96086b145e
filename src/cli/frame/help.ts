import { fitLines, refitLines } from '../render/wrapping.js';
import {
	type ArgSpec,
	type Command,
	type CommandGroup,
	flagOf,
	headings,
	isCommand,
	type OptionSpec,
	offFlagOf,
	type TreeEntry,
	visibleIn,
} from './command.js';
import { exitMeanings } from './exit.js';
import { type GlobalOption, globalOptions, optionGroups } from './globals.js';

export const purpose = 'manage a mailing service or a local database from the command line';

const globalLine = 'Global options: mailctl help options';

export function rootHelp(entries: readonly TreeEntry[]): string {
	return page([
		`mailctl: ${purpose}`,
		section('Usage', ['mailctl <command> [options]']),
		...groupsOf(entries),
		section(
			'Help',
			pairs([
				['mailctl <command> --help', 'show the help of a command'],
				['mailctl help options', 'show the options of all commands'],
				['mailctl help <topic>', `${topicNames.slice(1, 5).join(', ')},`],
				['', topicNames.slice(5).join(', ')],
			]),
		),
	]);
}

function groupsOf(entries: readonly TreeEntry[]): string[] {
	const width = Math.max(...entries.map(({ name }) => name.length));
	return headings.map((heading) => {
		const shown = entries.filter((one) => one.heading === heading);
		return section(heading, pairs(shown.map(({ name, summary }) => [name.padEnd(width), summary])));
	});
}

export function globalHelp(): string {
	const shown = globalOptions.filter(({ hidden }) => hidden !== true);
	const rows = ({ flags, summary, environment }: GlobalOption): [string, string] => [
		flags.startsWith('--') ? `    ${flags}` : flags,
		environment === undefined ? summary : `${summary} [${environment}]`,
	];
	const width = Math.max(...shown.map((one) => rows(one)[0].length));
	return page([
		'Use these options before or after any command. Brackets name environment variables.',
		...optionGroups.map((group) =>
			section(
				group,
				pairs(
					shown
						.filter((one) => one.group === group)
						.map((one) => {
							const [flags, summary] = rows(one);
							return [flags.padEnd(width), summary];
						}),
				),
			),
		),
	]);
}

interface Screen {
	isTTY: boolean;
	columns: number;
}

export function fitHelp(text: string, { isTTY, columns }: Screen): string {
	return isTTY ? fitLines(text, columns) : text;
}

export function fitTopic(text: string, { isTTY, columns }: Screen): string {
	return isTTY ? refitLines(text, Math.min(columns, 120)) : text;
}

export function nodeHelp(node: Command | CommandGroup, path: readonly string[]): string {
	return isCommand(node) ? commandHelp(node, path) : groupHelp(node, path);
}

function groupHelp(group: CommandGroup, path: readonly string[]): string {
	const name = `mailctl ${path.join(' ')}`;
	const rows = visibleIn(group).map((one): [string, string] => [
		isCommand(one) ? [one.name, ...one.args.map(argWord)].join(' ') : one.name,
		one.summary,
	]);
	const self = group.self === undefined ? examplesOf(group) : details(group.self);
	return page([
		`${name}: ${group.summary}`,
		...paragraphs(group.description ?? group.self?.description),
		section('Usage', [
			...(group.self === undefined ? [] : [`${name} ${tail(group.self)}`.trimEnd()]),
			...(rows.length === 0 ? [] : [`${name} <command> [options]`]),
		]),
		...(rows.length === 0 ? [] : [section('Commands', pairs(rows))]),
		...self,
		globalLine,
	]);
}

function commandHelp(command: Command, path: readonly string[]): string {
	return page([
		`mailctl ${path.join(' ')}: ${command.summary}`,
		...paragraphs(command.description),
		section('Usage', [`mailctl ${path.join(' ')} ${tail(command)}`.trimEnd()]),
		...details(command),
		globalLine,
	]);
}

function details(command: Command): string[] {
	const { args, output, exits = [], examples = [], aliases = [] } = command;
	return [
		...(aliases.length === 0 ? [] : [section('Aliases', [aliases.join(', ')])]),
		...(args.length === 0
			? []
			: [section('Arguments', pairs(args.map((arg) => [argWord(arg), arg.summary])))]),
		...optionSections(command),
		...(output === undefined ? [] : [section('Output (-o json)', [output])]),
		...(exits.length === 0
			? []
			: [section('Exit codes', pairs(exits.map((code) => [String(code), exitMeanings[code]])))]),
		...examplesOf({ examples }),
	];
}

function optionSections({ options, optionGroups = {} }: Command): string[] {
	const shown = Object.entries(options).filter(([, spec]) => spec.hidden !== true);
	const words = new Map(
		shown.map(([key, spec]) => [key, [optionLabel(key, spec), optionSummary(spec)] as const]),
	);
	const width = columnOf([...words.values()]);
	const grouped = new Set(Object.values(optionGroups).flat());
	const groups = { ...optionGroups, Options: [...words.keys()].filter((key) => !grouped.has(key)) };
	return Object.entries(groups).flatMap(([title, keys]) => {
		const rows = keys.map((key) => words.get(key)).filter((row) => row !== undefined);
		return rows.length === 0 ? [] : [section(title, pairs(rows, width))];
	});
}

function examplesOf({ examples = [] }: Pick<CommandGroup, 'examples'>): string[] {
	return examples.length === 0 ? [] : [section('Examples', examples)];
}

export function tail(command: Command): string {
	const required = Object.entries(command.options).flatMap(([key, spec]) =>
		spec.required === true ? [`${flagOf(key)} ${placeholder(spec)}`] : [],
	);
	const more = Object.values(command.options).some((spec) => spec.required !== true) ? ['[options]'] : [];
	return [...command.args.map(argWord), ...required, ...more].join(' ');
}

export function argWord({ name, optional, many }: ArgSpec): string {
	const word = many === true ? `${name}…` : name;
	return optional === true ? `[${word}]` : `<${word}>`;
}

export function optionLabel(key: string, spec: OptionSpec): string {
	const short = spec.short === undefined ? '    ' : `-${spec.short}, `;
	if (spec.kind === 'flag') return `${short}${flagOf(key)}`;
	if (spec.kind === 'tri') return `${short}${flagOf(key)} | ${offFlagOf(key, spec)}`;
	const word = `${short}${flagOf(key)} ${placeholder(spec)}`;
	if (spec.kind === 'choices') return `${word},…`;
	return spec.kind === 'list' || spec.kind === 'pairs' ? `${word}…` : word;
}

export function optionSummary(spec: OptionSpec): string {
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

function section(title: string, lines: readonly string[]): string {
	return [`${title}:`, ...lines.map((line) => `  ${line}`)].join('\n');
}

function pairs(rows: readonly (readonly [string, string])[], wide = columnOf(rows)): string[] {
	return rows.map(([left, right]) =>
		left.length <= wide ? `${left.padEnd(wide)}  ${right}` : `${left}\n  ${' '.repeat(wide)}  ${right}`,
	);
}

function columnOf(rows: readonly (readonly [string, string])[]): number {
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
