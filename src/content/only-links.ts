import { findLinks, linkTexts } from './links.js';

export function onlyLinks(html: string): string | null {
	const links = findLinks(html);
	if (links.length === 0) return null;
	const short = links
		.map(({ start, end }) => `<a href="${html.slice(start, end).replaceAll('"', '&quot;')}"></a>`)
		.join('');
	// A wrong target would be worse than a body that stays.
	return linkTexts(short).join('\n') === linkTexts(html).join('\n') ? short : html;
}
