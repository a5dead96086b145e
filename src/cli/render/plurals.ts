/** Counts in sentences. Pure. */
import { clean } from './clean.js';

/** A whole number with its thousands parted: `10,000`. The first `toLocaleString` of a process costs 9 ms. */
export function numberText(count: number): string {
	let text = String(count);
	const first = count < 0 ? 1 : 0;
	for (let at = text.length - 3; at > first; at -= 3) text = `${text.slice(0, at)},${text.slice(at)}`;
	return text;
}

/** A share of hundred, as every report shows it: `12.50 %`. */
export function shareText(percent: number): string {
	return `${percent.toFixed(2)} %`;
}

/** As a service gives it. */
export function shareOf(value: unknown): string {
	const share = Number(value);
	return Number.isFinite(share) ? shareText(share) : `${clean(String(value))} %`;
}

/** `1 row`, `10,000 rows`; a word whose plural is no `s` names it. */
export function counted(count: number, word: string, plural = `${word}s`): string {
	return `${numberText(count)} ${count === 1 ? word : plural}`;
}
