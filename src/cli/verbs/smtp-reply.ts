/** What became of a test of the mail server, behind its address. */
import type { SmtpTest } from '../frame/connection.js';

/** The reply without that address, which a failed connection repeats; one that a name stands for is kept. */
export function replyOf({ host, port, reply }: Pick<SmtpTest, 'host' | 'port' | 'reply'>): string {
	return reply === null ? 'no answer' : reply.replace(` ${host}:${port}:`, ':');
}
