/** Commands as hints say them: with the target this call was given, so that what is pasted works on the same one. */
import type { CommandContext } from './context.js';

/** `mailctl --db news.db WORDS` when this call named a database, else `mailctl WORDS`. */
export function commandLine(cx: Pick<CommandContext, 'globals'>, words: string): string {
	const { db, profile } = cx.globals;
	const target =
		db !== undefined ? `--db ${quoted(db)} ` : profile !== undefined ? `-p ${quoted(profile)} ` : '';
	return `mailctl ${target}${words}`;
}

function quoted(text: string): string {
	return /^[\w@.,:/+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
