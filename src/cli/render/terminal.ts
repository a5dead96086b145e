/** The abilities of a terminal. */
import type { OutStream } from '../frame/io.js';

type Env = Readonly<Record<string, string | undefined>>;

/** True where block characters may be drawn: a UTF-8 locale and a terminal that is more than a teletype. */
export function hasUnicode(env: Env): boolean {
	const term = env['TERM'] ?? '';
	return /utf-?8/i.test(localeOf(env)) && term !== 'dumb' && term !== 'linux';
}

/** True where a locale is set that is not of UTF-8 (`LANG=C`); many machines set none and have UTF-8. */
export function namesOtherEncoding(env: Env): boolean {
	const locale = localeOf(env);
	return locale !== '' && !/utf-?8/i.test(locale);
}

function localeOf(env: Env): string {
	return env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '';
}

/** Its rows; 0 where they are unknown. */
export function rowsOf({ raw }: Pick<OutStream, 'raw'>): number {
	return 'rows' in raw && typeof raw.rows === 'number' ? raw.rows : 0;
}
