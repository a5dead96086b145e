import { randomBytes } from 'node:crypto';
import { microsPerSecond } from '../../api/datetime.js';
import { createVerp, type Verp } from '../../delivery/bounces/verp.js';
import { readSettings } from '../../engine/settings.js';
import type { StoredKey, WrappingKey } from '../../store/keys.js';
import type { Store } from '../../store/store.js';
import type { ConnectDependencies } from '../frame/connection.js';

export interface LocalParts extends ConnectDependencies {
	store: Store;
	path: string;
	tokenFile: string;
	isNew: boolean;
	keys: readonly WrappingKey[];
	presence: Presence;
}

export interface Presence {
	whyPaused: () => string | null;
	storeFailed: (error: Error) => void;
}

/** A secret of the keyring: 256 bits, its id random so that two databases do not share one. */
export function freshKey(): { id: number; secret: string } {
	return { id: randomBytes(4).readUInt32BE(), secret: randomBytes(32).toString('base64url') };
}

const keyLifeMicros = 90 * 24 * 3600 * microsPerSecond;

export function trackingKeys({ store, clock }: Pick<LocalParts, 'store' | 'clock'>): Promise<StoredKey[]> {
	return store.writes.ensureKey({
		purpose: 'tracking',
		fresh: freshKey(),
		rotateAfter: keyLifeMicros,
		now: clock.now(),
	});
}

export async function openVerp(parts: Pick<LocalParts, 'store' | 'clock'>): Promise<Verp | null> {
	const { bounceAddress } = await readSettings(parts.store);
	return bounceAddress === null ? null : createVerp(bounceAddress, await trackingKeys(parts));
}
