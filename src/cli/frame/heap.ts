/**
 * Percent of the live heap after a collection, until the next full one. V8 alone lets a heap grow to four times its
 * size: where each mail brings its own content, that would be mostly entries dropped by the caches.
 */
const oldGrowingPercent = 50;

/** Bytes; V8 alone doubles it up to 32 MiB in a process that runs for minutes. 8 MiB let more objects grow old. */
const youngBytes = 16 * 1024 * 1024;

export async function limitOldGeneration(): Promise<void> {
	const { setFlagsFromString } = await import('node:v8');
	setFlagsFromString(`--heap-growing-percent=${oldGrowingPercent}`);
}

export async function limitYoungGeneration(): Promise<void> {
	const { getHeapSpaceStatistics, setFlagsFromString } = await import('node:v8');
	const { PerformanceObserver } = await import('node:perf_hooks');
	const collections = new PerformanceObserver(() => {
		const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
		if (young === undefined || young.space_size < youngBytes) return;
		setFlagsFromString('--semi-space-growth-factor=1');
		collections.disconnect();
	});
	collections.observe({ entryTypes: ['gc'] });
}
