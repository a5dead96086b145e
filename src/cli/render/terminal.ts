/** The abilities of a terminal, from its environment. */

/** True where block characters may be drawn: a UTF-8 locale and a terminal that is more than a teletype. */
export function hasUnicode(env: Readonly<Record<string, string | undefined>>): boolean {
	const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '';
	const term = env['TERM'] ?? '';
	return /utf-?8/i.test(locale) && term !== 'dumb' && term !== 'linux';
}
