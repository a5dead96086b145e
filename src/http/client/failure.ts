/** What can go wrong on the way to an answer, as far as it decides what may be done about it. */
import { ApiError } from '../../api/errors.js';

/**
 * `unsendable`: no request can say this; `unreachable`: no connection, nothing was written; `untrusted`: TLS or the
 * proxy said no; `cut`: the connection broke; `timeout`: no whole answer in time; `too_large`, `garbled`: an answer that
 * is refused.
 */
export type FailureKind =
	| 'unsendable'
	| 'unreachable'
	| 'untrusted'
	| 'cut'
	| 'timeout'
	| 'too_large'
	| 'garbled';

/** An exchange without a usable answer. `written`: the request, or some of it, had left. */
export class TransportFailure extends Error {
	override readonly name = 'TransportFailure';
	readonly kind: FailureKind;
	readonly written: boolean;

	constructor(kind: FailureKind, message: string, { written, cause }: { written: boolean; cause?: unknown }) {
		super(message, { cause });
		this.kind = kind;
		this.written = written;
	}
}

/** What the callers of the Api see of it: `bad_answer` when something did answer, else `network`. */
export function toApiError(failure: TransportFailure): ApiError {
	const options = { cause: failure.cause };
	if (failure.kind === 'garbled' || failure.kind === 'too_large')
		return new ApiError('bad_answer', failure.message, { ...options, unanswered: failure.written });
	return new ApiError('network', failure.message, { ...options, unanswered: failure.written });
}

/** What was to be reached, and through what: ` through the proxy host:port` or nothing. */
export interface Way {
	origin: string;
	through: string;
}

/** An error of undici, of Node's sockets or of TLS, told by its code. */
export function toFailure(error: Error, { origin, through }: Way, written: boolean): TransportFailure {
	const code = codeOf(error);
	const tell = (kind: FailureKind, text: string) =>
		new TransportFailure(kind, text, { written, cause: error });
	// undici says so instead of handing the answer on; the proxy did not pass the request on.
	if (error.message.startsWith('Proxy Authentication Required'))
		return new TransportFailure(
			'untrusted',
			`no way to ${origin}${through}: it wants to know who asks (407)`,
			{
				written: false,
				cause: error,
			},
		);
	if (code === 'UND_ERR_INVALID_ARG')
		return tell('unsendable', `the request cannot be sent to ${origin}: ${error.message}`);
	if (code === 'UND_ERR_CONNECT_TIMEOUT')
		return tell('unreachable', `no connection to ${origin}${through} in time`);
	if (code === 'ERR_SSL_WRONG_VERSION_NUMBER')
		return tell('untrusted', `${origin} does not speak TLS: is it http://?`);
	if (isTrustProblem(code)) return tell('untrusted', `${origin} is not trusted: ${error.message} (${code})`);
	if (code.startsWith('UND_ERR_PRX') || error.message.startsWith('Proxy response'))
		return tell('untrusted', `no connection to ${origin}${through}: ${error.message}`);
	if (/^HPE_|^HTTPParserError$|^UND_ERR_HEADERS_OVERFLOW$/.test(code))
		return tell('garbled', `what ${origin} answered is not HTTP (${code})`);
	if (written) return tell('cut', `${origin} cut the connection before its answer was whole (${code})`);
	return tell('unreachable', `cannot connect to ${origin}${through} (${code})`);
}

/** What another try would not change. A connection that did not come in 10 s is one: TCP itself has tried again. */
export function isPermanent({ kind, written, cause }: TransportFailure): boolean {
	if (kind === 'timeout') return !written;
	if (kind !== 'unreachable') return kind !== 'cut';
	return cause instanceof Error && ['ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT'].includes(codeOf(cause));
}

/** Of several addresses that were tried, each has its own error. */
function codeOf(error: Error): string {
	const first = error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error;
	return 'code' in first && typeof first.code === 'string' ? first.code : first.name;
}

function isTrustProblem(code: string): boolean {
	return /CERT|^ERR_SSL|^ERR_TLS|^UNABLE_TO|^HOSTNAME_MISMATCH$|^EPROTO$/.test(code);
}
