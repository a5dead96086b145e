import { isIP } from 'node:net';
import { connect, rootCertificates } from 'node:tls';
import { type Micros, microsPerDay, microsPerMs } from '../../api/datetime.js';
import { spanText } from '../render/units.js';
import { firstError, ok, problem, type Verdict, warning } from './checks.js';

interface Asked {
	host: string;
	port: number;
	/** PEM of authorities beside those of this machine. */
	ca: string | null;
	isChecked: boolean;
	signal: AbortSignal;
}

/** The end of the certificate, by a handshake alone. Rejects when TLS fails, and with the signal's reason. */
export function validityOf({ host, port, ca, isChecked, signal }: Asked): Promise<Micros> {
	return new Promise((resolve, reject) => {
		const tls = connect({
			...{ host, port, rejectUnauthorized: isChecked },
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
			resolve(Date.parse(tls.getPeerCertificate().valid_to) * microsPerMs);
			tls.destroy();
		});
	});
}

const soon: Micros = 14 * microsPerDay;

export function judgeValidity(
	name: string,
	validTo: Micros,
	{ now, isChecked, renew }: { now: Micros; isChecked: boolean; renew: string },
): Verdict {
	const left = spanText(validTo - now);
	if (validTo < now)
		return (isChecked ? problem : warning)(`the certificate of ${name} expired ${left} ago`, renew);
	const expires = `the certificate of ${name} expires in ${left}`;
	return validTo < now + soon ? warning(expires, renew) : ok(expires);
}
