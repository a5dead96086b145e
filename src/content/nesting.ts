import { Parser } from 'htmlparser2';

/** Mail programs stay far below this. Deeper HTML would overflow the stack of recursive readers. */
export const maxNesting = 400;

export const tooDeep = `the HTML is nested deeper than ${maxNesting} elements`;

/** Takes linear time: the parser stops at the limit, and implies end tags like browsers (`<li>` after `<li>`). */
export function isTooDeep(html: string): boolean {
	let depth = 0;
	let isDeep = false;
	const parser = new Parser({
		onopentagname() {
			depth += 1;
			isDeep ||= depth > maxNesting;
			if (isDeep) parser.pause();
		},
		onclosetag() {
			depth -= 1;
		},
	});
	parser.write(html);
	return isDeep;
}
