/** What the name of a database says before it is opened. */

import { existsSync } from 'node:fs';
import { canParseUrl } from '../api/schema/url.js';

/** A server's: it has no file, and works beside this process. */
export function isPostgres(url: string): boolean {
	return /^postgres(ql)?:\/\//i.test(url);
}

/** For people: never the password of a server. */
export function shownDatabase(url: string): string {
	if (!isPostgres(url) || !canParseUrl(url)) return isPostgres(url) ? 'postgres://…' : url;
	const shown = new URL(url);
	shown.password = '';
	// As PostgreSQL takes it too.
	shown.searchParams.delete('password');
	return shown.href;
}

/** Whether it would be a new file. What a server has is known when it is opened. */
export function isMissingFile(url: string): boolean {
	return !isPostgres(url) && !existsSync(url);
}
