/** How long work takes where a machine has other things to do: measured by the processor's time, not by the clock. */

export function startCpuClock(): () => number {
	const start = process.cpuUsage();
	return () => process.cpuUsage(start).user / 1_000;
}
