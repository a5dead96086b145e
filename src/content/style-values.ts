import { referencePattern } from '../api/variables.js';

/** `fixed`: a variable in `url(…)` stays as it is written. `style`: a value that would load is refused. */
export type StyleGuard = 'fixed' | 'style';

const marks =
	/"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?|((?:url|src|image|image-set|-webkit-image-set|cross-fade|-webkit-cross-fade|element|expression)?\()|\)|@import\b|[;{}]/gi;

export function styleGuards(css: string): [offset: number, guard: StyleGuard][] {
	const ranges = loadingRanges(css);
	let next = 0;
	return Array.from(css.matchAll(referencePattern()), ({ index }) => {
		while ((ranges[next]?.end ?? Number.POSITIVE_INFINITY) <= index) next += 1;
		const isFixed = (ranges[next]?.start ?? Number.POSITIVE_INFINITY) <= index;
		return [index, isFixed ? 'fixed' : 'style'];
	});
}

/** Any other attribute (`fill`, `mask`) may contain CSS that loads. */
export function mayLoad(value: string): boolean {
	return /url\s*\(/i.test(value);
}

/** Refuses functions except for colours and numbers, imports, and escapes that could spell one. */
export function loadsNothing(value: string): boolean {
	if (!/[(\\@]/.test(value)) return true;
	if (/[\\@]/.test(value)) return false;
	const calls = value.match(/(?<![\w-])[\w-]*\(/g) ?? [];
	return calls.every((call) => /^(rgba?|hsla?|calc|min|max|clamp)\($/i.test(call));
}

interface Range {
	start: number;
	end: number;
}

function loadingRanges(css: string): Range[] {
	const ranges: Range[] = [];
	let start: number | null = null;
	let depth = 0;
	let isImport = false;
	for (const { 0: mark, 1: bracket, index } of css.matchAll(marks)) {
		if (start === null) {
			isImport = mark.toLowerCase() === '@import';
			if (isImport || (bracket?.length ?? 0) > 1) {
				start = index;
				depth = 1;
			}
		} else if (bracket !== undefined) depth += 1;
		else if (mark === ')' && !isImport) depth -= 1;
		if (start === null || !(isImport ? ';{}'.includes(mark) : depth === 0)) continue;
		ranges.push({ start, end: index + 1 });
		start = null;
	}
	if (start !== null) ranges.push({ start, end: css.length });
	return ranges;
}
