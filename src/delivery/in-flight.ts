/** The in-flight window: how many messages may be under way, by connections, by what a crash may repeat, and by bytes. */
export interface InFlight {
	/** Messages begun and not ended. */
	readonly inFlight: number;
	/**
	 * Whether one more may begin; `unsettled` is the number of outcomes not recorded yet. `isTimed`: it must not leave
	 * later, so it is not one of many that wait.
	 */
	isFree(unsettled: number, isTimed?: boolean): boolean;
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
 * and a third is ready for the moment of the answer. More of them wait where the server answers quickly: a hundred in
 * place of fifteen send 1.3 times as many: with fifteen the thread that sends was idle for a sixth of the time.
 */
const perConnection = { least: 3, most: 20 };
/** What waits is answered within this time, at the rate at which the last ones were: a stop or a pause waits for it. */
const aheadMs = 20;

/**
 * For one run. Until the first size is known one message goes alone. Every message that enters also leaves, whatever
 * its outcome.
 */
export function createInFlight(connections: number, nowMs = () => performance.now()): InFlight {
	const [least, most] = [perConnection.least * connections, perConnection.most * connections];
	let room = least;
	/** Since the last look at the rate. */
	let left = 0;
	let since = nowMs();
	const look = () => {
		const now = nowMs();
		room = Math.min(most, Math.max(least, Math.floor((left * aheadMs) / Math.max(1, now - since))));
		left = 0;
		since = now;
	};
	let inFlight = 0;
	let unknown = 0;
	let bytes = 0;
	/** The estimate for the next message: neighbours in the queue are mostly of one campaign. Unknown before the first. */
	let lastBytes = mostBytes;
	return {
		get inFlight() {
			return inFlight;
		},
		isFree(unsettled, isTimed = false) {
			if (inFlight >= (isTimed ? least : room)) return false;
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
					left += 1;
					if (left >= least) look();
					if (held === null) unknown -= 1;
					else bytes -= held;
				},
			};
		},
	};
}
