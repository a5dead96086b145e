/** `--markdown-file`: the bodies of a mail from one Markdown file. The library is loaded for it alone. */

import type { FileSource } from '../frame/command.js';
import { UsageError } from '../frame/errors.js';

/** Both bodies; `subject` is the text of the first heading of level 1, null where there is none. */
export interface MarkdownParts {
	subject: string | null;
	text_body: string;
	html_body: string;
}

/** null: none is given. Throws `UsageError` for a file without a visible word. */
export async function readMarkdown(file: FileSource | undefined): Promise<MarkdownParts | null> {
	if (file === undefined) return null;
	const { markdownBodies } = await import('../../content/markdown.js');
	const { heading, html, text } = markdownBodies(await file.text());
	if (text === '') throw new UsageError(`--markdown-file: ${file.name} says nothing`);
	return { subject: heading, text_body: text, html_body: html };
}
