import type { Content } from '../../api/messages.js';
import type { ContentFinding } from '../../content/lint.js';
import type { FileSource } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { counted, numberText, sizeText } from '../render/units.js';

export async function warnOfFindings(
	cx: CommandContext,
	content: Pick<Content, 'subject' | 'text' | 'html' | 'attachments'>,
	{ of, ...how }: { bulk: boolean; isTemplate?: boolean; of?: string },
): Promise<void> {
	const { contentFindings } = await import('../../content/lint.js');
	for (const finding of contentFindings(content, how)) {
		const [what, hint] = sayFinding(finding);
		const text = of === undefined ? what : `${of}: ${what}`;
		await (hint === undefined ? cx.warn(text) : cx.warn(text, hint));
	}
}

function sayFinding({ kind, count, first }: ContentFinding): [text: string, hint?: string] {
	const place = first === null ? '' : `, first ${first.text} in line ${numberText(first.line)}`;
	const texts: Readonly<Record<typeof kind, [text: string, hint?: string]>> = {
		no_subject: ['the subject is empty'],
		long_subject: [`the subject has ${counted(count, 'character')}: mail programs show about 60`],
		clipped: [`the HTML has ${sizeText(count)}: Gmail shows the first 102 KiB of a mail`],
		no_alt: [
			`${counted(count, 'image')} without alternative text${place}`,
			'describe each image in its alt text; write alt="" for decoration',
		],
		no_link: [`${counted(count, 'link')} that ${count === 1 ? 'leads' : 'lead'} nowhere${place}`],
		no_file: [
			`${counted(count, 'link')} to a file that is not attached (cid:)${place}`,
			'attach the file that each link names: --attach FILE',
		],
		no_unsubscribe: [
			'the body of this bulk mail has no unsubscribe link',
			'write #unsubscribe_url# where the link belongs',
		],
	};
	return texts[kind];
}

export async function readMarkdown(file: FileSource | undefined) {
	if (file === undefined) return null;
	const { markdownBodies } = await import('../../content/markdown.js');
	const { heading, html, text } = markdownBodies(await file.text());
	if (text === '') throw new UsageError(`--markdown-file: ${file.name} contains no text`);
	return { subject: heading, text_body: text, html_body: html };
}
