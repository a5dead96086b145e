import { ApiError, tlsReason, whyUnreachable } from '../../api/errors.js';

/** `untrusted`: TLS or the proxy refused; `garbled`: the answer is refused. */
type FailureKind = 'unsendable' | 'unreachable' | 'untrusted' | 'cut' | 'timeout' | 'too_large' | 'garbled';

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

export function toApiError({ kind, message, written, cause }: TransportFailure): ApiError {
	const isAnswered = kind === 'garbled' || kind === 'too_large';
	return new ApiError(isAnswered ? 'bad_answer' : 'network', message, { cause, unanswered: written });
}

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
		return tell('garbled', `what ${origin} answered is not HTTP (${code})`);
	if (written) return tell('cut', `${origin} cut the connection before its answer was whole (${code})`);
	const why = whyUnreachable(code);
	return tell(
		'unreachable',
		`cannot connect to ${origin}${through}${why === null ? '' : `: ${why}`} (${code})`,
	);
}

/** undici 7.30 shows answers of a proxy only by these texts (lib/dispatcher/proxy-agent.js). */
function saidByProxy({ message }: Error): 'authenticate' | 'refused' | null {
	if (message.startsWith('Proxy Authentication Required')) return 'authenticate';
	return message.startsWith('Proxy response') ? 'refused' : null;
}

/** Another try would have the same result. TCP itself has retried a connection that took 10 s. */
export function isPermanent({ kind, written, cause }: TransportFailure): boolean {
	if (kind === 'timeout') return !written;
	if (kind !== 'unreachable') return kind !== 'cut';
	return cause instanceof Error && ['ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT'].includes(codeOf(cause));
}

function codeOf(error: Error): string {
	const first = error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error;
	return 'code' in first && typeof first.code === 'string' ? first.code : first.name;
}

function isTrustProblem(code: string): boolean {
	return /CERT|^ERR_SSL|^ERR_TLS|^UNABLE_TO|^HOSTNAME_MISMATCH$|^EPROTO$/.test(code);
}
