import { randomBytes } from 'node:crypto';
import { type Micros, microsPerSecond } from '../../api/datetime.js';
import { createVerp, type Verp } from '../../delivery/bounces/verp.js';
import { readSettings } from '../../engine/settings.js';
import type { StoredKey, WrappingKey } from '../../store/maintenance.js';
import type { Store } from '../../store/store.js';
import type { ConnectDependencies } from '../frame/connection.js';
import { spanText } from '../render/units.js';

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

interface ClockStep {
	seconds: number;
	text: string;
}

const everyMs = 1_000;
/** Less is slewed, and does no harm. */
const worthTelling: Micros = microsPerSecond;

/** Checks each second until stopped, and does not keep the process alive. A fixed clock is not watched. */
export function watchClock(
	{ clock, store }: Pick<LocalParts, 'clock' | 'store'>,
	onStep: (step: ClockStep) => void,
): { stop(): void } {
	const whose = store.clock === undefined ? 'this machine' : 'the database';
	const { steady } = clock;
	if (steady === undefined) return { stop: () => undefined };
	let ahead = clock.now() - steady();
	const timer = setInterval(() => {
		const found = clock.now() - steady();
		const by = found - ahead;
		ahead = found;
		if (Math.abs(by) >= worthTelling)
			onStep({ seconds: Math.round(by / microsPerSecond), text: stepText(by, whose) });
	}, everyMs).unref();
	return { stop: () => clearInterval(timer) };
}

function stepText(by: Micros, whose: string): string {
	const span = spanText(by);
	return by < 0
		? `the clock of ${whose} was set back by ${span}`
		: `the clock of ${whose} was set forward by ${span}, or the machine slept`;
}
