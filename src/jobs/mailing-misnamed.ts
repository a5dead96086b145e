/** `#First Name#`: a column that is meant, written as no variable is. Pure. */
import { foldColumn, type MailingColumns } from './mailing-columns.js';

/** What stands between two `#` and means a column, without being a variable that the columns give. */
export interface Misnamed {
	/** As it stands in the text. */
	written: string;
	/** The column it means, as the header has it. */
	column: string;
	/** The variable that column gives; null: none. */
	variable: string | null;
}

/**
 * Each once, in order of appearance. Case, blanks and punctuation do not count, as they do not in a header. Written as a
 * variable is (`#City#` for `city`) it may still be one that somebody else gives: that is the caller's to know.
 */
export function misnamedVariables(
	texts: readonly string[],
	header: readonly string[],
	{ variables }: Pick<MailingColumns, 'variables'>,
): Misnamed[] {
	const columns = new Map(header.map((name, index) => [foldColumn(name), { name: plain(name), index }]));
	const given = new Set(variables.map(({ name }) => name));
	const found = new Map<string, Misnamed>();
	for (const written of texts.flatMap((text) => [...wordsIn(text, columns)])) {
		const column = columns.get(foldColumn(written));
		if (column === undefined || given.has(written)) continue;
		const variable = variables.find(({ index }) => index === column.index)?.name ?? null;
		found.set(written, { written, column: column.name, variable });
	}
	return [...found.values()];
}

/** As a text writes one that is replaced. */
export function isVariableName(name: string): boolean {
	return /^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(name);
}

/** A variable takes both of its `#`: what stands between two of them is no word. */
function* wordsIn(text: string, columns: ReadonlyMap<string, unknown>): Generator<string> {
	const pieces = text.split('#');
	// The last piece has no `#` behind it.
	for (let at = 1; at < pieces.length - 1; at += 1) {
		const word = pieces[at] ?? '';
		if (word.length > maxWord) continue;
		const folded = foldColumn(word);
		if (!isVariableName(word) && (folded === '' || !columns.has(folded))) continue;
		yield word;
		at += 1;
	}
}

/** Of a header's column in a text. */
const maxWord = 200;

function plain(name: string): string {
	return name.replace(/^\uFEFF/, '').trim();
}
