/** Writes opens and clicks to the store in batches: each call of a store behind a thread has a cost. */
import type { TrackedEvent, Writes } from '../../store/store.js';

/** How long a batch may wait for more events; the store then waits for more before it commits. */
const maxDelayMs = 10;
const maxEvents = 200;

interface Batch {
	readonly events: TrackedEvent[];
	readonly recorded: Promise<void>;
	send(): void;
}

/** Resolves or rejects with the whole batch of the event. Unsubscribing does not wait for others. */
export function createEventWriter(
	writes: Pick<Writes, 'recordEvents'>,
): (event: TrackedEvent) => Promise<void> {
	let open: Batch | null = null;

	const startBatch = (): Batch => {
		const events: TrackedEvent[] = [];
		let send: () => void = () => undefined;
		const recorded = new Promise<void>((resolve, reject) => {
			send = () => {
				clearTimeout(timer);
				open = null;
				writes.recordEvents({ events }).then(resolve, reject);
			};
		});
		const timer = setTimeout(() => send(), maxDelayMs);
		return { events, recorded, send };
	};

	return (event) => {
		if (event.type !== 'OPENED' && event.type !== 'REDIRECTED')
			return writes.recordEvents({ events: [event] });
		open ??= startBatch();
		const { events, recorded, send } = open;
		events.push(event);
		if (events.length >= maxEvents) send();
		return recorded;
	};
}
