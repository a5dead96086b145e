import { CommanderError, Option, Command as Parser } from 'commander';
import type { Clock } from '../../api/datetime.js';
import { type Settings, timeZoneOf } from '../config/settings.js';
import {
	type ArgSpec,
	type Command,
	type CommandGroup,
	childOf,
	flagOf,
	flagsOf,
	isCommand,
	type OptionSpec,
	type OptionSpecs,
	type RecordKind,
	type TextForm,
	takesValue,
	visibleIn,
} from './command.js';
import { type Hint, joinHints, mailctl } from './command-line.js';
import { UsageError } from './errors.js';
import { globalOptions, operands, type RawGlobals } from './globals.js';
import { verbsFor } from './help.js';
import type { Env } from './io.js';
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

/** Throws `UsageError` for a missing or invalid value. Opens no files: the command opens a file when it reads it. */
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
	if (changes === undefined || changes.some((key) => raw[key] !== undefined)) return;
	const flags = Object.entries(options).flatMap(([key, spec]) =>
		changes.includes(key) ? flagsOf(key, spec) : [],
	);
	throw new UsageError(`nothing to change: give one of ${flags.join(', ')}`);
}

async function readArgs(
	specs: readonly ArgSpec[],
	{ words, options }: { words: readonly string[]; options: Readonly<Record<string, unknown>> },
	{ known, ask }: { known: Record<string, unknown>; ask: InputDependencies['ask'] },
): Promise<Record<string, unknown>> {
	const args: Record<string, unknown> = {};
	for (const [at, spec] of specs.entries()) {
		const { name, summary, many, optional, secret } = spec;
		const given = many === true ? words.slice(at) : words.slice(at, at + 1);
		if (given.some((word) => word === '')) throw new UsageError(`<${name}> is empty`);
		const refusal = secret?.(args) ?? null;
		if (refusal !== null && given.some((word) => word !== '-')) throw refusal;
		if (given.length === 0 && optional !== true) {
			if (ask === null)
				throw new UsageError(`missing <${name}>: ${summary}`, wayTo(spec, { ...known, ...args }));
			const all = { ...options, ...known, ...args };
			given.push(...(await askWords(spec, { isSecret: refusal !== null, known: all, ask })));
		}
		args[name] = many === true ? given : given[0];
	}
	return args;
}

async function askWords(
	{ many: isMany, ...spec }: ArgSpec,
	{ ask, ...more }: Pick<Missing, 'isSecret' | 'known'> & { ask: NonNullable<InputDependencies['ask']> },
): Promise<readonly string[]> {
	const { name, of, choices, whyNot } = spec;
	const many = isMany === true;
	const answer = await ask({
		...{ name, of, choices, whyNot, many, question: questionOf(spec) },
		...more,
		check: () => {},
	});
	const isTyped = of === undefined || of === 'address' || of === 'file';
	return many && isTyped ? answer.trim().split(/\s+/) : [answer];
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
	if (spec.kind === 'tri') return raw[key];
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

/** Throws `UsageError`. Before the verb, options of the command need the form `--key=value`. */
export function parse(noun: Command | CommandGroup, argv: readonly string[]): Parsed {
	const { node, path, rest } = follow(noun, argv);
	const self = isCommand(node) ? node : node.self;
	const parser = new Parser(node.name)
		.exitOverride()
		.configureOutput({ writeOut: () => {}, writeErr: () => {}, outputError: () => {} })
		.helpOption('-h, --help', 'show help')
		.allowExcessArguments();
	parser.helpInformation = () => '';
	for (const { name, many } of self?.args ?? []) parser.argument(`[${name}${many === true ? '...' : ''}]`);
	// A command's option may have the name of a global option: `--no-header` is global, and `api` has `--header`.
	const globals = addOptions(parser, { specs: globalOptions, prefix: 'global ', argv });
	const options = addOptions(parser, { specs: self?.options ?? {}, prefix: '', argv });
	try {
		parser.parse(rest, { from: 'user' });
	} catch (error) {
		if (!(error instanceof CommanderError)) throw error;
		if (error.code !== 'commander.helpDisplayed') throw refusalOf(error, path);
		return { kind: 'help', node, path, globals: globals() };
	}
	const { args: words } = parser;
	const excess = self?.args.at(-1)?.many === true ? undefined : words[self?.args.length ?? 0];
	if (excess !== undefined) throw unknownWord(excess, node, path);
	if (self === undefined) return { kind: 'help', node, path, globals: globals() };
	return { kind: 'run', command: self, path, words, options: options(), globals: globals() };
}

function follow(noun: Command | CommandGroup, argv: readonly string[]) {
	const path = [noun.name];
	const [first, ...others] = operands(argv);
	const taken = [first?.at];
	let node = noun;
	for (const { word, at } of others) {
		const child = isCommand(node) ? undefined : childOf(node, word);
		if (child === undefined) break;
		node = child;
		path.push(child.name);
		taken.push(at);
	}
	return { node, path, rest: argv.filter((_, at) => !taken.includes(at)) };
}

interface Added {
	specs: OptionSpecs;
	prefix: string;
	argv: readonly string[];
}

/** After parsing, the returned function gives the values by key: texts, lists of texts, or booleans for flags. */
function addOptions(parser: Parser, { specs, prefix, argv }: Added): () => Record<string, unknown> {
	for (const [key, spec] of Object.entries(specs)) {
		const short = spec.short === undefined ? '' : `-${spec.short}, `;
		const flags = flagsOf(key, spec);
		for (const flag of flags) {
			const words = takesValue(spec) ? `${flag} <value>` : flag;
			const option = new Option(flag === flags[0] ? short + words : words).hideHelp(spec.hidden === true);
			option.attributeName = () => prefix + key;
			parser.addOption(
				option.argParser((value: string, before: unknown) => {
					if (!takesValue(spec)) return turned(flag, flags, before);
					assertNoOption(value, flag, { parser, argv });
					if (isRepeated(spec)) return [...(Array.isArray(before) ? before : []), value];
					// Commander would keep only the last value.
					if (before !== undefined) throw new UsageError(`${flag} is given twice`);
					return value;
				}),
			);
		}
	}
	return () =>
		Object.fromEntries(
			Object.keys(specs)
				.filter((key) => parser.getOptionValueSource(prefix + key) === 'cli')
				.map((key) => [key, parser.getOptionValue(prefix + key)]),
		);
}

function turned(flag: string, [on, off]: readonly string[], before: unknown): boolean {
	const isOn = flag === on;
	if (off !== undefined && before === !isOn) throw new UsageError(`use either '${on}' or '${off}', not both`);
	return isOn;
}

/** Rejects an option as a value. If `$BODY` is empty, `--text $BODY --preview text` would send instead of preview. */
function assertNoOption(
	value: string,
	flag: string,
	{ parser, argv }: { parser: Parser; argv: readonly string[] },
): void {
	const [name = value] = value.startsWith('--') ? value.split('=') : [value];
	const isOption = parser.options.some(({ long, short }) => long === name || short === name);
	if (isOption && !argv.includes(`${flag}=${value}`))
		throw new UsageError(`${flag} has no value: ${name} is an option`);
}

function unknownWord(word: string, node: Command | CommandGroup, path: readonly string[]): UsageError {
	if (isCommand(node))
		return new UsageError(`unexpected argument "${word}"`, { hint: mailctl(...path, '--help') });
	const shown = visibleIn(node);
	const names = shown.flatMap((one) => [one.name, ...(one.aliases ?? [])]);
	const [same] = verbsFor(word, names);
	const near = same === undefined ? didYouMean(word, names) : `did you mean ${same}?`;
	const hint = near ?? `commands: ${shown.map((one) => one.name).join(', ')}`;
	return new UsageError(`unknown command "${path.join(' ')} ${word}"`, { hint });
}

function refusalOf({ message }: CommanderError, path: readonly string[]): UsageError {
	const [sentence = '', suggestion = ''] = message.replace(/^error: /, '').split('\n');
	const meant = suggestion.replace(/^\(D/, 'd').replace(/\)$/, '');
	// Do not quote the value, which may be a secret.
	const [, name, value] = /^unknown option '([^=']*)(=.*)?'$/s.exec(sentence) ?? [];
	if (value !== undefined && meant === `did you mean ${name}?`)
		return new UsageError(`option '${name}' takes no value`);
	const shown = name === undefined ? sentence.replace(' <value>', '') : `unknown option '${name}'`;
	return new UsageError(shown, { hint: meant === '' ? mailctl(...path, '--help') : meant });
}
