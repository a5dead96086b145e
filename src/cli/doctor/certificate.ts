import { isIP } from 'node:net';
import { checkServerIdentity, connect, type PeerCertificate, rootCertificates } from 'node:tls';
import { type Micros, microsPerDay, microsPerMs } from '../../api/datetime.js';
import { spanText } from '../render/units.js';
import { firstError, ok, problem, type Verdict, warning } from './checks.js';

export interface SeenCertificate {
	/** Its names: the requested host, where it is among them. */
	name: string;
	validTo: Micros;
	/** Why it is not trusted here; null: it is. */
	distrust: Distrust | null;
}

/** `says` is the reason in words; `because` is its kind: the authority, the name, or anything else. */
interface Distrust {
	says: string;
	because: 'authority' | 'name' | 'other';
}

/**
 * Makes a TLS handshake and closes the connection. Rejects when TLS fails, and with the signal's reason. `ca`: PEM of
 * authorities beside those of this machine.
 */
export function lookAtCertificate(options: {
	host: string;
	port: number;
	ca: string | null;
	signal: AbortSignal;
}): Promise<SeenCertificate> {
	const { host, port, ca, signal } = options;
	return new Promise((resolve, reject) => {
		// Read even if it is not trusted: the check reports that.
		const tls = connect({
			...{ host, port, rejectUnauthorized: false },
			...(isIP(host) === 0 && { servername: host }),
			...(ca !== null && { ca: [...rootCertificates, ca] }),
		});
		const stop = () => tls.destroy(new Error(firstError(signal.reason)));
		if (signal.aborted) stop();
		else signal.addEventListener('abort', stop, { once: true });
		tls.on('error', reject);
		tls.once('close', () => {
			signal.removeEventListener('abort', stop);
			reject(new Error('the connection was closed during the handshake'));
		});
		tls.once('secureConnect', () => {
			const certificate = tls.getPeerCertificate();
			const isForHost = checkServerIdentity(host, certificate) === undefined;
			resolve({
				name: isForHost ? host : firstNameOf(certificate),
				validTo: validToOf(certificate),
				distrust: tls.authorized ? null : distrustOf(tls.authorizationError),
			});
			tls.destroy();
		});
	});
}

export function validToOf({ valid_to }: Pick<PeerCertificate, 'valid_to'>): Micros {
	return Date.parse(valid_to) * microsPerMs;
}

function firstNameOf({ subject, subjectaltname }: PeerCertificate): string {
	const [first = ''] = (subjectaltname ?? '').split(', ');
	const name = first.replace(/^(DNS|IP Address):/, '');
	return name === '' ? String(subject?.CN ?? 'the server') : name;
}

const soon: Micros = 14 * microsPerDay;

/** Whether it is still good, and for how long; `isChecked`: nothing goes to a server without a good one. */
export function judgeValidity(
	{ name, validTo }: Pick<SeenCertificate, 'name' | 'validTo'>,
	{ now, isChecked, renew }: { now: Micros; isChecked: boolean; renew: string },
): Verdict {
	const left = spanText(validTo - now);
	if (validTo < now)
		return (isChecked ? problem : warning)(`the certificate of ${name} expired ${left} ago`, renew);
	if (validTo < now + soon) return warning(`the certificate of ${name} expires in ${left}`, renew);
	return ok(`the certificate of ${name} is good for ${left}`);
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
