/** The public pages of a server: who follows a link of a mail, and what that changes. */
import { createTracking } from '../../delivery/tracking/lookup.js';
import { createPublicHandler, type PublicPages } from '../../http/public/handler.js';
import type { Mailer } from './mail.js';
import type { LocalParts } from './parts.js';

/** Settings and keys are read again after so long. */
const linksForMs = 1_000;

/** For one server; what is lost behind an answer is told to `log`. Wait for `settled` before the store is closed. */
export function trackingPages(
	{ store, clock }: LocalParts,
	{ contents, links }: Pick<Mailer, 'contents' | 'links'>,
	log: (line: object) => void,
): PublicPages {
	return createPublicHandler(
		createTracking({
			reads: store.reads,
			writes: store.writes,
			contents,
			links: keptFor(linksForMs, links),
			clock,
			failed: (error) => log({ event: 'tracking_failed', error: String(error) }),
		}),
	);
}

/** Asked on every open, and written to the database when a key is due: once a second is enough. A failure is not kept. */
export function keptFor<T>(ms: number, read: () => Promise<T>): () => Promise<T> {
	let kept: { value: Promise<T>; until: number } | null = null;
	return () => {
		const now = performance.now();
		if (kept !== null && kept.until > now) return kept.value;
		const value = read();
		kept = { value, until: now + ms };
		value.catch(() => {
			kept = null;
		});
		return value;
	};
}
