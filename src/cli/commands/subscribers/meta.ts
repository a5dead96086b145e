import { isDeepStrictEqual } from 'node:util';
import type { SubscriberInput } from '../../../api/inputs.js';
import type { List, Meta, MetaValue, Subscriber } from '../../../api/records.js';
import type { JsonNumber } from '../../../api/schema/python.js';
import { texts } from '../../../api/schema/texts.js';
import type { ContentSource } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { shorten } from '../../render/width.js';

interface Change {
	patch: Partial<Omit<SubscriberInput, 'meta'>>;
	set: Meta;
	unset: readonly string[];
	replaceMeta: Meta | null;
}

/** Merges meta where it is stored, if the deployment can; elsewhere reads, changes, writes and compares. */
export async function change(
	cx: CommandContext,
	list: List,
	current: Subscriber,
	wanted: Change,
): Promise<Subscriber> {
	const api = await cx.api();
	const { patch, set, unset, replaceMeta } = wanted;
	const subscribers = api.subscribers(list.id);
	const call = { signal: cx.signal };
	const meta = metaAfter(current, wanted);
	if (meta === null) return subscribers.patch(current.id, patch, call);
	if (replaceMeta !== null) return subscribers.patch(current.id, { ...patch, meta }, call);
	const { ext } = await api.capabilities();
	if (ext.subscribers !== undefined)
		return ext.subscribers.merge(list.id, current.id, { patch, set, unset }, call);
	const changed = await subscribers.patch(current.id, { ...patch, meta }, call);
	const after = await subscribers.get(current.id, call);
	if (isDeepStrictEqual(after.meta, changed.meta)) return after;
	const text = `the meta of ${current.email} was changed by another call at the same time; look at it and try again`;
	throw new CliError('conflict', exits.refused, text, { retryable: true });
}

export function metaAfter(current: Subscriber, { set, unset, replaceMeta }: Change): Meta | null {
	if (replaceMeta !== null) return { ...replaceMeta, ...set };
	if (Object.keys(set).length === 0 && unset.length === 0) return null;
	const kept = Object.entries(current.meta).filter(([key]) => !unset.includes(key));
	return { ...Object.fromEntries(kept), ...set } as Meta;
}

export async function readMeta(options: {
	meta: Readonly<Record<string, string>>;
	metaJson?: ContentSource | undefined;
}): Promise<Meta | null> {
	if (options.metaJson === undefined)
		return Object.keys(options.meta).length === 0 ? null : { ...options.meta };
	const { isRecord, parseJson, withoutExactNumbers } = await import('../../../api/json.js');
	const parsed = parseJson(await options.metaJson.text(), { numbers: 'exact' });
	const value = parsed.kind === 'valid' ? withoutExactNumbers(parsed.value, numberOf) : null;
	if (!isRecord(value)) throw new UsageError('--meta-json is not a JSON object');
	return { ...(value as Record<string, MetaValue>), ...options.meta };
}

/** A number is sent as a double, and must not lose digits. */
function numberOf(number: JsonNumber): number {
	const value = number.toNumber();
	if (value !== null) return value;
	throw new UsageError(`--meta-json: ${shorten(number.text, 60)}: ${texts.digits}`);
}

export function assertMeta({ unsetMeta, metaJson, meta, replace }: MetaOptions): void {
	if (unsetMeta.length > 0 && (metaJson !== undefined || replace))
		throw new UsageError('--meta-json and --replace replace all variables: leave --unset-meta out');
	const both = unsetMeta.find((key) => Object.hasOwn(meta, key));
	if (both !== undefined) throw new UsageError(`--meta and --unset-meta both name "${both}"`);
}

interface MetaOptions {
	meta: Readonly<Record<string, string>>;
	unsetMeta: readonly string[];
	metaJson?: ContentSource | undefined;
	replace: boolean;
}
