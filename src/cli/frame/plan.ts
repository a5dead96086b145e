export const operations = [
	...(['create', 'update', 'skip', 'delete', 'clear', 'activate', 'deactivate', 'erase', 'lift'] as const),
	...(['import', 'ingest', 'send', 'resume', 'cancel', 'retry', 'suppress', 'replay', 'rotate'] as const),
	...(['test', 'check', 'listen', 'serve', 'init', 'set', 'unset', 'revoke', 'pause', 'use'] as const),
	...([
		'apply',
		'wrap',
		'unwrap',
		'backup',
		'restore',
		'migrate',
		'export',
		'push',
		'pull',
		'request',
		'login',
		'logout',
	] as const),
] as const;
type Operation = (typeof operations)[number];

/**
 * The answer of a dry run: `{"create": {…}}`, `{"update": ID, "with": {…}}`, `{"delete": [ids]}`. The operation names
 * its object, `with` holds the values; further facts (counts, the finished message) stand beside.
 */
export type Foreseen = {
	readonly [O in Operation]: { readonly [K in O]: unknown } & {
		readonly with?: object;
		readonly [beside: string]: unknown;
	};
}[Operation];

/** Part of every dry run on a deployment: rules that reading does not show are left to the change itself. */
export const unchecked =
	'not checked: the settings and rules of this deployment that it does not tell; it may still refuse this';
