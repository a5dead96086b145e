/** For a loop over many rows, awaited in each: other work of the thread has its turn every ten milliseconds. */
export function createTurns(): () => Promise<void> | undefined {
	let began = performance.now();
	return () =>
		performance.now() - began < 10
			? undefined
			: new Promise((resolve) =>
					setImmediate(() => {
						began = performance.now();
						resolve();
					}),
				);
}

export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
	return new Promise((resolve, reject) => {
		const stop = () => {
			clearTimeout(timer);
			reject(signal?.reason);
		};
		const timer = setTimeout(() => {
			signal?.removeEventListener('abort', stop);
			resolve();
		}, ms);
		if (signal?.aborted === true) stop();
		else signal?.addEventListener('abort', stop, { once: true });
	});
}
