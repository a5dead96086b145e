export type Hint = string | OwnCommand | readonly Hint[] | SeveralHints;

export interface SeveralHints {
	readonly hints: readonly Hint[];
}

export interface OwnCommand {
	readonly command: readonly string[];
	readonly program?: string;
}

/** Scripts rely on the codes, so their meanings never change. */
const codes = {
	done: [0, 'success; also an empty list, a dry run, a closed pipe'],
	bug: [1, 'a bug in mailctl'],
	usage: [2, 'wrong usage, invalid input, or missing confirmation'],
	notFound: [3, 'not found'],
	authentication: [4, 'authentication failed: no token, a wrong token, or a missing scope'],
	refused: [5, 'refused by the service (400, 409, 422 and most other 4xx)'],
	network: [6, 'network, TLS or proxy failed, --timeout expired, or the database is locked'],
	server: [7, 'the server failed (5xx, 429 after retries, a redirect, an invalid answer)'],
	empty: [8, 'a list was empty, and --exit-empty was given'],
	partly: [9, 'some rows or messages failed, or all recipients are suppressed'],
	failIf: [10, 'the condition of --fail-if was true'],
	found: [11, '`smoke`, `doctor`, `diff`, `engine check` or `engine migrate` found problems or differences'],
	outOfTime: [12, 'out of time (--deadline, --wait-timeout)'],
	uncertain: [13, 'mail may have been sent (no clear answer): check before you repeat the command'],
	queued: [14, 'accepted and queued for a worker: do not repeat the command'],
	disk: [74, 'the local disk or database failed'],
	tryLater: [75, '`engine bounces ingest` failed, but lost no mail: deliver the mail again'],
	configuration: [78, 'the configuration is invalid or cannot be read'],
	interrupted: [130, 'interrupted (Ctrl-C), or a prompt was declined'],
	terminated: [143, 'terminated (SIGTERM)'],
} as const;

type Exits = { readonly [Name in keyof typeof codes]: (typeof codes)[Name][0] };

export type ExitCode = Exits[keyof Exits];

export const exits = Object.fromEntries(Object.entries(codes).map(([name, [code]]) => [name, code])) as Exits;

export const exitMeanings = Object.fromEntries(Object.values(codes)) as Readonly<Record<ExitCode, string>>;

export interface CliErrorOptions {
	hint?: Hint;
	details?: readonly unknown[];
	retryable?: boolean;
	cause?: unknown;
}

export class CliError extends Error {
	override readonly name: string = 'CliError';
	readonly code: string;
	readonly exit: ExitCode;
	readonly hint: Hint | null;
	readonly details: readonly unknown[] | null;
	readonly retryable: boolean;

	constructor(code: string, exit: ExitCode, message: string, options: CliErrorOptions = {}) {
		super(message, 'cause' in options ? { cause: options.cause } : undefined);
		this.code = code;
		this.exit = exit;
		this.hint = options.hint ?? null;
		this.details = options.details ?? null;
		this.retryable = options.retryable ?? false;
	}
}

export class UsageError extends CliError {
	override readonly name = 'UsageError';
	constructor(message: string, options: CliErrorOptions = {}) {
		super('usage', 2, message, options);
	}
}

export class ConfigError extends CliError {
	override readonly name = 'ConfigError';
	constructor(message: string, options: CliErrorOptions = {}) {
		super('configuration', 78, message, options);
	}
}

export class Interrupted extends CliError {
	override readonly name = 'Interrupted';
	readonly signal: 'SIGINT' | 'SIGTERM';
	constructor(signal: 'SIGINT' | 'SIGTERM') {
		super('interrupted', signal === 'SIGINT' ? 130 : 143, signal === 'SIGINT' ? 'interrupted' : 'terminated');
		this.signal = signal;
	}
}

export class NoSmtp extends Error {
	override readonly name = 'NoSmtp';
	constructor() {
		super('no mail server is configured');
	}
}

export function onlyLocal(
	path: string,
	hint: Hint = 'run this command on the machine of the service, or name a local database with --db PATH',
): UsageError {
	return new UsageError(`${path} needs a local database, but the target is a remote service`, {
		hint,
	});
}

export class Declined extends CliError {
	override readonly name = 'Declined';
	readonly done: string;
	constructor({
		done = 'nothing was changed',
		...options
	}: Pick<CliErrorOptions, 'hint'> & { done?: string } = {}) {
		super('declined', 130, `declined, ${done}`, options);
		this.done = done;
	}
}

export class DeadlinePassed extends CliError {
	override readonly name = 'DeadlinePassed';
	constructor(text: string) {
		super('deadline', 12, `out of time: --deadline ${text}`, { retryable: true });
	}
}

export class OutputClosed extends Error {
	override readonly name = 'OutputClosed';
}
