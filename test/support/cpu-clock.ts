/** How long work takes where a machine has other things to do: measured by the processor's time, not by the clock. */

/** Starts; each call gives the milliseconds of this process's own CPU since. */
export function startCpuClock(): () => number {
	const start = process.cpuUsage();
	return () => process.cpuUsage(start).user / 1_000;
}
