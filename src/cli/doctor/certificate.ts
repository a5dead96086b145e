/** The certificate of a server, and the verdict on it. */
import { isIP, type Socket } from 'node:net';
import {
	checkServerIdentity,
	connect,
	type PeerCertificate,
	rootCertificates,
	type TLSSocket,
} from 'node:tls';
import { type Micros, microsPerDay, microsPerMs } from '../../api/datetime.js';
import { spanText } from '../render/units.js';
import { ok, problem, type Verdict, warning } from './model.js';

/** A certificate as this machine sees it. */
export interface SeenCertificate {
	/** Its names: the requested host, where it is among them. */
	name: string;
	validTo: Micros;
	/** Why it is not trusted here; null: it is. */
	distrust: Distrust | null;
}

/** `says` is the reason in words; `because` is its kind: the authority, the name, or anything else. */
export interface Distrust {
	says: string;
	because: 'authority' | 'name' | 'other';
}

/** The server of the certificate, and how to reach it. */
export interface CertificateOptions {
	host: string;
	port: number;
	/** PEM of authorities: `alone` or beside those of this machine. */
	ca: { pem: string; alone: boolean } | null;
	/** An open connection to go on with, after STARTTLS. */
	socket?: Socket;
	signal: AbortSignal;
}

/** Makes a TLS handshake and closes the connection. Rejects when TLS fails, and with the signal's reason. */
export function lookAtCertificate(options: CertificateOptions): Promise<SeenCertificate> {
	const { host, port, ca, socket, signal } = options;
	return new Promise((resolve, reject) => {
		// Read even if it is not trusted: the check reports that.
		const tls = connect({
			// With a socket the host is given too: the certificate must name it.
			...(socket === undefined ? { host, port } : { host, socket }),
			...(isIP(host) === 0 && { servername: host }),
			...(ca !== null && { ca: ca.alone ? [ca.pem] : [...rootCertificates, ca.pem] }),
			rejectUnauthorized: false,
		});
		const stop = () => tls.destroy(asError(signal.reason));
		if (signal.aborted) stop();
		else signal.addEventListener('abort', stop, { once: true });
		// More than once, where a handshake is cut: an error without a listener would end the process.
		tls.on('error', reject);
		tls.once('close', () => {
			signal.removeEventListener('abort', stop);
			reject(new Error('the connection was closed during the handshake'));
		});
		tls.once('secureConnect', () => {
			resolve(seenOn(tls, host));
			tls.destroy();
		});
	});
}

const soon: Micros = 14 * microsPerDay;

/** Hints for certificates: an expiring one, one of an unknown authority, one for another name. */
export interface Remedies {
	renew: string;
	trust: string;
	rename: string;
}

/** `isChecked`: nothing goes to a server without a good one. */
interface JudgeOptions extends Remedies {
	now: Micros;
	isChecked: boolean;
}

/** The verdict on a certificate, with its remedy. */
export function judgeCertificate(
	{ name, validTo, distrust }: SeenCertificate,
	{ now, isChecked, renew, trust, rename }: JudgeOptions,
): Verdict {
	if (validTo < now)
		return (isChecked ? problem : warning)(
			`the certificate of ${name} expired ${spanText(now - validTo)} ago`,
			renew,
		);
	if (distrust !== null) {
		const says = `the certificate of ${name} is not trusted here: ${distrust.says}`;
		const fix = { authority: trust, name: rename, other: renew }[distrust.because];
		return isChecked ? problem(says, fix) : ok(`${says}; it is not asked for`);
	}
	const left = spanText(validTo - now);
	if (validTo < now + soon) return warning(`the certificate of ${name} expires in ${left}`, renew);
	return ok(`the certificate of ${name} is good for ${left}`);
}

function seenOn(tls: TLSSocket, host: string): SeenCertificate {
	const certificate = tls.getPeerCertificate();
	const isForHost = checkServerIdentity(host, certificate) === undefined;
	return {
		name: isForHost ? host : firstNameOf(certificate),
		validTo: Date.parse(certificate.valid_to) * microsPerMs,
		distrust: tls.authorized ? null : distrustOf(tls.authorizationError),
	};
}

function firstNameOf({ subject, subjectaltname }: PeerCertificate): string {
	const [first = ''] = (subjectaltname ?? '').split(', ');
	const name = first.replace(/^(DNS|IP Address):/, '');
	return name === '' ? String(subject?.CN ?? 'the server') : name;
}

/** By the code of Node's error; `authorizationError` is typed as an error, and is that code in fact. */
export function distrustOf(error: unknown): Distrust {
	const text = error instanceof Error ? error.message : String(error);
	return distrusts[text] ?? { says: text.toLowerCase().replaceAll('_', ' '), because: 'other' };
}

const unknownAuthority: Distrust = { says: 'its authority is unknown', because: 'authority' };

const distrusts: Readonly<Record<string, Distrust>> = {
	DEPTH_ZERO_SELF_SIGNED_CERT: { says: 'it is signed by itself', because: 'authority' },
	SELF_SIGNED_CERT_IN_CHAIN: unknownAuthority,
	UNABLE_TO_GET_ISSUER_CERT: unknownAuthority,
	UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownAuthority,
	UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownAuthority,
	ERR_TLS_CERT_ALTNAME_INVALID: { says: 'it is for another name', because: 'name' },
	CERT_NOT_YET_VALID: { says: 'it is not valid yet', because: 'other' },
};

function asError(reason: unknown): Error {
	return reason instanceof Error ? reason : new Error(String(reason));
}
