import { isIP } from 'node:net';
import { type ConnectionOptions, connect, rootCertificates } from 'node:tls';
import { type Micros, microsPerDay, microsPerMs } from '../../api/datetime.js';
import { spanText } from '../render/units.js';
import { firstError, ok, problem, type Verdict, warning } from './checks.js';

interface Asked extends Pick<ConnectionOptions, 'rejectUnauthorized'> {
	host: string;
	port: number;
	/** PEM of authorities beside those of this machine. */
	ca: string | null;
}

/** The end of the certificate, by a handshake alone. Rejects when TLS fails, and with the signal's reason. */
export function validityOf({ ca, ...asked }: Asked, signal: AbortSignal): Promise<Micros> {
	return new Promise((resolve, reject) => {
		const name = isIP(asked.host) === 0 ? { servername: asked.host } : {};
		const tls = connect({ ...asked, ...name, ...(ca !== null && { ca: [...rootCertificates, ca] }) });
		const stop = () => tls.destroy(new Error(firstError(signal.reason)));
		if (signal.aborted) stop();
		else signal.addEventListener('abort', stop, { once: true });
		tls.on('error', reject);
		tls.once('close', () => {
			signal.removeEventListener('abort', stop);
			reject(new Error('the connection was closed during the handshake'));
		});
		tls.once('secureConnect', () => {
			resolve(Date.parse(tls.getPeerCertificate().valid_to) * microsPerMs);
			tls.destroy();
		});
	});
}

interface Judged {
	now: Micros;
	/** An expired certificate that nobody verifies is a warning. */
	isChecked: boolean;
	renew: string;
}

export function judgeValidity(name: string, validTo: Micros, { now, isChecked, renew }: Judged): Verdict {
	const left = spanText(validTo - now);
	if (validTo < now)
		return (isChecked ? problem : warning)(`the certificate of ${name} expired ${left} ago`, renew);
	const expires = `the certificate of ${name} expires in ${left}`;
	return validTo < now + 14 * microsPerDay ? warning(expires, renew) : ok(expires);
}
