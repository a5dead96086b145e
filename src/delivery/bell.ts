/** How the loop of a run waits: for something to change, or for a time that may end early. */

export interface Bell {
	/** The next change, whatever it is. */
	change(): Promise<void>;
	changed(): void;
	/** So long, or until `wake`. */
	sleep(ms: number): Promise<void>;
	/** Ends a sleep early; what it waited for is looked at again. */
	wake(): void;
}

/** For one loop: of several that wait for a `change`, only the last is told. `sleep` resolves early at its signal. */
export function createBell(options: {
	sleep: (ms: number, signal: AbortSignal) => Promise<void>;
	isAborted: () => boolean;
}): Bell {
	let nap = new AbortController();
	let notify: (() => void) | null = null;
	const changed = () => {
		const waiting = notify;
		notify = null;
		waiting?.();
	};
	return {
		change: () =>
			new Promise((resolve) => {
				notify = resolve;
			}),
		changed,
		async sleep(ms) {
			nap = new AbortController();
			if (!options.isAborted()) await options.sleep(ms, nap.signal);
		},
		wake() {
			nap.abort();
			changed();
		},
	};
}
