/** Which variables of a content have no value from anywhere. */

import type { Content } from '../../../api/content.js';
import { builtInVariables } from '../../../api/fields.js';
import { usedVariables } from '../../../content/variable-names.js';
import { isVariableName, type Misnamed, misnamedVariables } from '../../../jobs/mailing-misnamed.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { walk } from '../../walk.js';
import { contentOf, isOpaque, type Prepared } from './request.js';
import type { OpenTable } from './source.js';

/** Neither in the context, nor built in, nor a field of subscribers. */
export async function missingVariables(
	cx: CommandContext,
	content: Content,
	context: Readonly<Record<string, string>>,
): Promise<string[]> {
	const open = openVariables(content, context);
	if (open.length === 0) return [];
	const api = await cx.api();
	const fields = new Set<string>();
	for await (const { variable } of walk(api.fields, {}, { signal: cx.signal })) fields.add(variable);
	return open.filter((name) => !fields.has(name));
}

/** Neither in the context nor built in. */
export function openVariables(
	content: Pick<Content, 'subject' | 'text' | 'html'>,
	context: Readonly<Record<string, string>>,
): string[] {
	return usedVariables(content).filter(
		(name) => !Object.hasOwn(context, name) && !builtInVariables.some((builtIn) => builtIn === name),
	);
}

/**
 * A column whose name is no variable's would show as `#First Name#` in every message. Throws `UsageError` naming each;
 * what only the service knows to say is not looked at.
 */
export async function assertNamed(
	cx: CommandContext,
	prepared: Prepared,
	{ header, columns }: Pick<OpenTable, 'header' | 'columns'>,
): Promise<void> {
	if (isOpaque(prepared)) return;
	const content = contentOf(prepared);
	const texts = [content.subject, content.text ?? '', content.html ?? ''];
	const misnamed = misnamedVariables(texts, header, columns);
	if (misnamed.length === 0) return;
	const context = prepared.request.context ?? {};
	const open = openVariables(content, context);
	const missing = await missingVariables(cx, content, context);
	// With a table its columns are what counts: a field stands for one only where that was to be left out.
	const refused = misnamed.filter(
		({ written, variable }) =>
			!isVariableName(written) || (variable === null ? missing : open).includes(written),
	);
	const [first] = refused;
	if (first === undefined) return;
	throw new UsageError('the message names columns by what is no variable of theirs; nothing was sent', {
		details: refused.map(sayMisnamed),
		hint: `a variable is named with letters A to Z, digits and _: ${wayOut(first)}; --no-strict-vars leaves it as it is`,
	});
}

function sayMisnamed({ written, column, variable }: Misnamed): string {
	if (variable === null) return `#${written}#: the column "${column}" gives no variable`;
	return `#${written}#: the column "${column}" is #${variable}#`;
}

function wayOut({ column, variable }: Misnamed): string {
	return variable === null ? `--map "${column}=x" and #x# in the message` : `write #${variable}#`;
}
