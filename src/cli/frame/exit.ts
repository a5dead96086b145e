import {
	ApiError,
	type ApiErrorCode,
	codeOf,
	listFieldErrors,
	MissingExtension,
	NoSenders,
	StoreError,
	type StoreErrorCode,
	systemReason,
} from '../../api/errors.js';
import { JobError, type JobFault } from '../../jobs/errors.js';
import { DatabaseMissing, DatabaseUnwritable, UnsupportedDatabase } from '../../store/errors.js';
import { TableError } from '../../tables/finding.js';
import { type Hint, joinHints, mailctl } from './command-line.js';
import { CliError, type ExitCode, exitMeanings, exits, NoSmtp } from './errors.js';

export { type ExitCode, exitMeanings, exits };

export interface Complaint {
	code: string;
	exit: ExitCode;
	message: string;
	hint: Hint | null;
	details: readonly unknown[] | null;
	http: { status: number; method: string; path: string } | null;
	retryable: boolean;
}

export function classify(error: unknown): Complaint {
	if (error instanceof CliError) return fromCliError(error);
	if (error instanceof ApiError) return fromApiError(error);
	if (error instanceof Error) {
		const cause = error.cause instanceof Error ? fromNamedError(error.cause) : null;
		return fromNamedError(error) ?? cause ?? bug(error.message);
	}
	return bug(String(error));
}

export function hinted(error: unknown, hints: readonly Hint[]): unknown {
	if (hints.length === 0) return error;
	const { code, exit, message, details, retryable, hint } = classify(error);
	const cause = error instanceof CliError ? (error.cause ?? error) : error;
	const all = [...(hint === null ? [] : [hint]), ...hints];
	return new CliError(code, exit, message, {
		hint: joinHints(all),
		...(details !== null && { details }),
		retryable,
		cause,
	});
}

interface Meaning {
	exit: ExitCode;
	retryable?: boolean;
	hint?: Hint;
}

/** 403 means failed authentication, because some services answer 403 to a request without a token. */
const apiCodes: Readonly<Record<ApiErrorCode, Meaning>> = {
	invalid: { exit: exits.refused },
	parse_error: { exit: exits.refused },
	not_authenticated: { exit: exits.authentication },
	permission_denied: {
		exit: exits.authentication,
		hint: [
			'use a token with the right scope; on the server: ',
			mailctl('engine', 'tokens', 'create', '--name', 'NAME', '--scope', 'SCOPE'),
		],
	},
	not_found: { exit: exits.notFound },
	method_not_allowed: { exit: exits.refused },
	conflict: { exit: exits.refused },
	too_large: { exit: exits.refused },
	unsupported_media_type: { exit: exits.refused },
	unprocessable: { exit: exits.refused },
	throttled: { exit: exits.server, retryable: true },
	server_error: { exit: exits.server, retryable: true },
	unavailable: { exit: exits.network, retryable: true },
	storage_full: { exit: exits.disk },
	storage_failed: { exit: exits.disk },
	not_overwritten: { exit: exits.disk, retryable: true },
	network: { exit: exits.network, retryable: true },
	bad_answer: { exit: exits.server },
};

export const readOnlyHint =
	'run mailctl as the owner of the database, or make the file and its folder writable';

const storeCodes: Readonly<Record<StoreErrorCode, Meaning>> = {
	locked: { exit: exits.network, retryable: true },
	busy_elsewhere: {
		exit: exits.disk,
		retryable: true,
		hint: 'stop the other mailctl process, then try again',
	},
	newer_schema: { exit: exits.disk, hint: 'install a newer mailctl' },
	moved: { exit: exits.disk },
	not_a_database: { exit: exits.disk },
	bad_url: { exit: exits.usage },
	disk_full: { exit: exits.disk, hint: 'free some space, then run the command again' },
	io: { exit: exits.disk },
	damaged: {
		exit: exits.disk,
		hint: [
			'stop all processes that use the database, copy the file, then run ',
			mailctl('engine', 'restore', 'BACKUP'),
		],
	},
	read_only: { exit: exits.disk, hint: readOnlyHint },
	not_overwritten: {
		exit: exits.disk,
		retryable: true,
		hint: 'run the command again to overwrite the deleted data',
	},
	denied: { exit: exits.authentication },
	unreachable: { exit: exits.network, retryable: true },
	stopped: { exit: exits.interrupted, retryable: true },
	key: {
		exit: exits.configuration,
		hint: [
			'set MAILCTL_KEY_FILE to the file with the key; see ',
			mailctl('engine', 'secrets', 'wrap', '--help'),
		],
	},
};

const jobCodes: Readonly<Record<JobFault, Meaning>> = {
	in_use: {
		exit: exits.usage,
		hint: 'wait until the other process has ended, then try again',
		retryable: true,
	},
	other_road: {
		exit: exits.usage,
		hint: [
			'check the service: ',
			mailctl('api', 'GET', '/'),
			'; if the service was changed on purpose, give a new name with --campaign',
		],
	},
	unwritable: { exit: exits.disk, hint: 'make the folder writable, or set XDG_STATE_HOME to another folder' },
};

const machineCodes = {
	database_missing: { exit: exits.usage },
	unsupported_database: { exit: exits.usage },
	no_smtp: {
		exit: exits.usage,
		hint: mailctl('engine', 'init', '--smtp', 'smtp://USER@HOST:587', '--smtp-password-file', 'FILE'),
	},
	missing_extension: { exit: exits.usage },
	path_refused: { exit: exits.usage },
	sqlite_missing: { exit: exits.disk, hint: 'npm rebuild better-sqlite3' },
	disk: { exit: exits.disk },
	internal: {
		exit: exits.bug,
		hint: 'this is a bug in mailctl: run the command again with --debug, and report it',
	},
} as const satisfies Readonly<Record<string, Meaning>>;

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
	const found = complaint(error.code, apiCodes[error.code], error.message);
	// Any 5xx response means that the server failed. A local error keeps the exit code of its error code.
	const remote = error.http !== null && error.http.status >= 500;
	return {
		...found,
		exit: remote ? exits.server : found.exit,
		hint: hintOf(error) ?? found.hint,
		details: error.fields === null ? null : listFieldErrors(error.fields),
		http: error.http,
	};
}

function hintOf(error: ApiError): Hint | null {
	const { retryAfterMs } = error;
	if (error.code === 'throttled' && retryAfterMs !== null)
		return `try again in ${Math.max(1, Math.ceil(retryAfterMs / 1000))} s`;
	const isElsewhere = error.code === 'bad_answer' || (error.code === 'network' && error.http === null);
	return isElsewhere ? ['check the connection: ', mailctl('doctor')] : null;
}

function fromNamedError(error: Error): Complaint | null {
	const { message } = error;
	const ofMachine = (code: keyof typeof machineCodes, said = message) =>
		complaint(code, machineCodes[code], said);
	if (error instanceof DatabaseMissing) return ofMachine('database_missing');
	if (error instanceof UnsupportedDatabase) return ofMachine('unsupported_database');
	if (error instanceof NoSmtp) return ofMachine('no_smtp');
	if (error instanceof MissingExtension || error instanceof NoSenders) return ofMachine('missing_extension');
	if (error instanceof StoreError) return fromStoreError(error);
	if (error instanceof TableError) return fromTableError(error);
	if (error instanceof JobError) return complaint(error.code, jobCodes[error.code], message);
	const code = codeOf(error);
	if (code === 'ERR_NODE_API')
		return { ...ofMachine('sqlite_missing'), hint: 'reinstall mailctl with this version of Node.js' };
	if (isAddonMissing(error, code)) return ofMachine('sqlite_missing', addonMessage);
	const ofPath = sayOfPath(error);
	if (refusedCodes.has(code) && ofPath !== null) return ofMachine('path_refused', ofPath);
	return code.startsWith('SQLITE_') || diskCodes.has(code) ? ofMachine('disk', ofPath ?? message) : null;
}

function fromStoreError(error: StoreError): Complaint {
	const found = complaint(error.code, storeCodes[error.code], error.message);
	if (!(error instanceof DatabaseUnwritable) || error.code === 'read_only') return found;
	return { ...found, hint: unwritableHint('use another path with --db') };
}

function fromTableError({ code, message, hint, details, unwritten }: TableError): Complaint {
	const exit = code === 'disk' || code === 'disk_full' ? exits.disk : exits.usage;
	const found = complaint(code, { exit }, message);
	if (unwritten === null) return { ...found, hint, details };
	return { ...found, hint: unwritableHint(hint ?? 'use a file in another folder'), details };
}

export function unwritableHint(elsewhere: string): Hint {
	return `make the file and its folder writable, or ${elsewhere}`;
}

const addonMessage = `SQLite (better-sqlite3) is not installed for Node.js ${process.versions.node}`;

/**
 * Recognizes a binary of better-sqlite3 that is missing or built for another Node. A missing module can only be
 * better-sqlite3, because the bundle contains all others. `tries` is the list of paths in errors of the package
 * `bindings` 1.5.
 */
function isAddonMissing(error: Error, code: string): boolean {
	return ['ERR_DLOPEN_FAILED', 'MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND'].includes(code) || 'tries' in error;
}

function sayOfPath(error: Error): string | null {
	if (!('path' in error) || !('errno' in error)) return null;
	return `${String(error.path)}: ${systemReason(error)}`;
}

/** System errors for a wrong path. Commands report ENOENT themselves. */
const refusedCodes = new Set(['EACCES', 'EEXIST', 'EISDIR', 'ELOOP', 'ENAMETOOLONG', 'ENOTDIR', 'EPERM']);

const diskCodes = new Set(['ENOSPC', 'EIO', 'EROFS', 'EDQUOT', 'EFBIG', 'EMFILE', 'ENFILE']);

function complaint(code: string, { exit, retryable = false, hint }: Meaning, message: string): Complaint {
	return { code, exit, message, hint: hint ?? null, details: null, http: null, retryable };
}

function bug(message: string): Complaint {
	return complaint('internal', machineCodes.internal, message);
}
