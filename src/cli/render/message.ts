/** Templates filled in for looking at; what is sent goes through the same compiler. */
import type { Template } from '../../api/records.js';
import { compileContent } from '../../content/compile.js';

export interface RenderedTemplate {
	subject: string;
	text: string;
	html: string | null;
	/** Variables used that have no value. */
	missing: readonly string[];
}

/** CSS stays where it is: a person who edits a template looks for his own style sheet. */
export async function renderTemplate(
	{ name, text_body, html_body }: Pick<Template, 'name' | 'text_body' | 'html_body'>,
	variables: Readonly<Record<string, string>>,
): Promise<RenderedTemplate> {
	const content = {
		subject: name,
		text: text_body === '' ? null : text_body,
		html: html_body === '' ? null : html_body,
		disable_inline: true,
	};
	const compiled = await compileContent(content, async (html) => html);
	const missing = compiled.variables.filter((variable) => !Object.hasOwn(variables, variable));
	return { ...compiled.preview({ variables }), missing };
}
