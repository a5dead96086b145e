/** Inputs in the form of the service document, with our own keys only for our own deployments. */
import { emailKey } from '../../api/address.js';
import { isRecord } from '../../api/json.js';

/** Values of a query. `undefined` is left out; a list repeats its name. */
export type QueryValues = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** With its `?`, or empty. Booleans as the document has them, `True` and `False`. */
export function encodeQuery(values: QueryValues): string {
	const query = new URLSearchParams();
	for (const [key, value] of Object.entries(values)) {
		if (value === undefined) continue;
		for (const one of typeof value === 'object' ? value : [value]) query.append(key, wireText(one));
	}
	const text = query.toString();
	return text === '' ? '' : `?${text}`;
}

function wireText(value: string | number | boolean): string {
	if (typeof value === 'boolean') return value ? 'True' : 'False';
	return String(value);
}

/** Defaults for missing values: some deployments keep what a PUT leaves out, but it must replace everything. */
export function withDefaults(defaults: Readonly<Record<string, unknown>>, input: unknown): unknown {
	if (!isRecord(input)) return input;
	const given = Object.entries(input).filter(([, value]) => value !== undefined);
	return { ...defaults, ...Object.fromEntries(given) };
}

/** `meta` as a string that holds JSON (service document, "Subscriber"; api-decisions 13). */
export function encodeSubscriber(input: unknown): unknown {
	if (!isRecord(input) || typeof input['meta'] !== 'object' || input['meta'] === null) return input;
	return { ...input, meta: JSON.stringify(input['meta']) };
}

/** Keys that only our own deployments support (api-decisions 28). */
const ownSendKeys: ReadonlySet<string> = new Set(['list_id', 'campaign_unique_id', 'attachments']);

/** Each recipient once, in order; our own keys only where they are supported. */
export function encodeSend(request: unknown, { isOurs }: { isOurs: boolean }): unknown {
	if (!isRecord(request)) return request;
	const known = isOurs ? request : withoutKeys(request, ownSendKeys);
	return Array.isArray(known['to']) ? { ...known, to: distinct(known['to']) } : known;
}

function withoutKeys(record: Record<string, unknown>, keys: ReadonlySet<string>): Record<string, unknown> {
	return Object.fromEntries(Object.entries(record).filter(([key]) => !keys.has(key)));
}

function distinct(addresses: readonly unknown[]): unknown[] {
	const seen = new Set<unknown>();
	return addresses.filter((one) => {
		const key = typeof one === 'string' ? emailKey(one.trim()) : one;
		return !seen.has(key) && seen.add(key);
	});
}
