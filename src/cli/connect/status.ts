/** The status of a database of this machine, with times as the API writes them. */
import { formatDateTime } from '../../api/datetime.js';
import { withoutSecrets } from '../../api/quote.js';
import { limitSettings } from '../../engine/rules/limits.js';
import { proposedRetention } from '../../engine/rules/retention.js';
import { readSettings } from '../../engine/settings.js';
import type { Sizes } from '../../store/maintenance.js';
import { isMissingFile } from '../../store/url.js';
import type { EngineStatus } from '../frame/engine-state.js';
import type { LocalParts } from './parts.js';
import { firstPause } from './queue.js';

/** Of a database that is not there: what is read in its place takes memory, and no room on the disk. */
const nowhere: Sizes = {
	...{ messages: 0, events: 0, bodies: 0, links: 0, subscribers: 0, figures: 0, other: 0, free: 0 },
	is_estimate: false,
};

/** Several reads at different moments: figures may differ by writes between them. */
export async function localStatus(
	parts: Pick<LocalParts, 'store' | 'clock' | 'path'>,
): Promise<EngineStatus> {
	const { reads } = parts.store;
	const now = parts.clock.now();
	const [{ stopped_webhooks, ...status }, sizes, settings, values, senders, pauses, keys] = await Promise.all(
		[
			reads.status(),
			reads.sizes({}),
			readSettings(parts.store),
			reads.getSettings(),
			reads.pageSenders({ page: 1, page_size: 1 }),
			reads.queuePauses(),
			reads.listDkimKeys(),
		],
	);
	const { keep_messages = null, keep_events = null, keep_bodies = null } = values;
	const isSet = (keep_messages ?? keep_events ?? keep_bodies) !== null;
	const frees = await reads.foreseeRetention({ values: isSet ? values : proposedRetention, now });
	const limits = Object.entries(values).filter(([name]) => Object.hasOwn(limitSettings, name));
	const isThere = !isMissingFile(parts.path);
	return {
		path: parts.path,
		...status,
		...(!isThere && { size_bytes: 0 }),
		senders: senders.count,
		smtp_url: settings.smtpUrl,
		public_url: settings.publicUrl,
		time_zone: settings.timeZone,
		paused: firstPause(pauses),
		bounce_address: settings.bounceAddress,
		verp: settings.bounceAddress !== null,
		dkim_domains: [...new Set(keys.map(({ domain }) => domain))],
		limits: Object.fromEntries(limits),
		webhooks_stopped: stopped_webhooks.map(({ id, url, stopped_at }) => ({
			id,
			url: withoutSecrets(url),
			since: formatDateTime(stopped_at),
		})),
		size: isThere ? sizes : nowhere,
		retention: { keep_messages, keep_events, keep_bodies, frees },
	};
}
