/** What a bench gives the runner. */
export interface BenchRow {
	what: string;
	/** The program or library that marks the limit; what is missing for it when the row was skipped. */
	limit: string;
	limitMedian: string;
	oursMedian: string;
	/** Ours to the limit; null when skipped. */
	ratio: number | null;
	/** As the performance goals state it. */
	goal: string;
}

export interface Bench {
	subject: string;
	run(): Promise<BenchRow[]>;
}

/** The row of the smallest program of the same design (`least-*`), beside that of ours. */
export function leastOf(what: string): string {
	return `the same ${what}, of a program without checks`;
}

export function median(values: readonly number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
