/**
 * The answer of a dry run: `{"create": {…}}`, `{"update": ID, "with": {…}}`, `{"delete": [ids]}`. The operation names
 * its object, `with` holds the values; further facts (counts, the finished message) stand beside.
 */
export type Foreseen = Readonly<Record<string, unknown>>;

export const unchecked =
	'not checked: the settings and rules of this deployment that it does not tell; it may still refuse this';
