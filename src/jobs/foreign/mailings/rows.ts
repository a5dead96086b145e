/**
 * One recipient of a mailing on a deployment that is not ours: checked, and with the variables a call has to say,
 * because such a deployment does not know the list a mailing is for (api-decisions 24). Pure.
 */
import { type EmailKey, parseAddress } from '../../../api/address.js';
import type { Recipient } from '../../../api/capabilities.js';
import type { Subscriber } from '../../../api/records.js';
import { hasLoneSurrogate } from '../../../api/schema/python.js';
import type { PersonItem, RejectedItem } from './entries.js';

/** What all recipients share, as far as a row is checked against it. */
export interface Wanted {
	/** The variables the content uses; null = a template of the service's, which does not tell. */
	used: readonly string[] | null;
	/** The mailing's own context. */
	shared: Readonly<Record<string, string>>;
	/** A used variable without a value refuses the row; of no effect where nobody knows what is used. */
	isStrict: boolean;
}

/** `key`: what it is compared by with the others. */
export type CheckedRow = { key: EmailKey; item: PersonItem } | { key: null; item: RejectedItem };

/** A row of a file. What nobody here knows (a name that is no column) is missing, though the service may know it. */
export function checkRecipient({ to, context = {}, line, refused }: Recipient, wanted: Wanted): CheckedRow {
	const place = line === undefined ? {} : { line };
	if (refused !== undefined) return rejected({ to, ...place, ...refused });
	if (to.trim() === '')
		return rejected({ to, ...place, code: 'blank', error: 'to: This field may not be blank.' });
	const address = parseAddress(to);
	if (address === null)
		return rejected({ to, ...place, code: 'invalid', error: 'to: Enter a valid email address.' });
	const bad = Object.entries(context).find(([, value]) => value.includes('\0') || hasLoneSurrogate(value));
	if (bad !== undefined) {
		const error = `context.${bad[0]}: Null characters and broken letters are not allowed.`;
		return rejected({ to, ...place, code: 'null_characters_not_allowed', error });
	}
	const entries = [...builtIn(address.address, wanted), ...Object.entries(context)];
	return stage(address, { entries, place }, wanted);
}

/** Somebody of a list: the mailing's context goes over what is known of him. */
export function checkSubscriber(
	{ email, name, meta }: Pick<Subscriber, 'email' | 'name' | 'meta'>,
	email_reason: string,
	wanted: Wanted,
): CheckedRow {
	const address = parseAddress(email);
	if (address === null)
		return rejected({ to: email, code: 'invalid', error: `${email}: Enter a valid email address.` });
	const known: [string, string][] = [
		...builtIn(address.address, wanted),
		['name', name],
		['email_reason', email_reason],
		...Object.entries(meta).flatMap(([key, value]): [string, string][] => {
			const text = metaText(value);
			return text === null ? [] : [[key, text]];
		}),
	];
	const entries = known.filter(([variable]) => !Object.hasOwn(wanted.shared, variable));
	return stage(address, { entries, place: {} }, wanted);
}

/** The whole context of a call: what a row says goes over what all share. */
export function contextOf(
	own: Readonly<Record<string, string>>,
	{ used, shared }: Wanted,
): Record<string, string> {
	const common = Object.entries(shared).filter(([name]) => used === null || used.includes(name));
	return Object.fromEntries([...common, ...Object.entries(own)]);
}

/** The used variables that nobody has a value for: neither the row nor what all share. */
export function missingVariables(
	own: Readonly<Record<string, string>>,
	{ used, shared }: Pick<Wanted, 'used' | 'shared'>,
): string[] {
	return (used ?? []).filter(
		(name) => !Object.hasOwn(own, name) && !Object.hasOwn(shared, name) && !madeThere.has(name),
	);
}

/** `#a#, #b#`, as people write them. */
export function sayVariables(names: readonly string[]): string {
	return names.map((name) => `#${name}#`).join(', ');
}

/** What any service knows is said only where it is asked for, and where nothing was given instead. */
function builtIn(address: string, { used, shared }: Wanted): [string, string][] {
	return used === null || Object.hasOwn(shared, 'email') ? [] : [['email', address]];
}

/** The service makes these; nobody else can. */
const madeThere: ReadonlySet<string> = new Set(['unsubscribe_url', 'view_url']);

function stage(
	{ address, key }: { address: string; key: EmailKey },
	{ entries, place }: { entries: readonly (readonly [string, string])[]; place: Pick<PersonItem, 'line'> },
	wanted: Wanted,
): CheckedRow {
	const { used, isStrict } = wanted;
	// What is not used is not said: it is nobody's business, and rows that say the same share a call.
	const context = Object.fromEntries(entries.filter(([name]) => used === null || used.includes(name)));
	const missing = isStrict ? missingVariables(context, wanted) : [];
	if (missing.length > 0) {
		const error = `${address}: no value for ${sayVariables(missing)}.`;
		return rejected({ to: address, ...place, code: 'missing_variable', error });
	}
	const isPlain = Object.keys(context).length === 0;
	return { key, item: { to: address, ...place, ...(!isPlain && { context }) } };
}

/** As our own engine shows it: null says nothing, an object its JSON. */
function metaText(value: unknown): string | null {
	if (value === null || value === undefined) return null;
	return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function rejected(item: RejectedItem): CheckedRow {
	return { key: null, item };
}
