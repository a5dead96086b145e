import type { RetentionForecast } from '../../store/maintenance.js';
import type { LocalEngine } from '../frame/connection.js';
import { counted } from '../render/units.js';

const names = ['keep_messages', 'keep_events', 'keep_bodies'];

/**
 * Returns the end of "This will …" for a confirmation. Null if the new settings delete no more than the current ones.
 */
export async function whatGoes(
	{ settings }: Pick<LocalEngine, 'settings'>,
	values: Readonly<Record<string, string | null>>,
): Promise<string | null> {
	if (!names.some((name) => (values[name] ?? null) !== null)) return null;
	const { before, after } = await settings.foresee(values);
	const isMore = (['messages', 'events', 'bodies'] as const).some((kind) => after[kind] > before[kind]);
	return isMore
		? `delete about ${sayOutdated(after)} for good: mailctl serve or mailctl worker deletes them within an hour`
		: null;
}

export function sayOutdated({ messages, events, bodies }: RetentionForecast): string {
	const parts = [
		...(messages > 0 ? [counted(messages, 'message')] : []),
		...(events > 0 ? [counted(events, 'event')] : []),
		...(bodies > 0 ? [counted(bodies, 'body', 'bodies')] : []),
	];
	return parts.length === 0 ? 'nothing' : new Intl.ListFormat('en-GB').format(parts);
}
