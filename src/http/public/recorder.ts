import type { Visitor } from '../../delivery/tracking/events.js';
import type { Happened, TrackingPorts } from '../../delivery/tracking/lookup.js';
import type { Keyring } from '../../delivery/tracking/tokens.js';
import type { PublicRequest } from '../messages.js';

type MakeEvent = (keyring: Keyring | null) => Happened | null;

export interface Recorder {
	/** Records the event after the turn of the event loop; the request does not wait. `failed` of the ports gets the errors. */
	later(makeEvent: MakeEvent): void;
	settled(): Promise<void>;
}

/** More than the events of a thousand requests a second during the longest lock of a store. */
const maxUnderWay = 20_000;

/** While too many wait for a store that does not answer, further ones are lost: memory is limited. */
export function createRecorder(ports: Pick<TrackingPorts, 'keyring' | 'record' | 'failed'>): Recorder {
	const lost = (error: unknown) => ports.failed?.(error);
	let waiting: MakeEvent[] = [];
	let underWay = 0;
	let idle: (() => void)[] = [];
	const begin = async () => {
		const events = waiting;
		waiting = [];
		await recordAll(ports, events).catch(lost);
		underWay -= events.length;
		if (underWay > 0) return;
		for (const resolve of idle) resolve();
		idle = [];
	};
	return {
		later: (makeEvent) => {
			if (underWay >= maxUnderWay) {
				lost(new Error(`${maxUnderWay} opens and clicks wait to be recorded; another one is lost`));
				return;
			}
			underWay += 1;
			if (waiting.length === 0) setImmediate(begin);
			waiting.push(makeEvent);
		},
		settled: () =>
			new Promise((resolve) => {
				if (underWay === 0) resolve();
				else idle.push(resolve);
			}),
	};
}

/** Events that are recorded together fail together, and are reported once. Rejects when all of them are lost. */
async function recordAll(
	{ keyring, record, failed }: Pick<TrackingPorts, 'keyring' | 'record' | 'failed'>,
	events: readonly MakeEvent[],
): Promise<void> {
	const keys = await keyring();
	const recorded = new Set<Promise<void>>();
	for (const makeEvent of events) {
		const event = makeEvent(keys);
		if (event !== null) recorded.add(record(event));
	}
	for (const outcome of await Promise.allSettled(recorded))
		if (outcome.status === 'rejected') failed?.(outcome.reason);
}

/** A missing User-Agent is null; a given one is untrusted text. */
export function visitorOf({ ip, headers }: PublicRequest): Visitor {
	return { ip, userAgent: headers['user-agent'] ?? null };
}
