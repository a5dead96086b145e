import { Parser } from 'htmlparser2';

/** HTML in mails stays far below this depth. Deeper HTML would overflow the stack of recursive readers. */
export const maxNesting = 400;

export const tooDeep = `the HTML is nested deeper than ${maxNesting} elements`;

/** Stops at the limit, so the time is linear. The next `<li>` closes an open one, so a long list is not deep. */
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
