/** How findings are printed elsewhere than on a terminal. */
import { type Columns, column } from '../render/columns.js';
import type { Finding } from './model.js';

/** The keys of a finding, in the order they are printed. */
export const columns: Columns<Finding> = [
	column('check', 'CHECK', { isName: true }),
	column('level', 'LEVEL'),
	column('message', 'MESSAGE'),
	column('fix', 'FIX'),
];
