import {
	type ArgSpec,
	type Command,
	type CommandGroup,
	flagsOf,
	isCommand,
	type OptionSpec,
	visibleIn,
} from './command.js';
import { exitMeanings } from './exit.js';
import { formats, type GlobalOption, globalOptions } from './globals.js';
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
		options: Object.entries(self?.options ?? {}).flatMap(([key, spec]) =>
			spec.hidden === true ? [] : [describeOption(key, spec)],
		),
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
		options: globalOptions.filter(({ hidden }) => hidden !== true).map(describeGlobal),
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

function describeOption(key: string, spec: OptionSpec) {
	const { summary, short, env, kind } = spec;
	return {
		flags: [...(short === undefined ? [] : [`-${short}`]), ...flagsOf(key, spec)],
		summary,
		value: kind === 'flag' || kind === 'tri' ? null : placeholder(spec),
		required: spec.required === true,
		repeated: kind === 'list' || kind === 'choices' || kind === 'pairs',
		values: 'choices' in spec ? spec.choices : null,
		default: ('default' in spec ? spec.default : null) ?? null,
		environment: env === undefined ? [] : [env],
	};
}

function describeGlobal({ flags, summary, environment }: GlobalOption): ReturnType<typeof describeOption> {
	const names: string[] = flags.match(/--?[a-z][a-z-]*/g) ?? [];
	return {
		flags: names,
		summary,
		value: /<([^<>]+)>/.exec(flags)?.[1] ?? null,
		required: false,
		repeated: false,
		values: names.includes('--output') ? formats : null,
		default: null,
		environment: environment?.split(', ') ?? [],
	};
}
