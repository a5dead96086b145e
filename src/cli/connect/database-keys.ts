/** Keys of the database, made on first use, and signing beside links. */
import { microsPerSecond } from '../../api/datetime.js';
import { createVerp, type Verp } from '../../delivery/bounces/verp.js';
import { readSettings } from '../../engine/settings.js';
import type { StoredKey } from '../../store/keys.js';
import { freshKey, type LocalParts } from './parts.js';

/** A new key signs after 90 days; older ones go on being verified. */
const keyLifeMicros = 90 * 24 * 3600 * microsPerSecond;

/** Newest first, at least one. */
export function trackingKeys({ store, clock }: Pick<LocalParts, 'store' | 'clock'>): Promise<StoredKey[]> {
	return store.writes.ensureKey({
		purpose: 'tracking',
		fresh: freshKey(),
		rotateAfter: keyLifeMicros,
		now: clock.now(),
	});
}

/** Return paths by the settings of this moment; null where bounces go to the sender. */
export async function openVerp(parts: Pick<LocalParts, 'store' | 'clock'>): Promise<Verp | null> {
	const { bounceAddress } = await readSettings(parts.store);
	return bounceAddress === null ? null : createVerp(bounceAddress, await trackingKeys(parts));
}
