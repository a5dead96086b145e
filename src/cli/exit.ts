/** The one table from what went wrong to the status the shell sees. Scripts rely on it: numbers never change meaning. */
import { ApiError, type ApiErrorCode, listFieldErrors } from '../api/errors.js';
import { CliError } from './errors.js';
import { shellWord } from './shell-word.js';

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
	disk: 74,
	tryLater: 75,
	configuration: 78,
	interrupted: 130,
	terminated: 143,
} as const;

export type ExitCode = (typeof exits)[keyof typeof exits];

/** What `help exit-codes` says about each. */
export const exitMeanings: Readonly<Record<ExitCode, string>> = {
	0: 'done; an empty list, a dry run without findings and a closed pipe too',
	1: 'a bug in mailctl',
	2: 'usage, local validation, or consent missing',
	3: 'not found',
	4: 'authentication: no token, a wrong one, or one without the right',
	5: 'refused by the service (400, 409, 422)',
	6: 'network, TLS, proxy, a cut, --timeout, database locked, queue paused',
	7: 'the server failed (5xx, 429 after retries, a redirect, an answer that is not the contract’s)',
	8: 'a list was empty and --exit-empty was given',
	9: 'partly done: some rows or messages failed or bounced',
	10: '--fail-if was true',
	11: 'smoke or doctor found something',
	12: 'out of time (--deadline, --wait-timeout)',
	13: 'a send may or may not have happened',
	74: 'the local disk or database failed',
	75: 'engine bounces ingest alone: nothing is lost, bring the mail again (database locked or failed, or stopped)',
	78: 'the configuration is unreadable',
	130: 'interrupted (Ctrl-C), or a prompt was declined',
	143: 'terminated (SIGTERM)',
};

/** An error as the command line reports it. `details` is one line each under the message. */
export interface Complaint {
	code: string;
	exit: ExitCode;
	message: string;
	hint: string | null;
	details: readonly unknown[] | null;
	http: { status: number; method: string; path: string } | null;
	retryable: boolean;
}

/** Classifies anything thrown; what nobody foresaw is a bug (1). */
export function classify(error: unknown): Complaint {
	if (error instanceof CliError) return fromCliError(error);
	if (error instanceof ApiError) return fromApiError(error);
	if (error instanceof Error) {
		// The worker says what it was doing when the store failed; what failed is the cause.
		const cause = error.cause instanceof Error ? fromNamedError(error.cause) : null;
		return fromNamedError(error) ?? cause ?? bug(error.message);
	}
	return bug(String(error));
}

/** 403 counts as authentication: some deployments answer it for a missing token (api: 401 and 403 are treated alike). */
const apiExits: Readonly<Record<ApiErrorCode, { exit: ExitCode; retryable: boolean }>> = {
	invalid: { exit: exits.refused, retryable: false },
	parse_error: { exit: exits.refused, retryable: false },
	not_authenticated: { exit: exits.authentication, retryable: false },
	permission_denied: { exit: exits.authentication, retryable: false },
	not_found: { exit: exits.notFound, retryable: false },
	method_not_allowed: { exit: exits.refused, retryable: false },
	conflict: { exit: exits.refused, retryable: false },
	too_large: { exit: exits.refused, retryable: false },
	unsupported_media_type: { exit: exits.refused, retryable: false },
	unprocessable: { exit: exits.refused, retryable: false },
	throttled: { exit: exits.server, retryable: true },
	server_error: { exit: exits.server, retryable: true },
	unavailable: { exit: exits.network, retryable: true },
	storage_full: { exit: exits.disk, retryable: false },
	network: { exit: exits.network, retryable: true },
	bad_answer: { exit: exits.server, retryable: false },
};

/** The store's errors are known by name here: this layer must not load a driver to report that it failed. */
const storeExits: Readonly<Record<string, { exit: ExitCode; retryable: boolean; hint?: string }>> = {
	locked: { exit: exits.network, retryable: true, hint: 'another process holds the database; try again' },
	busy_elsewhere: {
		exit: exits.disk,
		retryable: true,
		hint: 'stop the other mailctl process, then try again',
	},
	newer_schema: { exit: exits.disk, retryable: false, hint: 'this database needs a newer mailctl' },
	not_a_database: { exit: exits.disk, retryable: false },
	disk_full: { exit: exits.disk, retryable: false, hint: 'free some space, then run the command again' },
	io: { exit: exits.disk, retryable: false },
};

/** A job's ledger is opened by parts that are loaded when they are needed, so its errors are known by name too. */
const ledgerExits: Readonly<Record<string, { exit: ExitCode; hint: string; retryable?: true }>> = {
	in_use: { exit: exits.network, hint: 'wait until it has ended, then try again', retryable: true },
	another_job: { exit: exits.usage, hint: 'move the file away, or name another job' },
	newer: { exit: exits.disk, hint: 'this job needs a newer mailctl' },
	no_ledger: { exit: exits.disk, hint: 'move the file away' },
	damaged: { exit: exits.disk, hint: 'what stands before that line is what is known of the job' },
	unwritable: { exit: exits.disk, hint: 'XDG_STATE_HOME names the folder above it' },
};

function fromCliError(error: CliError): Complaint {
	const cause = error.cause instanceof ApiError ? error.cause : null;
	return {
		code: error.code,
		exit: error.exit,
		message: error.message,
		hint: error.hint,
		details: error.details,
		http: cause?.http ?? null,
		retryable: error.retryable,
	};
}

function fromApiError(error: ApiError): Complaint {
	const known = apiExits[error.code];
	// What is our own disk or lock on the embedded engine is somebody else's server when it came over HTTP.
	const remote = error.http !== null && error.http.status >= 500;
	return {
		code: error.code,
		exit: remote ? exits.server : known.exit,
		message: error.message,
		hint: apiHint(error),
		details: error.fields === null ? null : flatten(error),
		http: error.http,
		retryable: known.retryable,
	};
}

function flatten(error: ApiError): readonly unknown[] {
	return error.fields === null ? [] : listFieldErrors(error.fields);
}

function apiHint(error: ApiError): string | null {
	if (error.code === 'not_authenticated')
		return 'give a token that is valid there: MAILCTL_TOKEN, --token-file or mailctl login';
	if (error.code === 'permission_denied') return 'this needs a token with more rights (read, send, admin)';
	if (error.code === 'throttled' && error.retryAfterMs !== null)
		return `try again in ${Math.ceil(error.retryAfterMs / 1000)} s`;
	return null;
}

function fromNamedError(error: Error): Complaint | null {
	const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
	if (error.name === 'DatabaseMissing')
		return complaint('database_missing', exits.usage, error.message, missingHint(error));
	if (error.name === 'UnsupportedDatabase')
		return complaint('unsupported_database', exits.usage, error.message, null);
	if (error.name === 'NoSmtp')
		return complaint(
			'no_smtp',
			exits.usage,
			error.message,
			'mailctl engine init --smtp smtp://user@host:587',
		);
	if (error.name === 'MissingExtension')
		return complaint('missing_extension', exits.usage, error.message, null);
	if (error.name === 'StoreError') {
		const known = storeExits[code] ?? { exit: exits.disk, retryable: false };
		return { ...complaint(code, known.exit, error.message, known.hint ?? null), retryable: known.retryable };
	}
	if (error.name === 'LedgerError') {
		const known = ledgerExits[code] ?? { exit: exits.disk, hint: null };
		const retryable = 'retryable' in known;
		return { ...complaint(code, known.exit, error.message, known.hint), retryable };
	}
	if (isAddonMissing(error, code))
		return complaint('sqlite_missing', exits.disk, addonMessage, 'npm rebuild better-sqlite3');
	if (error.name === 'SqliteError' || diskCodes.has(code))
		return complaint('disk', exits.disk, error.message, null);
	return null;
}

const addonMessage = `SQLite (better-sqlite3) is not installed for Node.js ${process.versions.node}`;

/** A package without its binary, or with that of another Node: what installs without scripts and moves of Node leave. */
function isAddonMissing({ message }: Error, code: string): boolean {
	if (code === 'ERR_DLOPEN_FAILED') return true;
	return /^Could not locate the bindings file|^Cannot find (module|package) '[^']*better[-_]sqlite3/.test(
		message,
	);
}

function missingHint(error: Error): string {
	const path = 'path' in error && typeof error.path === 'string' ? error.path : 'PATH';
	return `mailctl engine init --db ${shellWord(path)}`;
}

const diskCodes = new Set(['ENOSPC', 'EIO', 'EROFS', 'EDQUOT', 'EMFILE', 'ENFILE']);

function complaint(code: string, exit: ExitCode, message: string, hint: string | null): Complaint {
	return { code, exit, message, hint, details: null, http: null, retryable: false };
}

function bug(message: string): Complaint {
	return complaint('internal', exits.bug, message, 'this is a bug in mailctl; --debug shows where');
}
