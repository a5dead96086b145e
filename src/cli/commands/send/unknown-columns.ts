/** `send --csv`: columns that a message names by what is no variable of theirs. */

import { withoutDefaults } from '../../../api/variables.js';
import { isVariableName, type Misnamed, misnamedVariables } from '../../../jobs/campaign-columns.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { contentOf, isOpaque, missingVariables, openVariables, type Prepared } from './request.js';
import type { OpenTable } from './source.js';

/**
 * A column whose name is no variable's would show as `#First Name#` in every message. Throws `UsageError` naming each;
 * what only the service knows to say is not looked at.
 */
export async function assertNoUnknownColumns(
	cx: CommandContext,
	prepared: Prepared,
	{ header, columns }: Pick<OpenTable, 'header' | 'columns'>,
): Promise<void> {
	if (isOpaque(prepared)) return;
	const written = contentOf(prepared);
	// A default would hide the mistake in every message.
	const content = {
		...written,
		subject: withoutDefaults(written.subject),
		text: written.text && withoutDefaults(written.text),
		html: written.html && withoutDefaults(written.html),
	};
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
		hint: `${ruleOf(first)}: ${wayOut(first)}; --no-strict-vars leaves it as it is`,
	});
}

function sayMisnamed({ written, column, variable }: Misnamed): string {
	if (variable === null) return `#${written}#: the column "${column}" gives no variable`;
	return `#${written}#: the column "${column}" is #${variable}#`;
}

function ruleOf({ written, variable }: Misnamed): string {
	return written.toLowerCase() === variable?.toLowerCase()
		? 'upper and lower case count'
		: 'a variable is named with letters A to Z, digits and _';
}

function wayOut({ column, variable }: Misnamed): string {
	return variable === null ? `--map "${column}=x" and #x# in the message` : `write #${variable}#`;
}
