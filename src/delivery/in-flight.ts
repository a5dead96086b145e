/** The in-flight window: how many messages may be under way, by connections, by what a crash may repeat, and by bytes. */
export interface InFlight {
	/** Messages begun and not ended. */
	readonly inFlight: number;
	/** Whether one more may begin; `unsettled` is the number of outcomes not recorded yet. */
	isFree(unsettled: number): boolean;
	/** Begins one message. */
	enter(): Slot;
}

export interface Slot {
	/** Sets its size, once it is known. */
	hold(bytes: number): void;
	leave(): void;
}

/** The messages that a crash may repeat, besides one body for each connection: sent, but not recorded. */
const mostUnsettled = 100;
/** Bytes composed and not answered. A larger message goes alone. */
const mostBytes = 16 * 1024 * 1024;
/**
 * On a connection with PIPELINING one message waits for its answer, the envelope of the next has left with its body,
 * and a third is ready for the moment of the answer.
 */
const perConnection = 3;

/**
 * For one run. Until the first size is known one message goes alone. Every message that enters also leaves, whatever
 * its outcome.
 */
export function createInFlight(connections: number): InFlight {
	let inFlight = 0;
	let unknown = 0;
	let bytes = 0;
	/** The estimate for the next message: neighbours in the queue are mostly of one campaign. Unknown before the first. */
	let lastBytes = mostBytes;
	return {
		get inFlight() {
			return inFlight;
		},
		isFree(unsettled) {
			if (inFlight >= perConnection * connections) return false;
			if (unsettled + inFlight >= mostUnsettled + connections) return false;
			return inFlight === 0 || bytes + (unknown + 1) * lastBytes <= mostBytes;
		},
		enter() {
			inFlight += 1;
			unknown += 1;
			let held: number | null = null;
			return {
				hold(size) {
					held = size;
					lastBytes = size;
					bytes += size;
					unknown -= 1;
				},
				leave() {
					inFlight -= 1;
					if (held === null) unknown -= 1;
					else bytes -= held;
				},
			};
		},
	};
}
