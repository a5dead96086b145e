/**
 * Texts that differ only by case fold to the same, and a part of a text to a part of its folding, so `includes`
 * works. Lower case alone does neither (final sigma).
 */
export function foldCase(text: string): string {
	if (isAscii(text)) return text.toLowerCase();
	return Array.from(text.toLowerCase().toUpperCase(), (character) => character.toLowerCase()).join('');
}

export function foldedColumn(email: string, key: string): string | null {
	const folded = foldCase(email);
	return folded === key ? null : folded;
}

function isAscii(text: string): boolean {
	for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 127) return false;
	return true;
}
