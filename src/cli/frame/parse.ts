import { CommanderError, Option, Command as Parser } from 'commander';
import {
	type Command,
	type CommandGroup,
	flagOf,
	isCommand,
	type OptionSpec,
	offFlagOf,
	visibleIn,
} from './command.js';
import { mailctl } from './command-line.js';
import { UsageError } from './errors.js';
import { globalOptions, type RawGlobals } from './globals.js';
import { didYouMean, verbsFor } from './help.js';

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

/** A global option. A command may have an option of the same key: `--no-header` and `send --header`. */
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

	/** Otherwise one of two values would be lost silently. */
	#once(option: Option, parser: Parser): Option {
		return option.argParser((value: string, before: unknown) => {
			if (before !== undefined) throw givenTwice(option);
			return this.#noOption(value, option, parser);
		});
	}

	/** `--text $BODY --preview text` with an empty variable would send a mail that should only be previewed. */
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
