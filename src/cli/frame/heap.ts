/**
 * How far the heap may grow between full collections, in percent of the live heap. V8 would let it grow to four times
 * that size. If every mail differs, such a heap would consist mostly of entries that caches have dropped.
 */
const oldGrowingPercent = 50;

/** Bytes. V8 would let the young generation grow to 32 MiB within minutes. 8 MiB would promote more objects. */
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
