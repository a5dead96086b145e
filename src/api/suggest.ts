export function suggest(word: string, candidates: readonly string[]): string[] {
	const wanted = word.toLowerCase();
	const limit = Math.max(1, Math.floor(wanted.length * 0.4));
	return candidates
		.map((candidate) => ({ candidate, far: closeness(wanted, candidate.toLowerCase()) }))
		.filter(({ far }) => far <= limit)
		.sort((a, b) => a.far - b.far)
		.slice(0, 3)
		.map(({ candidate }) => candidate);
}

function closeness(a: string, b: string): number {
	if (a.length > 2 && b.startsWith(a)) return 0.5;
	if (a.length > 100 || b.length > 100) return a === b ? 0 : Number.POSITIVE_INFINITY;
	return distance(a, b);
}

/** Optimal string alignment: each insertion, deletion, substitution and swap of neighbours costs 1. */
function distance(a: string, b: string): number {
	let beforeLast: number[] = [];
	let last = Array.from({ length: b.length + 1 }, (_, index) => index);
	for (let i = 1; i <= a.length; i += 1) {
		const row = [i];
		for (let j = 1; j <= b.length; j += 1) {
			const cost = a[i - 1] === b[j - 1] ? 0 : 1;
			let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
			const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
			if (swapped) best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1);
			row.push(best);
		}
		beforeLast = last;
		last = row;
	}
	return last[b.length] ?? 0;
}
