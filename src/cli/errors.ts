/** What the command line itself has to complain about. Everything else comes from the API, the store or the system. */
import type { ExitCode } from './exit.js';

export interface CliErrorOptions {
	/** What to do about it: a command to run, or a sentence. */
	hint?: string;
	/** Listed one a line; in JSON as they are. */
	details?: readonly unknown[];
	retryable?: boolean;
	cause?: unknown;
}

/** An expected end of a command that is not success. `code` is for scripts, `exit` for the shell. */
export class CliError extends Error {
	override readonly name: string = 'CliError';
	readonly code: string;
	readonly exit: ExitCode;
	readonly hint: string | null;
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

/** Wrong words on the command line, or consent missing: exit 2, nothing was done. */
export class UsageError extends CliError {
	override readonly name = 'UsageError';
	constructor(message: string, options: CliErrorOptions = {}) {
		super('usage', 2, message, options);
	}
}

/** A configuration file that cannot be read or understood; it stays as it is (exit 78). */
export class ConfigError extends CliError {
	override readonly name = 'ConfigError';
	constructor(message: string, options: CliErrorOptions = {}) {
		super('configuration', 78, message, options);
	}
}

/** Ctrl-C or SIGTERM; also the reason of the command's abort signal. */
export class Interrupted extends CliError {
	override readonly name = 'Interrupted';
	constructor(signal: 'SIGINT' | 'SIGTERM') {
		super('interrupted', signal === 'SIGINT' ? 130 : 143, signal === 'SIGINT' ? 'interrupted' : 'terminated');
	}
}

/** A person said no at a prompt. */
export class Declined extends CliError {
	override readonly name = 'Declined';
	constructor() {
		super('declined', 130, 'declined, nothing was changed');
	}
}

/** `--deadline` has passed; also the reason of the command's abort signal. */
export class DeadlinePassed extends CliError {
	override readonly name = 'DeadlinePassed';
	constructor(text: string) {
		super('deadline', 12, `out of time: --deadline ${text}`, { retryable: true });
	}
}

/** The reader of our output went away (`| head`): a quiet end with 0. */
export class OutputClosed extends Error {
	override readonly name = 'OutputClosed';
}
