/**
 * Describes a command as data: name, arguments, options, output and action. The parser, the help and `mailctl commands`
 * read the same description.
 */
import type { Columns } from '../render/columns.js';
import type { ConnectDependencies } from './connection.js';
import type { CommandContext } from './context.js';
import type { ExitCode } from './exit.js';

export type RecordKind =
	| 'list'
	| 'subscriber'
	| 'field'
	| 'template'
	| 'sender'
	| 'campaign'
	| 'webhook'
	| 'message'
	| 'token'
	| 'profile'
	| 'stored profile'
	| 'setting'
	| 'profile-key'
	| 'signed domain'
	| 'DKIM key';

export const textForms = ['address', 'url', 'variable', 'file', 'directory', 'path'] as const;
export type TextForm = (typeof textForms)[number];

type WhyNot = (
	cx: CommandContext,
	typed: string,
	before: Readonly<Record<string, unknown>>,
) => Promise<string | null>;

interface OptionBase {
	summary: string;
	short?: string;
	placeholder?: string;
	required?: true;
	ask?: string;
	/** A prompt offers the existing records of this kind, or checks that the text has this form. */
	of?: RecordKind | TextForm;
	whyNot?: WhyNot;
	env?: string;
	setting?: 'list';
	hidden?: true;
}

/**
 * Keys are camelCase, flags kebab-case. `tri` is `--key|--no-key`, or `--key|--<off>`. `list`, `choices` and `pairs`
 * may be repeated; `choices` also accept commas. `file` is a path or `-`. `path` is the text of a path. `content` is
 * the text itself, `@FILE` or `-`. `duration` is milliseconds. `date` is `YYYY-MM-DD`.
 */
export type OptionSpec = OptionBase &
	(
		| { kind: 'text'; default?: string }
		| { kind: 'integer'; default?: number; min?: number; max?: number }
		| { kind: 'flag' }
		| { kind: 'tri'; off?: string }
		| { kind: 'list' }
		| { kind: 'choice'; choices: readonly string[]; default?: string }
		| { kind: 'choices'; choices: readonly string[] }
		| { kind: 'pairs' }
		| { kind: 'duration'; default?: number }
		| { kind: 'date' }
		| { kind: 'file' }
		| { kind: 'path' }
		| { kind: 'content' }
	);

export interface ArgSpec {
	name: string;
	summary: string;
	optional?: true;
	many?: true;
	ask?: string;
	of?: RecordKind | TextForm;
	choices?: readonly string[];
	/** Returns null if the value is not secret. Otherwise returns the error for a value in an argument. */
	secret?: (before: Readonly<Record<string, unknown>>) => Error | null;
	whyNot?: WhyNot;
}

export interface FileSource {
	readonly name: string;
	readonly path: string | null;
	text(): Promise<string>;
	/** Reads at most 64 MiB, or `most` bytes. Throws `UsageError` for more. */
	bytes(most?: number): Promise<Buffer>;
}

export interface ContentSource {
	readonly name: string;
	text(): Promise<string>;
}

interface KindValues {
	text: string;
	integer: number;
	flag: boolean;
	tri: boolean;
	list: readonly string[];
	pairs: Readonly<Record<string, string>>;
	duration: number;
	date: string;
	file: FileSource;
	path: string;
	content: ContentSource;
}

type BaseValue<S extends OptionSpec> = S extends { kind: 'choice'; choices: readonly (infer C)[] }
	? C
	: S extends { kind: 'choices'; choices: readonly (infer C)[] }
		? readonly C[]
		: S extends { kind: keyof KindValues }
			? KindValues[S['kind']]
			: never;

/** An absent flag is false. An absent repeated option is empty. Other options have their default or are undefined. */
type OptionValue<S extends OptionSpec> = S extends
	| { kind: 'flag' | 'list' | 'choices' | 'pairs' }
	| { required: true }
	| { default: string | number }
	? BaseValue<S>
	: BaseValue<S> | undefined;

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;
export type OptionValues<O extends OptionSpecs> = { readonly [K in keyof O]: OptionValue<O[K]> };

type ArgValue<S extends ArgSpec> = S extends { many: true }
	? readonly string[]
	: S extends { optional: true }
		? string | undefined
		: string;
type ArgValues<A extends readonly ArgSpec[]> = {
	readonly [S in A[number] as S['name']]: ArgValue<S>;
};

export const reachOptions = [
	...(['profile', 'baseUrl', 'db', 'tokenFile', 'tokenStdin', 'caCert', 'insecure', 'proxy'] as const),
];
type ReachOption = (typeof reachOptions)[number];

type Role = Exclude<ConnectDependencies['role'], 'cli'>;

interface Described {
	name: string;
	aliases?: readonly string[];
	summary: string;
	description?: string;
	optionGroups?: Readonly<Record<string, readonly string[]>>;
	examples?: readonly string[];
	output?: string;
	exits?: readonly ExitCode[];
	/** The command respects `--dry-run`, and asks first if the profile is protected. */
	writes?: true;
	asksItself?: true;
	/** True: create any missing database. False: create none. Absent: commands that write create the default database. */
	createsDatabase?: boolean;
	/** A command that keeps running registers this role in the database. */
	role?: Role | ((options: Readonly<Record<string, unknown>>) => Role);
	/** The command administers profiles: it stores the values of `--profile`, `--base-url` and `--db`. */
	profiles?: true;
	/** The `reachOptions` that the command accepts. Default: all; the network options require a remote target. */
	reach?: readonly ReachOption[];
	needsNoDatabase?: true;
	needsNoConfig?: true;
	needsNoTarget?: true;
	severity?: 'mild' | 'severe';
	/**
	 * The columns that `--fields` may name. A writing command without columns rejects `--fields`. `own`: the command
	 * itself reads `--fields`.
	 */
	columns?: Columns<never> | 'own';
	hidden?: true;
}

interface CommandSpec<A extends readonly ArgSpec[], O extends OptionSpecs> extends Described {
	args?: A;
	options?: O;
	changes?: readonly (keyof NoInfer<O> & string)[];
	run(
		cx: CommandContext,
		input: { args: ArgValues<A>; options: OptionValues<O>; asked: ReadonlySet<string> },
	): Promise<CommandEnd>;
	whenStopped?(reason: unknown, input: { args: ArgValues<A> }): unknown;
}

/** Undefined means exit code 0. */
// biome-ignore lint/suspicious/noConfusingVoidType: wouldDo returns Promise<void>
type CommandEnd = ExitCode | undefined | void;

export interface Command extends Described {
	kind: 'command';
	args: readonly ArgSpec[];
	options: OptionSpecs;
	changes?: readonly string[];
	run(
		cx: CommandContext,
		input: { args: Record<string, unknown>; options: Record<string, unknown>; asked: ReadonlySet<string> },
	): Promise<CommandEnd>;
	whenStopped(reason: unknown, input: { args: Record<string, unknown> }): unknown;
}

export interface CommandGroup {
	name: string;
	aliases?: readonly string[];
	summary: string;
	description?: string;
	examples?: readonly string[];
	commands: readonly (Command | CommandGroup)[];
	self?: Command;
}

export const headings = ['Audience', 'Sending', 'Results', 'Deployment', 'Set-up', 'Tools'] as const;

export interface TreeEntry {
	name: string;
	heading: (typeof headings)[number];
	summary: string;
	load(): Promise<{ group: CommandGroup } | { command: Command }>;
}

export type Tree = readonly TreeEntry[];

export async function loadNode(entry: TreeEntry): Promise<Command | CommandGroup> {
	const loaded = await entry.load();
	return 'group' in loaded ? loaded.group : loaded.command;
}

const verbAliases: Readonly<Record<string, readonly string[]>> = {
	list: ['ls'],
	delete: ['rm'],
	remove: ['rm', 'delete'],
};

export function command<
	const A extends readonly ArgSpec[] = [],
	const O extends OptionSpecs = Record<never, never>,
>(spec: CommandSpec<A, O>): Command {
	const { run, whenStopped, ...described } = spec;
	return {
		aliases: verbAliases[spec.name] ?? [],
		...described,
		kind: 'command',
		args: spec.args ?? [],
		options: spec.options ?? {},
		run: (cx, input) =>
			run(cx, input as { args: ArgValues<A>; options: OptionValues<O>; asked: ReadonlySet<string> }),
		whenStopped: (reason, input) => whenStopped?.(reason, input as { args: ArgValues<A> }) ?? reason,
	};
}

export function visibleIn(group: CommandGroup): readonly (Command | CommandGroup)[] {
	return group.commands.filter((one) => !isCommand(one) || one.hidden !== true);
}

export function isCommand(node: Command | CommandGroup): node is Command {
	return 'kind' in node;
}

export function childOf({ commands }: CommandGroup, word: string): Command | CommandGroup | undefined {
	return commands.find(({ name, aliases }) => name === word || aliases?.includes(word) === true);
}

export function flagOf(key: string): string {
	return `--${kebab(key)}`;
}

export function offFlagOf(key: string, spec: Extract<OptionSpec, { kind: 'tri' }>): string {
	return `--${spec.off ?? `no-${kebab(key)}`}`;
}

export function flagsOf(key: string, spec: OptionSpec): string[] {
	return spec.kind === 'tri' ? [flagOf(key), offFlagOf(key, spec)] : [flagOf(key)];
}

export function namesOf(key: string, spec: OptionSpec): string[] {
	return [...(spec.short === undefined ? [] : [`-${spec.short}`]), ...flagsOf(key, spec)];
}

export function takesValue({ kind }: OptionSpec): boolean {
	return kind !== 'flag' && kind !== 'tri';
}

export function kebab(key: string): string {
	return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function camel(name: string): string {
	return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
