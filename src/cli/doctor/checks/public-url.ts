/** Whether the host in links of mails answers, as far as this machine can tell. */
import { whyUnreachable } from '../../../api/errors.js';
import type { ContentsCheck } from '../contents-checks.js';
import type { Names } from '../dns.js';
import { type Check, type CheckEnvironment, ok, skipped, type Verdict, warning } from '../model.js';
import { firstError } from '../timeouts.js';

/** `connection.public-url`. */
export function publicUrlChecks(
	ofContents: ContentsCheck,
	names: Names,
	{ line, isOffline, timeout }: CheckEnvironment,
): Check[] {
	return [
		{
			name: 'connection.public-url',
			run: ofContents(async ({ settings }) => {
				if (isOffline) return skipped('--offline asks no other machine');
				const { publicUrl } = await settings();
				if (publicUrl === null) return skipped('no public URL is set');
				return visit(publicUrl, { names, line, timeout });
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
	{ names, line, timeout }: Pick<CheckEnvironment, 'line' | 'timeout'> & { names: Names },
): Promise<Verdict> {
	const limit = timeout();
	try {
		const { status, body } = await fetch(`${publicUrl}/healthz`, { redirect: 'manual', signal: limit });
		await body?.cancel();
		if (status < 500) return ok(`${publicUrl} answers`);
		return warning(`${publicUrl} answers ${status}: links in mails lead nowhere`, line('serve'));
	} catch (error) {
		const silence = `this machine gets no answer from ${publicUrl}`;
		if (limit.aborted) return warning(`${silence}: ${firstError(limit.reason)}`, line('serve'));
		const cause = causeOf(error);
		const code = codeOf(cause);
		if (!isUnnamed(code))
			return warning(`${silence}: ${whyUnreachable(code) ?? firstError(cause)}`, line('serve'));
		// `dns.public-url` has the problem: no server mends it.
		const { hostname } = new URL(publicUrl);
		if ((await names.addresses(hostname)).kind === 'none') return skipped(`${hostname} does not exist`);
		return warning(`${silence}: ${whyUnreachable(code)}`);
	}
}

function isUnnamed(code: string): boolean {
	return code === 'ENOTFOUND' || code === 'EAI_AGAIN';
}

/** The cause behind the error of `fetch`, which always says "fetch failed"; of several tried addresses the first one's. */
function causeOf(error: unknown): unknown {
	const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
	return cause instanceof AggregateError && cause.errors.length > 0 ? cause.errors[0] : cause;
}

function codeOf(error: unknown): string {
	return error instanceof Error && 'code' in error ? String(error.code) : '';
}
