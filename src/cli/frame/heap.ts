/**
 * How far the heap may grow between full collections, in percent of the live heap. V8 lets it grow to four times its
 * size by default. If every mail differs, most of the growth would be entries that caches have dropped.
 */
const oldGrowingPercent = 50;

/** Bytes. V8 grows the young generation to 32 MiB within minutes by default. With 8 MiB, more objects become old. */
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
