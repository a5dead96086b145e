/** A pause that ends early, with the signal's reason, when the call is given up. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
	signal?.throwIfAborted();
	return new Promise((resolve, reject) => {
		const onAbort = () => {
			clearTimeout(timer);
			reject(signal?.reason);
		};
		const timer = setTimeout(() => {
			signal?.removeEventListener('abort', onAbort);
			resolve();
		}, ms);
		signal?.addEventListener('abort', onAbort, { once: true });
	});
}
