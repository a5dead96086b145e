/** How findings are printed elsewhere than on a terminal. */
import { type Columns, column } from '../render/columns.js';
import type { Finding } from './model.js';

/** The keys of a finding, in the order they are printed. */
export const columns: Columns<Finding> = [
	column('check', 'CHECK', { isName: true }),
	column('level', 'LEVEL'),
	column('message', 'MESSAGE'),
	column('fix', 'FIX', { value: ({ fix }) => (fix === null ? null : oneLine(fix)) }),
];

/** The steps of a fix one after the other, as those of a hint stand: the sentence, then what to call. */
function oneLine(fix: string): string {
	return fix.replaceAll(':\n', ': ').replaceAll('\n', '; ');
}
