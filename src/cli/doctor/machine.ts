import { stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { type ConnectionOptions, connect, rootCertificates } from 'node:tls';
import { type Micros, microsPerDay, microsPerMs } from '../../api/datetime.js';
import { type Paths, readConfig, readTokens } from '../config/config.js';
import { shellWord } from '../frame/words.js';
import { spanText } from '../render/units.js';
import { type Answer, type Checks, firstError, ok, problem, Skip, type Verdict, warning } from './checks.js';

export function machineChecks(paths: Paths, secrets: readonly string[], folder: string | null): Checks {
	return {
		'machine.node': () => ok(`Node.js ${process.versions.node}`),
		'config.files': () => {
			try {
				const names = Object.keys(readConfig(paths).profiles);
				readTokens(paths);
				return ok(names.length === 0 ? 'no profiles stored' : `${paths.config} holds ${names.join(', ')}`);
			} catch (error) {
				return problem(firstError(error), 'correct the file, or move it away and log in again');
			}
		},
		'config.access': () => judgeAccess(paths.config, [paths.credentials, ...secrets], [paths.folder, folder]),
	};
}

async function judgeAccess(
	config: string,
	secrets: readonly string[],
	folders: readonly (string | null)[],
): Promise<Answer> {
	if (process.platform === 'win32') throw new Skip('file permissions are not checked on Windows');
	// Ignore devices, because nobody should change their mode.
	const modeOf = async (path: string) => {
		const found = await stat(path).catch(() => null);
		return found?.isFile() ? found.mode & 0o077 : 0;
	};
	const modes = await Promise.all(secrets.map(modeOf));
	const open = secrets.filter((_, at) => modes[at] !== 0);
	const bits = modes.reduce((all, mode) => all | mode, 0);
	const may = `${who(bits)} can ${(bits & 0o022) === 0 ? 'read' : 'change'}`;
	const fix = `chmod 600 ${open.map(shellWord).join(' ')}`;
	// A user who can change the configuration decides where mailctl sends tokens.
	const writers = (await modeOf(config)) & 0o022;
	const complaints = [
		open.length > 0 ? problem(`${may} ${open[0]}, which holds secrets`, fix) : null,
		...(await Promise.all(folders.map(judgeFolder))),
		writers !== 0 ? problem(`${who(writers)} can change ${config}`, `chmod 600 ${shellWord(config)}`) : null,
	].filter((verdict) => verdict !== null);
	return complaints.length > 0 ? complaints : ok('only their owner can read files with secrets');
}

/**
 * A user who can write to the folder can replace its files. Such a user can also place a forged log, which SQLite
 * trusts, beside a database.
 */
async function judgeFolder(path: string | null): Promise<Verdict | null> {
	const found = path === null ? null : await stat(path).catch(() => null);
	if (path === null || !found?.isDirectory()) return null;
	// A group with the same number as the owner is usually the private group of that user.
	const bits = found.mode & (found.gid === found.uid ? 0o002 : 0o022);
	if (bits === 0) return null;
	// `chmod` would break a shared folder with the sticky bit, such as /tmp.
	const fix = (found.mode & 0o1000) === 0 ? `chmod go-w ${shellWord(path)}` : null;
	const says = `${who(bits)} can write to the folder ${path}, which holds secrets`;
	return problem(says, fix ?? 'use a private folder: mkdir -m 700 FOLDER');
}

function who(bits: number): string {
	return (bits & 0o007) === 0 ? 'its group' : 'everyone on this machine';
}

interface Asked extends Pick<ConnectionOptions, 'rejectUnauthorized'> {
	host: string;
	port: number;
	/** Certificate authorities in PEM, in addition to those of Node.js. */
	ca: string | null;
}

/** Returns when the certificate expires. Makes only a TLS handshake. Rejects if TLS fails or the signal is aborted. */
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
	/** False if mailctl does not verify the certificate. */
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

export const setClock = 'set the clock that is wrong: timedatectl set-ntp true';

export function judgeClock(whose: string, ahead: number, tolerated: number): Verdict {
	if (Math.abs(ahead) <= tolerated) return ok(`${whose} clock agrees with this machine's`);
	const where = `${spanText(ahead)} ${ahead > 0 ? 'ahead of' : 'behind'}`;
	return warning(`${whose} clock is ${where} this machine's`, setClock);
}
