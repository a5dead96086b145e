import {
	type ArgSpec,
	type Command,
	type CommandGroup,
	isCommand,
	namesOf,
	type OptionSpec,
	type OptionSpecs,
	takesValue,
	visibleIn,
} from './command.js';
import { exitMeanings } from './exit.js';
import { globalOptions } from './globals.js';
import { placeholder, purpose } from './help.js';

interface Description {
	name: string;
	aliases: readonly string[];
	summary: string;
	description: string | null;
	arguments: readonly ReturnType<typeof describeArgument>[];
	options: readonly ReturnType<typeof describeOption>[];
	output: string | null;
	exit_codes: readonly { code: number; meaning: string }[];
	examples: readonly string[];
	writes: boolean;
	commands: readonly Description[];
}

export function describeNode(node: Command | CommandGroup, path: readonly string[]): Description {
	const self = isCommand(node) ? node : node.self;
	const commands = isCommand(node) ? [] : visibleIn(node);
	return {
		name: path.join(' '),
		aliases: node.aliases ?? [],
		summary: node.summary,
		description: node.description ?? self?.description ?? null,
		arguments: (self?.args ?? []).map(describeArgument),
		options: describeOptions(self?.options ?? {}),
		output: self?.output ?? null,
		exit_codes: (self?.exits ?? []).map((code) => ({ code, meaning: exitMeanings[code] })),
		examples: node.examples ?? self?.examples ?? [],
		writes: self?.writes === true,
		commands: commands.map((one) => describeNode(one, [...path, one.name])),
	};
}

export function describeAll(nodes: readonly (Command | CommandGroup)[]): Description {
	return {
		name: 'mailctl',
		aliases: [],
		summary: purpose,
		description: null,
		arguments: [],
		options: describeOptions(globalOptions),
		output: null,
		exit_codes: Object.entries(exitMeanings).map(([code, meaning]) => ({ code: Number(code), meaning })),
		examples: [],
		writes: false,
		commands: nodes.map((node) => describeNode(node, [node.name])),
	};
}

function describeArgument({ name, summary, optional, many, choices }: ArgSpec) {
	return {
		name,
		summary,
		required: optional !== true,
		repeated: many === true,
		values: choices ?? null,
	};
}

function describeOptions(specs: OptionSpecs) {
	const shown = Object.entries(specs).filter(([, { hidden }]) => hidden !== true);
	return shown.map(([key, spec]) => describeOption(key, spec));
}

function describeOption(key: string, spec: OptionSpec) {
	const { summary, env, kind } = spec;
	return {
		flags: namesOf(key, spec),
		summary,
		value: takesValue(spec) ? placeholder(spec) : null,
		required: spec.required === true,
		repeated: kind === 'list' || kind === 'choices' || kind === 'pairs',
		values: 'choices' in spec ? spec.choices : null,
		default: ('default' in spec ? spec.default : null) ?? null,
		environment: env?.split(', ') ?? [],
	};
}
