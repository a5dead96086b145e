/** What became of a test of the mail server, behind its address. */
import { type Hint, mailctl } from '../frame/command-line.js';
import type { SmtpTest } from '../frame/connection.js';

/** The reply without that address, which a failed connection repeats; one that a name stands for is kept. */
export function replyOf({ host, port, reply }: Pick<SmtpTest, 'host' | 'port' | 'reply'>): string {
	return reply === null ? 'no answer' : reply.replace(` ${host}:${port}:`, ':');
}

/** The remedy for a login that the mail server refuses. */
export const loginRemedy: Hint = [
	mailctl('engine', 'init', '--smtp-password-file', 'FILE'),
	' sets the password',
];

/** Whether that is the reason of a pause. */
export function isLoginReply(reason: string | null): boolean {
	return reason?.startsWith('auth: ') === true;
}
