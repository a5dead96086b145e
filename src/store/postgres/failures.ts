import { codeOf, StoreError, type StoreErrorCode } from '../../api/errors.js';

export function sqlState(error: unknown): string | null {
	if (!(error instanceof Error) || !('code' in error) || !('severity' in error)) return null;
	return typeof error.code === 'string' ? error.code : null;
}

/**
 * True after serialization_failure (40001) or deadlock_detected (40P01). Also true if an earlier try of the same write
 * has stored its answer in `outcomes`.
 */
export function isRefusedForNow(error: unknown): boolean {
	const state = sqlState(error);
	if (isDuplicate(error)) return Object(error).constraint === 'outcomes_pkey';
	return state === '40001' || state === '40P01';
}

export function isDuplicate(error: unknown): boolean {
	return sqlState(error) === '23505';
}

/** True if the connection is lost or about to end, or after statement_completion_unknown (40003). */
export function isLost(error: unknown): boolean {
	const state = sqlState(error);
	if (state !== null) return /^(08|57P0[1235]|25P03|40003)/.test(state);
	if (!(error instanceof Error)) return false;
	if (lostCodes.has(codeOf(error))) return true;
	return /^(Connection terminated|Client has encountered a connection error)/.test(error.message);
}

export function isReadOnly(error: unknown): boolean {
	return sqlState(error) === '25006';
}

/** True if the server warns that it committed before its synchronous replica did. The warning has no code. */
export function isUnreplicated({ routine }: { routine?: string | undefined }): boolean {
	return routine === 'SyncRepWaitForLSN';
}

export function unreplicated(): Error {
	const words = 'its wait for a synchronous replica was canceled (pg_cancel_backend)';
	return Object.assign(new Error(words), { code: 'EUNREPLICATED' });
}

const lostCodes: ReadonlySet<string> = new Set([
	...['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND'],
	...['EAI_AGAIN', 'EINVAL', 'ENOENT', 'ENOPRIMARY', 'EUNREPLICATED'],
]);

/** Matches the SQLSTATE (PostgreSQL, appendix A), or the driver's message if the error has no SQLSTATE. */
const told: readonly [match: RegExp, code: StoreErrorCode, words: string][] = [
	[/^55P03$/, 'locked', 'another process held the lock for too long; try again'],
	[/^(57014|Query read timeout)$/, 'locked', 'a statement took too long; raise its timeout, or try again'],
	[/^53300$/, 'locked', 'no connection is left (max_connections); use a smaller ?pool=, or raise its limit'],
	[/^timeout exceeded when trying/, 'locked', 'no connection became free; try again, or use a larger ?pool='],
	[/^53100$/, 'disk_full', 'no room is left on the disk of the server'],
	[/^(53|58)/, 'io', 'the server has run out of a resource, or its disk failed'],
	[/^25006$/, 'read_only', 'it is read-only: a replica, or made so; name the primary'],
	[/^28/, 'denied', 'the server refuses the user or the password'],
	[
		/client password must be a string$/,
		'denied',
		'the server wants a password: PGPASSWORD, or the URL, has it',
	],
	[/^3D000$/, 'not_a_database', 'this database does not exist: create it (createdb), or correct its name'],
	[/^55000$/, 'not_a_database', 'this database takes no connections; name another one'],
	[/^42501$/, 'denied', 'this user may not do it; grant it the schema and its tables'],
	[/^MC001$/, 'moved', 'it takes no writes'],
	[/^XX00[012]$/, 'damaged', 'the server reports damaged data'],
];

export function translateFailure(error: unknown, name: string): unknown {
	if (!(error instanceof Error)) return error;
	const state = sqlState(error);
	// A "FATAL" error of class 22 or 42 ends the login: the server refuses a parameter of the URL.
	const isOfUrl = /^(22|42(?!501))/.test(state ?? '') && 'severity' in error && error.severity === 'FATAL';
	const [, code, words] = isOfUrl
		? [null, 'bad_url' as const, 'the server refuses a parameter of the URL']
		: (told.find(([match]) => match.test(state ?? error.message)) ?? []);
	if (code !== undefined)
		return new StoreError(code, `${name}: ${words} (${error.message})`, { cause: error });
	if (isLost(error) || isUnreached(error))
		return new StoreError('unreachable', `${name} cannot be reached: ${error.message}`, { cause: error });
	return error;
}

/** Matches messages of pg, and TLS codes such as `DEPTH_ZERO_SELF_SIGNED_CERT`. */
function isUnreached(error: Error): boolean {
	if (/does not support SSL|SASL:/.test(error.message)) return true;
	return /CERT|_TLS_|_SSL_/.test(codeOf(error));
}
