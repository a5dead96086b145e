/** The certificate a server shows, and what is to be said about it. */
import { isIP, type Socket } from 'node:net';
import { connect, rootCertificates, type TLSSocket } from 'node:tls';
import { type Micros, microsPerDay, microsPerMs } from '../../api/datetime.js';
import { spanText } from './amounts.js';
import { ok, problem, type Verdict, warning } from './model.js';

/** A certificate as this machine sees it. */
export interface SeenCertificate {
	/** Whom it is for. */
	name: string;
	validTo: Micros;
	/** Why it is not trusted here; null: it is. */
	distrust: string | null;
}

/** Whose certificate, and how it is come by. */
export interface CertificateOptions {
	host: string;
	port: number;
	/** PEM of authorities: `alone` or beside those of this machine. */
	ca: { pem: string; alone: boolean } | null;
	/** An open connection to go on with, after STARTTLS. */
	socket?: Socket;
	signal: AbortSignal;
}

/** Shakes hands and hangs up; nothing is asked. Rejects when there is no TLS to be had, and with the signal's reason. */
export function lookAtCertificate(options: CertificateOptions): Promise<SeenCertificate> {
	const { host, port, ca, socket, signal } = options;
	return new Promise((resolve, reject) => {
		// Looked at even if it is not trusted: that is what is to be told.
		const tls = connect({
			...(socket === undefined ? { host, port } : { socket }),
			...(isIP(host) === 0 && { servername: host }),
			...(ca !== null && { ca: ca.alone ? [ca.pem] : [...rootCertificates, ca.pem] }),
			rejectUnauthorized: false,
		});
		const stop = () => tls.destroy(asError(signal.reason));
		if (signal.aborted) stop();
		else signal.addEventListener('abort', stop, { once: true });
		tls.once('error', reject);
		tls.once('close', () => {
			signal.removeEventListener('abort', stop);
			reject(new Error('the connection was closed during the handshake'));
		});
		tls.once('secureConnect', () => {
			resolve(seenOn(tls));
			tls.destroy();
		});
	});
}

const soon: Micros = 14 * microsPerDay;

/** `isChecked`: nothing goes to a server without a good one. `renew` says who is to do what. */
export function judgeCertificate(
	{ name, validTo, distrust }: SeenCertificate,
	{ now, isChecked, renew }: { now: Micros; isChecked: boolean; renew: string },
): Verdict {
	if (validTo < now)
		return (isChecked ? problem : warning)(
			`the certificate of ${name} expired ${spanText(now - validTo)} ago`,
			renew,
		);
	if (distrust !== null) {
		const says = `the certificate of ${name} is not trusted here: ${distrust}`;
		return isChecked ? problem(says, renew) : ok(`${says}; it is not asked for`);
	}
	const left = spanText(validTo - now);
	if (validTo < now + soon) return warning(`the certificate of ${name} expires in ${left}`, renew);
	return ok(`the certificate of ${name} is good for ${left}`);
}

function seenOn(tls: TLSSocket): SeenCertificate {
	const { subject, subjectaltname, valid_to } = tls.getPeerCertificate();
	const [first = ''] = (subjectaltname ?? '').split(', ');
	const name = first.replace(/^(DNS|IP Address):/, '');
	return {
		name: name === '' ? String(subject?.CN ?? 'the server') : name,
		validTo: Date.parse(valid_to) * microsPerMs,
		distrust: tls.authorized ? null : wordsOf(tls.authorizationError),
	};
}

/** Typed as an error; in fact the code of one, a text. */
function wordsOf(error: unknown): string {
	const text = error instanceof Error ? error.message : String(error);
	return distrusts[text] ?? text.toLowerCase().replaceAll('_', ' ');
}

const distrusts: Readonly<Record<string, string>> = {
	DEPTH_ZERO_SELF_SIGNED_CERT: 'it is signed by itself',
	SELF_SIGNED_CERT_IN_CHAIN: 'its authority is unknown',
	UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its authority is unknown',
	UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its authority is unknown',
	ERR_TLS_CERT_ALTNAME_INVALID: 'it is for another name',
	CERT_NOT_YET_VALID: 'it is not valid yet',
};

function asError(reason: unknown): Error {
	return reason instanceof Error ? reason : new Error(String(reason));
}
