/** The words of a report that came as HTML only, for reading codes and addresses; not for showing. */
import type { Line } from './fields.js';

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', nbsp: ' ' };

/** Tags, styles and comments out, a line break at each block; line numbers are those of the source. */
export function visibleText(lines: readonly Line[]): Line[] {
	let hidden = false;
	return lines.flatMap(({ text, number }) => {
		const shown: string[] = [];
		for (const piece of text.split(/(<[^<>]{0,1000}>)/)) {
			if (/^<(?:style|script)\b/i.test(piece)) hidden = true;
			else if (/^<\/(?:style|script)\b/i.test(piece)) hidden = false;
			else if (/^<\/?(?:p|div|br|tr|td|li|h\d|table)\b/i.test(piece)) shown.push('\n');
			else if (!hidden && !/^<[a-z/!]/i.test(piece)) shown.push(piece);
		}
		return decoded(shown.join(''))
			.split('\n')
			.map((line) => ({ text: line, number }));
	});
}

function decoded(text: string): string {
	return text.replace(/&(lt|gt|amp|quot|nbsp|#\d{1,6});/gi, (whole, name: string) => {
		if (name.startsWith('#')) return String.fromCodePoint(Math.min(Number(name.slice(1)), 0xffff));
		return entities[name.toLowerCase()] ?? whole;
	});
}
