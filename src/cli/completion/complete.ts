import {
	type Command,
	type CommandGroup,
	childOf,
	flagsOf,
	isCommand,
	loadNode,
	namesOf,
	type OptionSpec,
	type Tree,
	takesValue,
	visibleIn,
} from '../frame/command.js';
import { globalOptions } from '../frame/globals.js';
import { topicNames } from '../frame/help.js';
import { type NameKind, nameKinds } from './names.js';

export interface Candidate {
	value: string;
	about: string;
}

export interface Completion {
	candidates: readonly Candidate[];
	files: boolean;
}

export interface NameSources {
	tree: Tree;
	names(kind: NameKind): Promise<readonly string[]>;
	profiles(): readonly string[];
}

const nothing: Completion = { candidates: [], files: false };
const paths: Completion = { candidates: [], files: true };

export async function complete(words: readonly string[], sources: NameSources): Promise<Completion> {
	const before = words.slice(0, -1);
	const word = words.at(-1) ?? '';
	const [flag, value] = splitFlag(word);
	const line = await readLine(sources.tree, before);
	if (value !== null) {
		const found = await valuesOf(line, flag, value, sources);
		return {
			...found,
			candidates: found.candidates.map((one) => ({ ...one, value: `${flag}=${one.value}` })),
		};
	}
	if (line.awaits !== null) return valuesOf(line, line.awaits, word, sources);
	if (word.startsWith('-') && !line.isBehindDashes) return startingWith(word, optionsOf(line));
	if (line.node === null && line.operands.length > 0) return nothing;
	if (line.node !== null && isCommand(line.node)) return operandsOf(line, word, sources);
	const named = line.node === null ? sources.tree : visibleIn(line.node);
	return startingWith(
		word,
		named.map(({ name, summary }) => ({ value: name, about: summary })),
	);
}

interface Line {
	node: Command | CommandGroup | null;
	awaits: string | null;
	operands: readonly string[];
	used: ReadonlySet<string>;
	isBehindDashes: boolean;
}

async function readLine(tree: Tree, words: readonly string[]): Promise<Line> {
	let node: Line['node'] = null;
	let awaits: string | null = null;
	let isBehindDashes = false;
	const operands: string[] = [];
	const used = new Set<string>();
	for (const word of words) {
		if (awaits !== null) awaits = null;
		else if (word === '--') isBehindDashes = true;
		else if (word.startsWith('-') && word !== '-' && !isBehindDashes) {
			const [flag, value] = splitFlag(word);
			used.add(flag);
			const spec = specOf(flag, node);
			if (value === null && spec !== null && takesValue(spec)) awaits = flag;
		} else {
			const found: Line['node'] = await belowOf(tree, node, word);
			if (found === null) operands.push(word);
			else node = found;
		}
	}
	return { node, awaits, operands, used, isBehindDashes };
}

async function belowOf(tree: Tree, node: Line['node'], word: string): Promise<Line['node']> {
	if (node !== null) return isCommand(node) ? null : (childOf(node, word) ?? null);
	const entry = tree.find(({ name }) => name === word);
	return entry === undefined ? null : loadNode(entry);
}

function splitFlag(word: string): [flag: string, value: string | null] {
	const found = /^(--[^=]+)=(.*)$/s.exec(word);
	return found === null ? [word, null] : [found[1] ?? '', found[2] ?? ''];
}

function specsOf(node: Line['node']): [key: string, spec: OptionSpec][] {
	const own = node === null ? {} : isCommand(node) ? node.options : node.self?.options;
	return [...Object.entries(own ?? {}), ...Object.entries(globalOptions)];
}

function specOf(flag: string, node: Line['node']): OptionSpec | null {
	return specsOf(node).find(([key, spec]) => namesOf(key, spec).includes(flag))?.[1] ?? null;
}

function optionsOf({ node, used }: Line): Candidate[] {
	const shown = specsOf(node).flatMap(([key, spec]) => {
		const isRepeated = spec.kind === 'list' || spec.kind === 'choices' || spec.kind === 'pairs';
		const isUsed = namesOf(key, spec).some((name) => used.has(name));
		if (spec.hidden === true || (isUsed && !isRepeated)) return [];
		return flagsOf(key, spec).map((value) => ({ value, about: spec.summary }));
	});
	return [...shown, { value: '--help', about: 'show help' }];
}

const namesOfFlags: Readonly<Record<string, NameKind>> = {
	'--list': 'list',
	'-l': 'list',
	'--exclude-list': 'list',
	'--template': 'template',
	'--campaign': 'campaign',
	'--from': 'sender',
};

async function valuesOf(
	{ node }: Line,
	flag: string,
	begun: string,
	sources: NameSources,
): Promise<Completion> {
	const spec = specOf(flag, node);
	const kind = namesOfFlags[flag];
	if (spec === null) return nothing;
	if (kind !== undefined && spec.kind !== 'date')
		return startingWith(begun, plain(await sources.names(kind)));
	return spec.of === 'profile' ? startingWith(begun, plain(sources.profiles())) : valuesOfSpec(spec, begun);
}

function valuesOfSpec(spec: OptionSpec, begun: string): Completion {
	if (spec.kind === 'file' || spec.kind === 'path' || spec.placeholder === 'FILE') return paths;
	if (spec.kind === 'choice') return startingWith(begun, plain(spec.choices));
	if (spec.kind !== 'choices') return nothing;
	const done = begun.slice(0, begun.lastIndexOf(',') + 1);
	const left = spec.choices.filter((choice) => !done.split(',').includes(choice));
	return startingWith(begun, plain(left.map((choice) => done + choice)));
}

async function operandsOf(
	{ node, operands }: Line,
	begun: string,
	sources: NameSources,
): Promise<Completion> {
	if (node === null || !isCommand(node)) return nothing;
	const arg = node.args[operands.length] ?? node.args.filter(({ many }) => many === true).at(-1);
	if (arg === undefined) return nothing;
	if (arg.choices !== undefined) return startingWith(begun, plain(arg.choices));
	if (arg.of === 'setting' || arg.of === 'profile-key') return startingWith(begun, await settingsOf(arg.of));
	if (/^(file|path|directory|source)$/.test(arg.name)) return paths;
	if (arg.name === 'topic')
		return startingWith(begun, plain([...topicNames, ...sources.tree.map(({ name }) => name)]));
	const kind = nameKinds.find((one) => one === arg.name);
	if (kind !== undefined) {
		const names = (await sources.names(kind)).filter((name) => !operands.includes(name));
		return startingWith(begun, plain(names));
	}
	const isProfile = arg.of === 'profile' || arg.of === 'stored profile';
	return isProfile ? startingWith(begun, plain(sources.profiles())) : nothing;
}

async function settingsOf(of: 'setting' | 'profile-key'): Promise<readonly Candidate[]> {
	if (of === 'profile-key') {
		const { profileKeys } = await import('../config/config.js');
		const keys = Object.entries(profileKeys).map(([value, { is }]) => ({ value, about: is }));
		return [{ value: 'profile', about: 'the default profile' }, ...keys];
	}
	const { settingNames } = await import('../../engine/rules/settings.js');
	return Object.entries(settingNames).map(([value, about]) => ({
		value,
		about: about.replace(/[;:].*/, ''),
	}));
}

function plain(values: readonly string[]): Candidate[] {
	return values.map((value) => ({ value, about: '' }));
}

function startingWith(begun: string, candidates: readonly Candidate[]): Completion {
	const start = begun.toLowerCase();
	return {
		candidates: candidates.filter(({ value }) => value.toLowerCase().startsWith(start)),
		files: false,
	};
}
