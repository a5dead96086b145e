/** The links of an HTML text as their author wrote them, for people who read about clicks. */
import { findLinks } from './links.js';

/** By position: entities decoded, variables as `#name#`. */
export function linkTexts(html: string): string[] {
	return findLinks(html).map(({ target }) =>
		target.map((piece) => (typeof piece === 'string' ? piece : `#${piece.reference}#`)).join(''),
	);
}
