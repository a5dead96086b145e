import { CommanderError, Option, Command as Parser } from 'commander';
import type { Clock } from '../../api/datetime.js';
import { type Env, type Settings, timeZoneOf } from '../config/settings.js';
import {
	type ArgSpec,
	type Command,
	type CommandGroup,
	camel,
	flagOf,
	flagsOf,
	isCommand,
	type OptionSpec,
	offFlagOf,
	type RecordKind,
	type TextForm,
	visibleIn,
} from './command.js';
import { type Hint, joinHints, mailctl } from './command-line.js';
import { UsageError } from './errors.js';
import { globalOptions, type RawGlobals } from './globals.js';
import { verbsFor } from './help.js';
import type { Sources } from './sources.js';
import { parseDate, parseDuration, parseInteger, parsePairs } from './values.js';
import { didYouMean } from './words.js';

export interface Missing {
	name: string;
	question: string;
	of: RecordKind | TextForm | undefined;
	choices: readonly string[] | undefined;
	many: boolean;
	isSecret: boolean;
	check(text: string): void;
	whyNot: ArgSpec['whyNot'];
	known: Readonly<Record<string, unknown>>;
}

interface InputDependencies {
	env: Env;
	settings: Settings;
	clock: Clock;
	sources: Sources;
	ask: ((missing: Missing) => Promise<string>) | null;
}

/**
 * Reads options, then arguments, in the order of the specs, and prompts in that order. Opens files at their first read.
 * Throws `UsageError`.
 */
export async function readInput(
	command: Command,
	raw: { words: readonly string[]; options: Readonly<Record<string, unknown>> },
	{ ask, ...dependencies }: InputDependencies,
) {
	assertChange(command, raw.options);
	const asked = new Set<string>();
	const options: Record<string, unknown> = {};
	const asking = {
		...dependencies,
		ask:
			ask &&
			((missing: Missing) => {
				asked.add(missing.name);
				return ask(missing);
			}),
	};
	for (const [key, spec] of Object.entries(command.options))
		options[key] = await readOption(key, spec, { raw: raw.options, known: options, dependencies: asking });
	const args = await readArgs(command.args, raw, { known: options, ask: asking.ask });
	return { args, options, asked };
}

function assertChange({ options, changes }: Command, raw: Readonly<Record<string, unknown>>): void {
	if (changes === undefined) return;
	const flags = Object.entries(options).flatMap(([key, spec]) =>
		changes.includes(key) ? flagsOf(key, spec) : [],
	);
	// Commander stores `--no-x` under `x`, but other words under their own names.
	const isGiven = flags.some((flag) => raw[camel(flag.slice(2))] !== undefined);
	if (!isGiven) throw new UsageError(`nothing to change: give one of ${flags.join(', ')}`);
}

async function readArgs(
	specs: readonly ArgSpec[],
	{ words, options }: { words: readonly string[]; options: Readonly<Record<string, unknown>> },
	{ known, ask }: { known: Record<string, unknown>; ask: InputDependencies['ask'] },
): Promise<Record<string, unknown>> {
	const args: Record<string, unknown> = {};
	for (const [at, spec] of specs.entries()) {
		const given = spec.many === true ? words.slice(at) : words.slice(at, at + 1);
		if (given.some((word) => word === '')) throw new UsageError(`<${spec.name}> is empty`);
		const refusal = spec.secret?.(args) ?? null;
		if (refusal !== null && given.some((word) => word !== '-')) throw refusal;
		if (given.length === 0 && spec.optional !== true) {
			if (ask === null)
				throw new UsageError(`missing <${spec.name}>: ${spec.summary}`, wayTo(spec, { ...known, ...args }));
			given.push(
				...(await askWords(spec, refusal !== null, { ask, known: { ...options, ...known, ...args } })),
			);
		}
		args[spec.name] = spec.many === true ? given : given[0];
	}
	return args;
}

async function askWords(
	{ many, ...spec }: ArgSpec,
	isSecret: boolean,
	{ ask, known }: Pick<Missing, 'known'> & { ask: NonNullable<InputDependencies['ask']> },
): Promise<readonly string[]> {
	const { name, of, choices, whyNot } = spec;
	const answer = await ask({
		...{ name, of, choices, whyNot, isSecret, known },
		question: questionOf(spec),
		many: many === true,
		check: () => {},
	});
	const isTyped = of === undefined || of === 'address' || of === 'file';
	return many === true && isTyped ? answer.trim().split(/\s+/) : [answer];
}

function wayTo(
	{ of, choices, env }: Pick<ArgSpec, 'of' | 'choices'> & { env?: string },
	{ list }: Readonly<Record<string, unknown>>,
): { hint?: Hint } {
	const inList = of === 'subscriber' && list !== undefined ? ['--list', String(list)] : [];
	const hints = [
		...(of !== undefined && Object.hasOwn(listings, of) ? [mailctl(...(listings[of] ?? []), ...inList)] : []),
		...(choices === undefined ? [] : [`one of: ${choices.join(', ')}`]),
		...(env === undefined ? [] : [`or set ${env}`]),
	];
	return hints.length === 0 ? {} : { hint: joinHints(hints) };
}

const listings: Readonly<
	Record<RecordKind, readonly string[]> & Partial<Record<TextForm, readonly string[]>>
> = {
	list: ['lists', 'list'],
	subscriber: ['subscribers', 'list'],
	field: ['fields', 'list'],
	template: ['templates', 'list'],
	sender: ['senders', 'list'],
	campaign: ['campaigns', 'list'],
	webhook: ['webhooks', 'list'],
	message: ['messages', 'list'],
	token: ['engine', 'tokens', 'list'],
	profile: ['profile', 'list'],
	'stored profile': ['profile', 'list'],
	setting: ['engine', 'settings', 'get'],
	'profile-key': ['config', 'list'],
	'signed domain': ['engine', 'dkim', 'list'],
	'DKIM key': ['engine', 'dkim', 'list'],
};

function questionOf({ ask, summary }: { ask?: string; summary: string }): string {
	return ask ?? `${summary.charAt(0).toUpperCase()}${summary.slice(1)}:`;
}

async function readOption(
	key: string,
	spec: OptionSpec,
	{
		raw,
		known,
		dependencies,
	}: {
		raw: Readonly<Record<string, unknown>>;
		known: Readonly<Record<string, unknown>>;
		dependencies: InputDependencies;
	},
): Promise<unknown> {
	const flag = flagOf(key);
	if (spec.kind === 'tri') return readTri(key, spec, raw);
	if (spec.kind === 'flag') return raw[key] === true;
	const given = raw[key] ?? fallbackOf(spec, dependencies);
	if (isRepeated(spec)) return readRepeated(spec, given, flag);
	if (given !== undefined) return readText(spec, String(given), flag, dependencies);
	if ('default' in spec && spec.default !== undefined) return spec.default;
	if (spec.required !== true) return undefined;
	if (dependencies.ask === null) throw new UsageError(`missing ${flag}: ${spec.summary}`, wayTo(spec, known));
	const read = (text: string) => readText(spec, text, flag, dependencies);
	const answer = await dependencies.ask({
		name: key,
		question: questionOf(spec),
		of: spec.kind === 'file' ? 'file' : spec.of,
		choices: spec.kind === 'choice' ? spec.choices : undefined,
		many: false,
		isSecret: false,
		check: (text) => void read(text),
		whyNot: spec.whyNot,
		known: { ...raw, ...known },
	});
	return read(answer);
}

function fallbackOf(spec: OptionSpec, { env, settings }: InputDependencies): string | undefined {
	const variable = spec.env === undefined ? undefined : env[spec.env] || undefined;
	const stored = spec.setting === 'list' ? (settings.list.value ?? undefined) : undefined;
	return variable ?? stored;
}

function readTri(
	key: string,
	spec: Extract<OptionSpec, { kind: 'tri' }>,
	raw: Readonly<Record<string, unknown>>,
): boolean | undefined {
	// Commander stores `--no-x` under `x`, but other words under their own names.
	if (spec.off === undefined) return typeof raw[key] === 'boolean' ? raw[key] : undefined;
	if (raw[key] === true) return true;
	return raw[camel(spec.off)] === true ? false : undefined;
}

type Repeated = Extract<OptionSpec, { kind: 'list' | 'choices' | 'pairs' }>;

function isRepeated(spec: OptionSpec): spec is Repeated {
	return spec.kind === 'list' || spec.kind === 'choices' || spec.kind === 'pairs';
}

function readRepeated(spec: Repeated, given: unknown, flag: string): unknown {
	const texts = Array.isArray(given) ? given.map(String) : given === undefined ? [] : [String(given)];
	if (texts.length === 0 && spec.required === true)
		throw new UsageError(
			`missing ${flag}: ${spec.summary}`,
			wayTo('choices' in spec ? { choices: spec.choices } : {}, {}),
		);
	if (spec.kind === 'pairs') return parsePairs(texts, flag);
	if (spec.kind === 'choices') {
		const words = texts.flatMap((text) => text.split(','));
		return words.map((word) => readChoice(word.trim(), spec.choices, flag));
	}
	return texts;
}

function readText(
	spec: Exclude<OptionSpec, Repeated>,
	text: string,
	flag: string,
	{ clock, settings, sources }: InputDependencies,
): unknown {
	if (text === '' && isNeverEmpty(spec)) throw new UsageError(`${flag} is empty`);
	switch (spec.kind) {
		case 'integer':
			return parseInteger(text, flag, spec);
		case 'choice':
			return readChoice(text, spec.choices, flag);
		case 'duration':
			return parseDuration(text, flag);
		case 'date':
			return parseDate(text, flag, { clock, zone: () => timeZoneOf(settings) });
		case 'file':
			return sources.file(text, flag);
		case 'content':
			return sources.content(text, flag);
		default:
			return text;
	}
}

function isNeverEmpty(spec: Exclude<OptionSpec, Repeated>): boolean {
	return spec.kind === 'file' || spec.kind === 'path' || (spec.kind === 'text' && spec.default !== undefined);
}

function readChoice(text: string, choices: readonly string[], flag: string): string {
	const found = choices.find((choice) => choice.toLowerCase() === text.toLowerCase());
	if (found !== undefined) return found;
	const hint = didYouMean(text, choices) ?? `one of: ${choices.join(', ')}`;
	throw new UsageError(`${flag}: unknown value "${text}"`, { hint });
}

export type Parsed =
	| { kind: 'help'; node: Command | CommandGroup; path: readonly string[]; globals: RawGlobals }
	| {
			kind: 'run';
			command: Command;
			path: readonly string[];
			words: readonly string[];
			options: Readonly<Record<string, unknown>>;
			globals: RawGlobals;
	  };

export function parse(node: Command | CommandGroup, argv: readonly string[]): Parsed {
	const parsers = new Parsers(node, argv);
	try {
		parsers.program.parse(argv, { from: 'user' });
	} catch (error) {
		if (!(error instanceof CommanderError)) throw error;
		if (parsers.end === null) throw refusalOf(error, parsers.path);
	}
	if (parsers.end === null) throw new UsageError('no command given', { hint: mailctl('--help') });
	return parsers.end;
}

/** A global option. A command may have an option with the same key: `--no-header` and `send --header`. */
class AnyCommandOption extends Option {
	readonly key = super.attributeName();

	override attributeName(): string {
		return `global ${super.attributeName()}`;
	}
}

class Parsers {
	readonly program: Parser;
	path: readonly string[] = [];
	end: Parsed | null = null;
	readonly #argv: readonly string[];

	constructor(node: Command | CommandGroup, argv: readonly string[]) {
		this.#argv = argv;
		this.program = this.#start('mailctl', () => this.#help(this.program, node, [node.name]));
		this.#addGlobals(this.program);
		this.#addTo(this.program, node, []);
	}

	#start(name: string, onHelp: () => void): Parser {
		const parser = new Parser(name);
		parser.helpInformation = () => {
			onHelp();
			return '';
		};
		return parser
			.exitOverride()
			.configureOutput({ writeOut: () => {}, writeErr: () => {}, outputError: () => {} })
			.enablePositionalOptions()
			.helpCommand(false)
			.helpOption('-h, --help', 'show help');
	}

	#addGlobals(parser: Parser): void {
		for (const { flags, summary, hidden } of globalOptions) {
			const option = new AnyCommandOption(flags, summary).hideHelp(hidden === true);
			parser.addOption(option.required ? this.#once(option, parser) : option);
		}
	}

	#addTo(above: Parser, node: Command | CommandGroup, abovePath: readonly string[]): void {
		const path = [...abovePath, node.name];
		const parser: Parser = this.#start(node.name, () => this.#help(parser, node, path));
		parser.aliases([...(node.aliases ?? [])]);
		above.addCommand(parser);
		above.hook('preSubcommand', (_, next) => {
			if (next === parser) this.#fill(parser, node, path);
		});
	}

	#fill(parser: Parser, node: Command | CommandGroup, path: readonly string[]): void {
		this.path = path;
		this.#addGlobals(parser);
		const self = isCommand(node) ? node : node.self;
		if (!isCommand(node)) {
			for (const child of node.commands) this.#addTo(parser, child, path);
			parser.on('command:*', ([word = '']: string[]) => {
				throw unknownCommand(word, node, path);
			});
		}
		if (self === undefined) return;
		for (const { name, many } of self.args) parser.argument(many === true ? `[${name}...]` : `[${name}]`);
		for (const [key, spec] of Object.entries(self.options)) this.#addOption(parser, key, spec);
		parser.allowExcessArguments(!isCommand(node)).action(() => {
			const { args: words } = parser;
			const excess = words[self.args.length];
			if (!isCommand(node) && excess !== undefined) throw unknownCommand(excess, node, path);
			this.end = { kind: 'run', command: self, path, words, ...given(parser) };
		});
	}

	#addOption(parser: Parser, key: string, spec: OptionSpec): void {
		const flag = `${spec.short === undefined ? '' : `-${spec.short}, `}${flagOf(key)}`;
		const option = new Option(`${flag} <value>`, spec.summary);
		switch (spec.kind) {
			case 'flag':
				parser.addOption(new Option(flag, spec.summary));
				return;
			case 'tri':
				parser.addOption(new Option(flag, spec.summary).conflicts(spec.off ?? []));
				parser.addOption(new Option(offFlagOf(key, spec)));
				return;
			case 'list':
			case 'choices':
			case 'pairs':
				option.argParser((value: string, before: string[] | undefined) => [
					...(before ?? []),
					this.#noOption(value, option, parser),
				]);
				parser.addOption(option);
				return;
			default:
				parser.addOption(this.#once(option, parser));
		}
	}

	/** Rejects a repeated option, because one of the two values would be lost silently. */
	#once(option: Option, parser: Parser): Option {
		return option.argParser((value: string, before: unknown) => {
			if (before !== undefined) throw givenTwice(option);
			return this.#noOption(value, option, parser);
		});
	}

	/** Rejects options as values: `--text $BODY --preview text` with an empty variable would send instead of preview. */
	#noOption(value: string, { long, short }: Option, { options }: Parser): string {
		const [flag = value] = value.startsWith('--') ? value.split('=') : [value];
		const isOption = options.some((one) => one.long === flag || one.short === flag);
		if (!isOption || this.#argv.includes(`${long}=${value}`)) return value;
		throw new UsageError(`${long ?? short} has no value: ${flag} is an option`);
	}

	#help(parser: Parser, node: Command | CommandGroup, path: readonly string[]): void {
		this.end = { kind: 'help', node, path, globals: given(parser).globals };
	}
}

function givenTwice({ long }: Option): UsageError {
	return new UsageError(`${long} is given twice`);
}

function given(parser: Parser): Pick<Extract<Parsed, { kind: 'run' }>, 'options' | 'globals'> {
	const options: Record<string, unknown> = {};
	const globals: Record<string, unknown> = {};
	for (let one: Parser | null = parser; one !== null; one = one.parent) {
		for (const option of one.options) {
			const key = option.attributeName();
			if (one.getOptionValueSource(key) !== 'cli') continue;
			const isOwn = !(option instanceof AnyCommandOption);
			const [into, name] = isOwn ? [options, key] : [globals, option.key];
			if (one !== parser && option.required && Object.hasOwn(into, name)) throw givenTwice(option);
			into[name] ??= one.getOptionValue(key);
		}
	}
	return { options, globals };
}

function unknownCommand(word: string, group: CommandGroup, path: readonly string[]): UsageError {
	const shown = visibleIn(group);
	const names = shown.flatMap((one) => [one.name, ...(one.aliases ?? [])]);
	const [same] = verbsFor(word, names);
	const near = same === undefined ? didYouMean(word, names) : `did you mean ${same}?`;
	return new UsageError(`unknown command "${path.join(' ')} ${word}"`, {
		hint: near ?? `commands: ${shown.map((one) => one.name).join(', ')}`,
	});
}

function refusalOf({ message }: CommanderError, path: readonly string[]): UsageError {
	const [sentence = '', suggestion = ''] = message.replace(/^error: /, '').split('\n');
	const meant = suggestion.replace(/^\(D/, 'd').replace(/\)$/, '');
	return new UsageError(sentence.replace(/^(unknown option '[^=]*)=.*/s, "$1'"), {
		hint: meant === '' ? mailctl(...path, '--help') : meant,
	});
}
