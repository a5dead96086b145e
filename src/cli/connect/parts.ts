import { randomBytes } from 'node:crypto';
import type { Wait } from '../../api/backoff.js';
import type { Clock } from '../../api/datetime.js';
import { type Micros, microsPerSecond } from '../../api/datetime.js';
import { createVerp, type Verp } from '../../delivery/bounces/verp.js';
import { readSettings } from '../../engine/settings.js';
import type { StoredKey, WrappingKey } from '../../store/maintenance.js';
import type { Store } from '../../store/store.js';
import { spanText } from '../render/units.js';

interface RemoteOptions {
	timeoutMs: number;
	retries: number;
	caCert: string | null;
	insecure: boolean;
	proxy: string | null;
}

interface FirstWrite {
	/** Called before the database is created, or when another process has created it. */
	begin(): void;
	made(path: string): Promise<void>;
}

export interface ConnectDependencies {
	/** `serve` and `worker` keep running. Other processes see them in the database. */
	role: 'cli' | 'serve' | 'serve --no-worker' | 'worker';
	isTrial?: boolean;
	/** Delays creating a missing database until the first write; reads find it empty. Without it: created at once. */
	firstWrite?: FirstWrite;
	remote: RemoteOptions;
	env: Readonly<Record<string, string | undefined>>;
	clock: Clock;
	trace: ((line: string) => void) | null;
	/** Milliseconds to wait for a database that another process has locked. A value above the default has no effect. */
	lockMs?: number;
	/** Called for each wait that a user may notice. `what` names the awaited server. Default: the target. */
	onWait: ((what?: string) => Wait) | null;
	warn: (text: string) => void;
	signal?: AbortSignal;
}

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

/** The id is random, so that two databases do not have different secrets with the same id. */
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
/** Ignores smaller corrections, which are harmless. */
const worthTelling: Micros = microsPerSecond;

/** The timer does not keep the process alive. For a fixed clock, this function does nothing. */
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
