/** Whether links in mails lead to somebody who answers, as far as this machine can tell. */
import type { Look } from '../looking.js';
import { type Check, ok, type Surroundings, skipped, type Verdict, warning } from '../model.js';
import { patient, saidBy } from '../patience.js';

/** `connection.public-url`. */
export function publicUrlChecks(look: Look, { line, isOffline, signal }: Surroundings): Check[] {
	return [
		{
			name: 'connection.public-url',
			run: look(async ({ settings }) => {
				if (isOffline) return skipped('--offline asks no other machine');
				const { publicUrl } = await settings();
				return publicUrl === null ? skipped('no public URL is set') : visit(publicUrl, { line, signal });
			}),
		},
	];
}

/**
 * Any answer will do but one of a gateway that has nobody behind it: a proxy in front may let through no more than the
 * pages of mails. A warning at most: from within a network its own public address is often not reached.
 */
async function visit(
	publicUrl: string,
	{ line, signal }: Pick<Surroundings, 'line' | 'signal'>,
): Promise<Verdict> {
	const limit = patient(signal);
	try {
		const { status, body } = await fetch(`${publicUrl}/healthz`, { redirect: 'manual', signal: limit });
		await body?.cancel();
		if (status < 500) return ok(`${publicUrl} answers`);
		return warning(`${publicUrl} answers ${status}: links in mails lead nowhere`, line('serve'));
	} catch (error) {
		const why = limit.aborted ? limit.reason : causeOf(error);
		return warning(`nobody answers at ${publicUrl} from here: ${saidBy(why)}`, line('serve'));
	}
}

/** What `fetch` throws says "fetch failed", whatever it was. */
function causeOf(error: unknown): unknown {
	return error instanceof Error && error.cause !== undefined ? error.cause : error;
}
