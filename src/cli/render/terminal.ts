/** The abilities of a terminal. */
import type { OutStream } from '../frame/io.js';

type Env = Readonly<Record<string, string | undefined>>;

/** True where block characters may be drawn: a UTF-8 locale and a terminal that is more than a teletype. */
export function hasUnicode(env: Env): boolean {
	const term = env['TERM'] ?? '';
	const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '';
	return /utf-?8/i.test(locale) && term !== 'dumb' && term !== 'linux';
}

/** Its rows; 0 where they are unknown. */
export function rowsOf({ raw }: Pick<OutStream, 'raw'>): number {
	return 'rows' in raw && typeof raw.rows === 'number' ? raw.rows : 0;
}
