/** The public pages of a server: the recipient behind a link of a mail, and the change it makes. */
import { createTracking } from '../../delivery/tracking/lookup.js';
import { createPublicHandler, type PublicPages } from '../../http/public/handler.js';
import type { Mailer } from './mail.js';
import type { LocalParts } from './parts.js';

/** Settings and keys are read again after so long. */
const settingsForMs = 1_000;

/** For one server. Writes that fail after the answer go to `log`. Wait for `settled` before the store is closed. */
export function trackingPages(
	{ store, clock }: LocalParts,
	{ contents, links }: Pick<Mailer, 'contents' | 'links'>,
	log: (line: object) => void,
): PublicPages {
	const ports = createTracking({
		reads: store.reads,
		writes: store.writes,
		contents,
		links: keptFor(settingsForMs, links),
		clock,
		failed: (error) => log({ event: 'tracking_failed', error: String(error) }),
	});
	return createPublicHandler({ ...ports, branding: keptFor(settingsForMs, ports.branding) });
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
