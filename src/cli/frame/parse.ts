/**
 * Commander underneath: the command line into a command, its raw words and the global options. Its errors become ours. The
 * words are made safe for it first: it looks for global options everywhere.
 */

import { CommanderError, Option, Command as Parser } from 'commander';
import { type Command, type CommandGroup, flagOf, isCommand, type OptionSpec, offFlagOf } from './command.js';
import { mailctl } from './command-line.js';
import { UsageError } from './errors.js';
import { globalOptions, type RawGlobals } from './globals.js';
import { didYouMean, nodeHelp, verbsFor } from './help.js';

export type Parsed =
	| { kind: 'help'; node: Command | CommandGroup; path: readonly string[]; globals: RawGlobals }
	| {
			kind: 'run';
			command: Command;
			/** The command with its groups, as typed. */
			path: readonly string[];
			words: readonly string[];
			/** Text by option key: strings, or arrays of them; true and false for flags. */
			options: Readonly<Record<string, unknown>>;
			globals: RawGlobals;
	  };

/** Reads `argv` against one node of the tree. Throws `UsageError`. */
export function parse(node: Command | CommandGroup, argv: readonly string[]): Parsed {
	// No shell gives one; the system ends a path there, where it does not refuse it.
	if (argv.some((word) => word.includes('\0'))) throw new UsageError('an argument has a NUL in it');
	let result: Parsed | null = null;
	const program = silent(new Parser('mailctl'));
	program.helpInformation = () => nodeHelp(node, [node.name]);
	for (const { flags, summary } of globalOptions) program.addOption(once(new Option(flags, summary)));
	const words = joinValues(argv, follow(node, argv).nodes);
	program.addCommand(
		build(withoutSelf(node, words), [], (found) => {
			result = { ...found, globals: program.opts<RawGlobals>() };
		}),
	);
	try {
		program.parse(words, { from: 'user' });
	} catch (error) {
		if (!(error instanceof CommanderError)) throw error;
		if (error.code !== 'commander.helpDisplayed' && error.code !== 'commander.help')
			throw explained(error, node, words);
		return { kind: 'help', ...follow(node, words), globals: program.opts<RawGlobals>() };
	}
	if (result === null) throw new UsageError('no command given', { hint: mailctl('--help') });
	return result;
}

/**
 * A group that is a command as well has options that its commands have too: the parser would take `--last` in
 * `report compare --last 7d` for that of `report`. Values are joined to their options: the first bare word decides.
 */
function withoutSelf(node: Command | CommandGroup, words: readonly string[]): Command | CommandGroup {
	if (isCommand(node) || node.self === undefined) return node;
	const next = words.slice(words.indexOf(node.name) + 1).find((word) => !word.startsWith('-'));
	const names = node.commands.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
	if (next === undefined || !names.includes(next)) return node;
	const { self, ...group } = node;
	return { ...group, summary: self.summary };
}

type Found = Omit<Extract<Parsed, { kind: 'run' }>, 'globals'>;

function build(node: Command | CommandGroup, above: readonly string[], done: (found: Found) => void): Parser {
	const path = [...above, node.name];
	const parser = silent(new Parser(node.name));
	parser.aliases([...(node.aliases ?? [])]);
	parser.helpInformation = () => nodeHelp(node, path);
	const self = isCommand(node) ? node : node.self;
	if (self !== undefined) accept(parser, self, path, done);
	if (!isCommand(node)) for (const child of node.commands) parser.addCommand(build(child, path, done));
	return parser;
}

function accept(
	parser: Parser,
	command: Command,
	path: readonly string[],
	done: (found: Found) => void,
): void {
	// Missing words are ours to complain about: a person may be asked for them.
	for (const arg of command.args) parser.argument(arg.many === true ? `[${arg.name}...]` : `[${arg.name}]`);
	for (const [key, spec] of Object.entries(command.options))
		for (const option of optionsOf(key, spec)) parser.addOption(option);
	parser.action(() => done({ kind: 'run', command, path, words: parser.args, options: parser.opts() }));
}

function silent(parser: Parser): Parser {
	return parser
		.exitOverride()
		.configureOutput({ writeOut: () => {}, writeErr: () => {}, outputError: () => {} })
		.helpCommand(false)
		.allowExcessArguments(false)
		.helpOption('-h, --help', 'show help');
}

function optionsOf(key: string, spec: OptionSpec): Option[] {
	const short = spec.short === undefined ? '' : `-${spec.short}, `;
	const flag = flagOf(key);
	if (spec.kind === 'flag') return [new Option(`${short}${flag}`)];
	if (spec.kind === 'tri') return [new Option(`${short}${flag}`), new Option(offFlagOf(key, spec))];
	const option = new Option(`${short}${flag} <value>`);
	const repeated = spec.kind === 'list' || spec.kind === 'choices' || spec.kind === 'pairs';
	if (!repeated) return [once(option)];
	return [option.argParser((value: string, previous: string[] | undefined) => [...(previous ?? []), value])];
}

/** Of two values one would be lost without a word. A flag without a value may come again. */
function once(option: Option): Option {
	if (!option.required) return option;
	return option.argParser((value: string, previous: unknown) => {
		if (typeof previous === 'string') throw new UsageError(`${option.long} is given twice`);
		return value;
	});
}

function explained(error: CommanderError, node: Command | CommandGroup, argv: readonly string[]): UsageError {
	const { sentence, near, unknown } = saidByCommander(error);
	const { node: found, path } = follow(node, argv);
	if (unknown !== undefined && !isCommand(found)) return unknownCommand(unknown, found, path);
	// A group that is a command as well takes no words: one that is there was meant for a command.
	const word = argv.slice(argv.indexOf(node.name) + 1).find((one) => !one.startsWith('-'));
	if (error.code === 'commander.excessArguments' && !isCommand(found) && word !== undefined)
		return unknownCommand(word, found, path);
	const flag = /^unknown option '([^'=]*)/.exec(sentence)?.[1] ?? '';
	const secret = secretHint(flag);
	const meant = near ?? (isCommand(found) ? longerThan(flag, found) : undefined);
	const other = meant === undefined ? mailctl(...path, '--help') : `did you mean ${meant}?`;
	return new UsageError(secret === null ? sentence : sentence.replace(/=.*/s, "'"), {
		hint: secret ?? other,
	});
}

/** The options that the unknown one is a beginning of: `--text` of `--text-file`. */
function longerThan(flag: string, { options }: Command): string | undefined {
	const longer = Object.keys(options ?? {})
		.map(flagOf)
		.filter((one) => flag.length > 2 && one.startsWith(flag));
	return longer.length === 0 ? undefined : longer.join(' or ');
}

/** The hint for an unknown option that a secret was meant for; null: it has another name. */
export function secretHint(flag: string): string | null {
	return /^--(?:[a-z-]+-)?(?:token|password|secret)$/.test(flag)
		? 'a secret is no argument: others on this machine see them; a file or standard input gives it'
		: null;
}

/** commander 14 has codes, but only its texts contain the unknown word and the suggestion. */
function saidByCommander({ code, message }: CommanderError) {
	const [sentence = '', suggestion = ''] = message.replace(/^error: /, '').split('\n');
	const isUnknown = code === 'commander.unknownCommand';
	return {
		sentence,
		near: /^\(Did you mean (.*)\?\)$/i.exec(suggestion)?.[1],
		unknown: isUnknown ? /^unknown command '(.*)'$/.exec(sentence)?.[1] : undefined,
	};
}

function unknownCommand(word: string, group: CommandGroup, path: readonly string[]): UsageError {
	const shown = group.commands.filter((one) => !('hidden' in one && one.hidden === true));
	const names = shown.flatMap((one) => [one.name, ...(one.aliases ?? [])]);
	const [same] = verbsFor(word, names);
	const hint =
		same === undefined
			? (didYouMean(word, names) ?? `commands: ${shown.map((one) => one.name).join(', ')}`)
			: `did you mean ${same}?`;
	return new UsageError(`unknown command "${path.join(' ')} ${word}"`, { hint });
}

/** The deepest node that the words name. */
function follow(
	node: Command | CommandGroup,
	argv: readonly string[],
): { node: Command | CommandGroup; nodes: readonly (Command | CommandGroup)[]; path: readonly string[] } {
	let found = node;
	const nodes = [node];
	const path = [node.name];
	for (const word of argv.slice(argv.indexOf(node.name) + 1)) {
		if (isCommand(found)) break;
		const next = found.commands.find((one) => one.name === word || one.aliases?.includes(word) === true);
		if (next === undefined) continue;
		found = next;
		nodes.push(next);
		path.push(next.name);
	}
	return { node: found, nodes, path };
}

/**
 * Joins each of the command's own options with its value: `--sort -name` becomes `--sort=-name`, which would otherwise
 * be read as `-n` (a dry run!) and rubbish. An option in the place of a value says that the value is missing: with
 * `--text $BODY --preview text` and an empty variable a mail would leave that was to be looked at. Throws `UsageError`.
 */
export function joinValues(argv: readonly string[], commands: readonly (Command | CommandGroup)[]): string[] {
	const { valued, known, opposed } = flagsOf(commands);
	const [both] = opposed.filter((names) => names.every((name) => argv.includes(name)));
	if (both !== undefined) throw new UsageError(`${both.join(' and ')} cannot both be meant`);
	const joined: string[] = [];
	for (let at = 0; at < argv.length; at += 1) {
		const word = argv[at] ?? '';
		if (word === '--') return [...joined, ...argv.slice(at)];
		const value = argv[at + 1];
		const takesValue = valued.has(word) || globalValued.has(word);
		if (takesValue) assertNoOption(value, { known, of: word });
		if (!valued.has(word) || value === undefined) {
			joined.push(word);
			// The value of a global option is none of ours, whatever it looks like.
			if (globalValued.has(word) && value !== undefined) joined.push(value);
			if (globalValued.has(word)) at += 1;
			continue;
		}
		joined.push(word.startsWith('--') ? `${word}=${value}` : `${word}${value}`);
		at += 1;
	}
	return joined;
}

function assertNoOption(value = '', { known, of }: { known: ReadonlySet<string>; of: string }): void {
	const [flag = ''] = value.startsWith('--') ? value.split('=') : [value];
	if (!known.has(flag)) return;
	throw new UsageError(`${of} has no value: ${flag} is an option`, {
		hint: `${of}=VALUE takes a value that looks like one`,
	});
}

const globalFlags = globalOptions.map(({ flags }) => ({
	names: flags.match(/--?[a-z][a-z-]*/g) ?? [],
	takesValue: flags.includes('<'),
}));
const globalValued = new Set(globalFlags.flatMap(({ names, takesValue }) => (takesValue ? names : [])));

function flagsOf(commands: readonly (Command | CommandGroup)[]) {
	const specs = commands
		.map((node) => (isCommand(node) ? node.options : (node.self?.options ?? {})))
		.flatMap((options) => Object.entries(options));
	const known = ['--', '--help', '-h', ...globalFlags.flatMap(({ names }) => names)];
	const valued = specs.filter(([, { kind }]) => kind !== 'flag' && kind !== 'tri');
	return {
		known: new Set([...known, ...specs.flatMap(([key, spec]) => namesOf(key, spec))]),
		valued: new Set(valued.flatMap(([key, spec]) => namesOf(key, spec))),
		opposed: specs.flatMap(([key, spec]) =>
			spec.kind === 'tri' ? [[flagOf(key), offFlagOf(key, spec)]] : [],
		),
	};
}

function namesOf(key: string, spec: OptionSpec): string[] {
	const short = spec.short === undefined ? [] : [`-${spec.short}`];
	return [flagOf(key), ...short, ...(spec.kind === 'tri' ? [offFlagOf(key, spec)] : [])];
}
