/** The names of a run's records: nothing else is ever deleted, and leftovers show their age. */
import { type Clock, formatDateTime } from '../../api/datetime.js';
import type { Kind } from './model.js';

export interface RunNames {
	/** `20261121T081237-3fa9c2`: when it began, and six hexadecimal digits. */
	id: string;
	list: string;
	variable: string;
	url: string;
	/** Of a reserved domain (RFC 2606), for subscribers that get no mail. */
	email(number: number): string;
}

/** `random` gives six hexadecimal digits. */
export function nameRun(clock: Clock, random: () => string): RunNames {
	const time = formatDateTime(clock.now()).slice(0, 19).replaceAll(/[-:]/g, '');
	const id = `${time}-${random()}`;
	return {
		id,
		list: `mailctl-smoke-${id}`,
		variable: `mailctl_smoke_${id.replace('-', '_').toLowerCase()}`,
		url: `https://mailctl-smoke.invalid/mailctl-smoke-${id}`,
		email: (number) => `smoke-${number}.${id.toLowerCase()}@example.com`,
	};
}

export interface KindOfThing {
	kind: Kind;
	/** The path of its collection. */
	collection: string;
	/** The key that holds the run's name. */
	key: string;
}

export const kinds: readonly KindOfThing[] = [
	{ kind: 'list', collection: '/sub/lists/', key: 'name' },
	{ kind: 'field', collection: '/sub/fields/', key: 'variable' },
	{ kind: 'webhook', collection: '/webhooks/', key: 'url' },
];

/** The whole name, not its beginning: a list called `mailctl-smoke-tests` belongs to the user. */
const patterns: Readonly<Record<Kind, RegExp>> = {
	list: /^mailctl-smoke-(\d{8}T\d{6}-[0-9a-f]{6})(?:-(?:patched|replaced|refused|subscribers))?$/,
	field: /^mailctl_smoke_(\d{8}t\d{6}_[0-9a-f]{6})(?:_(?:patched|replaced|refused|meta))?$/,
	webhook:
		/^https:\/\/mailctl-smoke\.invalid\/mailctl-smoke-(\d{8}T\d{6}-[0-9a-f]{6})(?:-(?:patched|replaced|refused))?$/,
};

/** Whether a run made it: the run of that id, or any when null. */
export function isOfRun(kind: Kind, name: unknown, run: string | null): boolean {
	const found = typeof name === 'string' ? patterns[kind].exec(name)?.[1] : undefined;
	if (found === undefined) return false;
	return run === null || found.toLowerCase().replace('_', '-') === run.toLowerCase();
}
