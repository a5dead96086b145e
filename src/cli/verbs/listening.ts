/** Errors of commands that listen on a port. */
import { UsageError } from '../frame/errors.js';
import { clean } from '../render/clean.js';

/** The error of a port that cannot be listened on, in terms of its options; any other error unchanged. */
export function cannotListen(cause: unknown, { host, port }: { host: string; port: number }): unknown {
	const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
	switch (code) {
		case 'EADDRINUSE': {
			// A server with several ports: the system names the one that is taken.
			const taken = cause instanceof Error && 'port' in cause ? Number(cause.port) : port;
			const hint = `give another ${taken === port ? '--port' : '--bounce-smtp'}`;
			return new UsageError(`port ${taken} of ${host} is in use`, { hint, cause });
		}
		case 'EACCES':
			return new UsageError(`port ${port} is not ours to take`, { hint: 'give one above 1023', cause });
		case 'EADDRNOTAVAIL':
		case 'EINVAL':
		case 'ENOTFOUND':
		case 'EAI_AGAIN':
			return new UsageError(`--host ${clean(host)} is no address of this machine`, { cause });
		default:
			return cause;
	}
}
