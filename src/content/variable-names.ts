/** How a `#name#` variable is written, and which ones a text uses. */
import type { Content } from '../api/content.js';

/** A fresh matcher each time: a shared one with the g flag would carry `lastIndex` from one text to the next. */
export function variablePattern(): RegExp {
	return /#([A-Za-z_][A-Za-z0-9_]{0,63})#/g;
}

/** Names of the variables of a text, with repetitions, in order. */
export function variablesIn(text: string): string[] {
	return Array.from(text.matchAll(variablePattern()), (match) => match[1] ?? '');
}

/** Names of the variables of subject, text and html, each once, in order of appearance. */
export function usedVariables(content: Pick<Content, 'subject' | 'text' | 'html'>): string[] {
	const texts = [content.subject, content.text ?? '', content.html ?? ''];
	return [...new Set(texts.flatMap(variablesIn))];
}
