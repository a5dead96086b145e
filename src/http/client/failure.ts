import { ApiError, tlsReason, whyUnreachable } from '../../api/errors.js';

/**
 * `unsendable`: the request cannot be expressed in HTTP; `unreachable`: no connection, nothing was written;
 * `untrusted`: TLS or the proxy refused; `cut`: the connection broke; `timeout`: no complete answer in time;
 * `too_large`, `garbled`: an answer that is refused.
 */
type FailureKind = 'unsendable' | 'unreachable' | 'untrusted' | 'cut' | 'timeout' | 'too_large' | 'garbled';

export class TransportFailure extends Error {
	override readonly name = 'TransportFailure';
	readonly kind: FailureKind;
	/** At least a part of the request was sent. */
	readonly written: boolean;

	constructor(kind: FailureKind, message: string, { written, cause }: { written: boolean; cause?: unknown }) {
		super(message, { cause });
		this.kind = kind;
		this.written = written;
	}
}

export function toApiError({ kind, message, written, cause }: TransportFailure): ApiError {
	const isAnswered = kind === 'garbled' || kind === 'too_large';
	return new ApiError(isAnswered ? 'bad_answer' : 'network', message, { cause, unanswered: written });
}

/** The target, and the way to it: ` through the proxy host:port` or nothing. */
export interface Way {
	origin: string;
	through: string;
}

export function toFailure(error: Error, { origin, through }: Way, written: boolean): TransportFailure {
	const code = codeOf(error);
	const said = saidByProxy(error);
	const tell = (kind: FailureKind, text: string) =>
		// A proxy that wants a login did not pass the request on.
		new TransportFailure(kind, text, { written: written && said !== 'authenticate', cause: error });
	if (said === 'authenticate')
		return tell('untrusted', `no way to ${origin}${through}: it wants to know who asks (407)`);
	if (code === 'UND_ERR_INVALID_ARG')
		return tell('unsendable', `the request cannot be sent to ${origin}: ${error.message}`);
	if (code === 'UND_ERR_CONNECT_TIMEOUT')
		return tell('unreachable', `no connection to ${origin}${through} in time`);
	if (code === 'ERR_SSL_WRONG_VERSION_NUMBER')
		return tell('untrusted', `${origin} does not speak TLS: is it http://?`);
	if (isTrustProblem(code))
		return tell('untrusted', `${origin} is not trusted: ${tlsReason(error.message)} (${code})`);
	if (code.startsWith('UND_ERR_PRX') || said === 'refused')
		return tell('untrusted', `no connection to ${origin}${through}: ${error.message}`);
	if (/^HPE_|^HTTPParserError$|^UND_ERR_HEADERS_OVERFLOW$/.test(code))
		return tell('garbled', `what ${origin} answered is not HTTP (${parserReason(error) ?? code})`);
	if (written) return tell('cut', `${origin} cut the connection before its answer was whole (${code})`);
	const why = whyUnreachable(code);
	return tell(
		'unreachable',
		`cannot connect to ${origin}${through}${why === null ? '' : `: ${why}`} (${code})`,
	);
}

/**
 * Whether the error is an answer of the proxy. undici 7.30 shows only by these texts that a proxy wants a login (407,
 * an InvalidArgumentError) or refuses CONNECT (a RequestAbortedError): lib/dispatcher/proxy-agent.js.
 */
function saidByProxy({ message }: Error): 'authenticate' | 'refused' | null {
	if (message.startsWith('Proxy Authentication Required')) return 'authenticate';
	return message.startsWith('Proxy response') ? 'refused' : null;
}

/**
 * Whether another try would have the same result. A connection that took longer than 10 s is such a case: TCP itself
 * has retried.
 */
export function isPermanent({ kind, written, cause }: TransportFailure): boolean {
	if (kind === 'timeout') return !written;
	if (kind !== 'unreachable') return kind !== 'cut';
	return cause instanceof Error && ['ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT'].includes(codeOf(cause));
}

/** What undici's parser found: undici 7.30 tells it by this text alone. */
function parserReason({ message }: Error): string | null {
	return /^Response does not match the HTTP\/1\.1 protocol \((.+)\)$/.exec(message)?.[1] ?? null;
}

function codeOf(error: Error): string {
	const first = error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error;
	return 'code' in first && typeof first.code === 'string' ? first.code : first.name;
}

function isTrustProblem(code: string): boolean {
	return /CERT|^ERR_SSL|^ERR_TLS|^UNABLE_TO|^HOSTNAME_MISMATCH$|^EPROTO$/.test(code);
}
