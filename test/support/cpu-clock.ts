/** Measures the CPU time of work, which does not depend on the load of the machine. */

export function startCpuClock(): () => number {
	const start = process.cpuUsage();
	return () => process.cpuUsage(start).user / 1_000;
}
