/** Opens and clicks on their way to the store, while those who made them have their answers already. */
import type { Happened, TrackingPorts } from '../../delivery/tracking/ports.js';
import type { Keyring } from '../../delivery/tracking/tokens.js';

/** What was seen, made into an event when somebody has time for it; null: it was nothing. */
export type Sight = (keyring: Keyring | null) => Happened | null;

export interface Recorder {
	/** Records it without anybody waiting, at the end of the turn; `failed` of the ports is told what goes wrong. */
	later(sight: Sight): void;
	/** Resolves when nothing is on its way: before the store is closed. */
	settled(): Promise<void>;
}

/** More than a store that is locked for as long as it may be lets pile up at a thousand a second. */
const maxUnderWay = 20_000;

/** While too many wait for a store that does not answer, further ones are lost: memory is not without end. */
export function createRecorder(ports: Pick<TrackingPorts, 'keyring' | 'record' | 'failed'>): Recorder {
	const lost = (error: unknown) => ports.failed?.(error);
	let waiting: Sight[] = [];
	let underWay = 0;
	let idle: (() => void)[] = [];
	const begin = async () => {
		const sights = waiting;
		waiting = [];
		await recordAll(ports, sights).catch(lost);
		underWay -= sights.length;
		if (underWay > 0) return;
		for (const resolve of idle) resolve();
		idle = [];
	};
	return {
		later: (sight) => {
			if (underWay >= maxUnderWay) {
				lost(new Error(`${maxUnderWay} opens and clicks wait to be recorded; another one is lost`));
				return;
			}
			underWay += 1;
			if (waiting.length === 0) setImmediate(begin);
			waiting.push(sight);
		},
		settled: () =>
			new Promise((resolve) => {
				if (underWay === 0) resolve();
				else idle.push(resolve);
			}),
	};
}

/** What is recorded together fails together, and is told once. Rejects when all of it is lost. */
async function recordAll(
	{ keyring, record, failed }: Pick<TrackingPorts, 'keyring' | 'record' | 'failed'>,
	sights: readonly Sight[],
): Promise<void> {
	const keys = await keyring();
	const recorded = new Set<Promise<void>>();
	for (const sight of sights) {
		const event = sight(keys);
		if (event !== null) recorded.add(record(event));
	}
	for (const outcome of await Promise.allSettled(recorded))
		if (outcome.status === 'rejected') failed?.(outcome.reason);
}
