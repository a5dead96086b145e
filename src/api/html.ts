const entities: Readonly<Record<string, string>> = {
	'&': '&amp;',
	'<': '&lt;',
	'>': '&gt;',
	'"': '&quot;',
	"'": '&#39;',
};

/** Safe in text, in quoted attributes, in comments and in style elements. */
export function escapeHtml(text: string): string {
	if (!/[&<>"']/.test(text)) return text;
	return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
