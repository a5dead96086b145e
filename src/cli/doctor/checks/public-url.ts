/** Whether the host in links of mails answers, as far as this machine can tell. */
import type { ContentsCheck } from '../contents-checks.js';
import { type Check, type CheckEnvironment, ok, skipped, type Verdict, warning } from '../model.js';
import { firstError } from '../timeouts.js';

/** `connection.public-url`. */
export function publicUrlChecks(
	ofContents: ContentsCheck,
	{ line, isOffline, timeout }: CheckEnvironment,
): Check[] {
	return [
		{
			name: 'connection.public-url',
			run: ofContents(async ({ settings }) => {
				if (isOffline) return skipped('--offline asks no other machine');
				const { publicUrl } = await settings();
				return publicUrl === null ? skipped('no public URL is set') : visit(publicUrl, { line, timeout });
			}),
		},
	];
}

/**
 * Any answer will do, except that of a gateway without a server behind it: a proxy may let through only the pages of
 * mails. A warning at most: a network often cannot reach its own public address from within.
 */
async function visit(
	publicUrl: string,
	{ line, timeout }: Pick<CheckEnvironment, 'line' | 'timeout'>,
): Promise<Verdict> {
	const limit = timeout();
	try {
		const { status, body } = await fetch(`${publicUrl}/healthz`, { redirect: 'manual', signal: limit });
		await body?.cancel();
		if (status < 500) return ok(`${publicUrl} answers`);
		return warning(`${publicUrl} answers ${status}: links in mails lead nowhere`, line('serve'));
	} catch (error) {
		const why = limit.aborted ? limit.reason : causeOf(error);
		return warning(`this machine gets no answer from ${publicUrl}: ${firstError(why)}`, line('serve'));
	}
}

/** The cause behind the error of `fetch`, which always says "fetch failed". */
function causeOf(error: unknown): unknown {
	return error instanceof Error && error.cause !== undefined ? error.cause : error;
}
