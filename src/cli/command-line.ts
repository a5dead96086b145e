/** Commands as hints say them: with the target this call was given, so that what is pasted works on the same one. */
import type { CommandContext } from './context.js';

/** `mailctl --db news.db WORDS` when this call named a database or a deployment, else `mailctl WORDS`. */
export function commandLine(cx: Pick<CommandContext, 'globals'>, words: string): string {
	const { db, profile, baseUrl } = cx.globals;
	const named = Object.entries({ '--db': db, '--base-url': baseUrl, '-p': profile }).flatMap(
		([flag, value]) => (value === undefined ? [] : [`${flag} ${quoted(value)} `]),
	);
	return `mailctl ${named.join('')}${words}`;
}

function quoted(text: string): string {
	return /^[\w@.,:/+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
