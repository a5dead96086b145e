/** How many messages may be under way: by connections, by what a crash may repeat, and by their bytes. */

export interface Room {
	/** Begun and not ended. */
	readonly inFlight: number;
	/** One more may begin; `unsettled` are outcomes not recorded yet. */
	isFree(unsettled: number): boolean;
	/** One begins. */
	enter(): Place;
}

export interface Place {
	/** Its size, once it is known. */
	hold(bytes: number): void;
	leave(): void;
}

/** What a crash may repeat, besides a body a connection: sent, but not recorded. */
const mostUnsettled = 100;
/** Composed and not answered. A message larger than that goes alone. */
const mostBytes = 16 * 1024 * 1024;
/**
 * On a connection with PIPELINING one message is being answered, the envelope of the next has left with its body, and a
 * third is ready for the moment of the answer.
 */
const perConnection = 3;

/** For one run. Until the first size is known one message goes alone. Whoever enters leaves, whatever comes of it. */
export function createRoom(connections: number): Room {
	let inFlight = 0;
	let unknown = 0;
	let bytes = 0;
	/** What the next will have, too: neighbours in the queue are mostly of one mailing. Before the first, no idea. */
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
