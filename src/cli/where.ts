/** `--where meta.city=Oslo`: conditions on what a service cannot filter by. */
import type { Subscriber } from '../api/records.js';
import { UsageError } from './errors.js';

/** All conditions must hold; values are compared as text. `null`: there are none. */
export function parseWhere(conditions: readonly string[]): ((subscriber: Subscriber) => boolean) | null {
	if (conditions.length === 0) return null;
	const parsed = conditions.map(parseCondition);
	return (subscriber) => parsed.every(({ key, value }) => metaText(subscriber, key) === value);
}

function parseCondition(text: string): { key: string; value: string } {
	const [, key, value] = /^meta\.([A-Za-z_]\w{0,63})=(.*)$/s.exec(text) ?? [];
	if (key === undefined || value === undefined) {
		throw new UsageError(`--where "${text}" is no condition`, { hint: "--where 'meta.VARIABLE=VALUE'" });
	}
	return { key, value };
}

function metaText({ meta }: Subscriber, key: string): string | null {
	if (!Object.hasOwn(meta, key)) return null;
	const value = meta[key];
	return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}
