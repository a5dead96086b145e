/** Completes commands, options and values from the descriptions of the commands. */
import {
	type Command,
	type CommandGroup,
	flagOf,
	isCommand,
	loadNode,
	type OptionSpec,
	offFlagOf,
	type Tree,
	visibleIn,
} from '../frame/command.js';
import { formats, globalOptions } from '../frame/globals.js';
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
			if (value === null && takesValue(flag, node)) awaits = flag;
		} else {
			const below: Line['node'] = await childOf(tree, node, word);
			if (below === null) operands.push(word);
			else node = below;
		}
	}
	return { node, awaits, operands, used, isBehindDashes };
}

async function childOf(tree: Tree, node: Line['node'], word: string): Promise<Line['node']> {
	if (node === null) {
		const entry = tree.find(({ name }) => name === word);
		return entry === undefined ? null : loadNode(entry);
	}
	if (isCommand(node)) return null;
	return node.commands.find(({ name, aliases }) => name === word || aliases?.includes(word)) ?? null;
}

function splitFlag(word: string): [flag: string, value: string | null] {
	const found = /^(--[^=]+)=(.*)$/s.exec(word);
	return found === null ? [word, null] : [found[1] ?? '', found[2] ?? ''];
}

function takesValue(flag: string, node: Line['node']): boolean {
	const spec = specOf(flag, node);
	if (spec !== null) return spec.kind !== 'flag' && spec.kind !== 'tri';
	return globalOptions.some(({ flags }) => flags.includes('<') && namesIn(flags).includes(flag));
}

function specsOf(node: Line['node']): [key: string, spec: OptionSpec][] {
	if (node === null) return [];
	return Object.entries((isCommand(node) ? node.options : node.self?.options) ?? {});
}

function specOf(flag: string, node: Line['node']): OptionSpec | null {
	const found = specsOf(node).find(([key, { short }]) => flagOf(key) === flag || `-${short}` === flag);
	return found?.[1] ?? null;
}

function namesIn(flags: string): string[] {
	return flags.match(/--?[a-z][a-z-]*/g) ?? [];
}

function optionsOf({ node, used }: Line): Candidate[] {
	const own = specsOf(node).flatMap(([key, spec]) => {
		if (spec.hidden === true) return [];
		const flags = [flagOf(key), ...(spec.kind === 'tri' ? [offFlagOf(key, spec)] : [])];
		const isRepeated = spec.kind === 'list' || spec.kind === 'choices' || spec.kind === 'pairs';
		const isUsed = flags.some((flag) => used.has(flag)) || used.has(`-${spec.short}`);
		return isUsed && !isRepeated ? [] : flags.map((value) => ({ value, about: spec.summary }));
	});
	const global = globalOptions.flatMap(({ flags, summary, hidden }) => {
		const names = namesIn(flags);
		if (hidden === true || names.some((name) => used.has(name))) return [];
		return names.filter((name) => name.startsWith('--')).map((value) => ({ value, about: summary }));
	});
	return [...own, ...global, { value: '--help', about: 'show help' }];
}

const namesOfFlags: Readonly<Record<string, NameKind>> = {
	'--list': 'list',
	'-l': 'list',
	'--exclude-list': 'list',
	'--template': 'template',
	'--campaign': 'campaign',
	'--from': 'sender',
};

const ofGlobals: Readonly<Record<string, 'formats' | 'profiles' | 'paths' | readonly string[]>> = {
	'--output': 'formats',
	'-o': 'formats',
	'--profile': 'profiles',
	'-p': 'profiles',
	'--db': 'paths',
	'--token-file': 'paths',
	'--ca-cert': 'paths',
	'--color': ['auto', 'always', 'never'],
};

async function valuesOf(
	{ node }: Line,
	flag: string,
	begun: string,
	sources: NameSources,
): Promise<Completion> {
	const spec = specOf(flag, node);
	const kind = namesOfFlags[flag];
	if (spec !== null && kind !== undefined && spec.kind !== 'date')
		return startingWith(begun, plain(await sources.names(kind)));
	if (spec !== null) return valuesOfSpec(spec, begun);
	const global = ofGlobals[flag];
	if (global === undefined) return nothing;
	if (global === 'paths') return paths;
	if (global === 'formats') return startingWith(begun, plain(formats));
	return startingWith(begun, plain(global === 'profiles' ? sources.profiles() : global));
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
	return arg.summary.includes('profile') ? startingWith(begun, plain(sources.profiles())) : nothing;
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
