/**
 * The heap may grow by this percentage between full collections. V8's default lets the heap grow fourfold. If every
 * mail differs, dropped cache entries would fill most of such a heap.
 */
const oldGrowingPercent = 50;

/** Without a limit, the young generation grows to 32 MiB. With 8 MiB, V8 promotes more objects. */
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
