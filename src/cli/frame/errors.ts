/** Errors of the command line itself. Other errors come from the API, the store or the system. */

export type Hint = string | OwnCommand | readonly Hint[] | SeveralHints;

export interface SeveralHints {
	readonly hints: readonly Hint[];
}

export interface OwnCommand {
	readonly command: readonly string[];
	readonly program?: string;
}

export const exits = {
	done: 0,
	bug: 1,
	usage: 2,
	notFound: 3,
	authentication: 4,
	refused: 5,
	network: 6,
	server: 7,
	empty: 8,
	partly: 9,
	failIf: 10,
	found: 11,
	outOfTime: 12,
	uncertain: 13,
	queued: 14,
	disk: 74,
	tryLater: 75,
	configuration: 78,
	interrupted: 130,
	terminated: 143,
} as const;

export type ExitCode = (typeof exits)[keyof typeof exits];

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
	hint: Hint = 'run it on the machine of the service, or name a local database with --db PATH',
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
