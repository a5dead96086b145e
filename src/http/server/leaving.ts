/** Whether the client of a request has left, for who asks; a signal, which costs microseconds, only for who wants one. */

export interface Leaving {
	hasLeft(): boolean;
	/** Called once, at once when it has happened already. */
	onLeave(listener: () => void): void;
	/** The same one each time. */
	signal(): AbortSignal;
	/** It happens now. */
	leave(): void;
}

/**
 * For one request, which its connection tells to `leave`. Listeners are called in the order they came, then the signal.
 */
export function createLeaving(): Leaving {
	let hasLeft = false;
	let controller: AbortController | null = null;
	const listeners: (() => void)[] = [];
	return {
		hasLeft: () => hasLeft,
		onLeave: (listener) => {
			if (hasLeft) listener();
			else listeners.push(listener);
		},
		signal: () => {
			controller ??= new AbortController();
			if (hasLeft) controller.abort();
			return controller.signal;
		},
		leave: () => {
			if (hasLeft) return;
			hasLeft = true;
			for (const listener of listeners.splice(0)) listener();
			controller?.abort();
		},
	};
}
