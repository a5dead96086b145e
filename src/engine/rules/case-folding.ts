/**
 * Two texts that differ by case only have the same folding, and a part of a text folds to a part of its folding: so
 * `includes` works on folded texts. Lower case alone does neither (a final sigma differs by its place).
 */
export function foldCase(text: string): string {
	if (isAscii(text)) return text.toLowerCase();
	return Array.from(text.toLowerCase().toUpperCase(), (character) => character.toLowerCase()).join('');
}

/** The searchable form stored beside a key: `null` where the folding equals the key, as in nearly all cases. */
export function foldedColumn(email: string, key: string): string | null {
	const folded = foldCase(email);
	return folded === key ? null : folded;
}

function isAscii(text: string): boolean {
	for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 127) return false;
	return true;
}
