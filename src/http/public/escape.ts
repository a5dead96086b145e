/** Text that stands in HTML. */

const entities: Readonly<Record<string, string>> = {
	'&': '&amp;',
	'<': '&lt;',
	'>': '&gt;',
	'"': '&quot;',
	"'": '&#39;',
};

/** Safe between tags and in quoted attributes; control characters but tabs and line ends are dropped. */
export function escapeHtml(text: string): string {
	return text
		.replace(/[^\P{Cc}\t\n]/gu, '')
		.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
