/** Whom a service made no message to, and why: an answer only lists those it made one to. */
import { emailKey } from '../../../api/address.js';
import { ApiError } from '../../../api/errors.js';
import type { SendResult } from '../../../api/records.js';
import type { CommandContext } from '../../context.js';
import { shown } from '../../render/counted.js';
import { shellWord } from '../../shell-word.js';

/** So many are named. */
const mostNamed = 10;

/** A note for each of the first, and where to look. `to`: addresses as they were given. */
export async function sayWhoGetsNone(
	cx: CommandContext,
	to: readonly string[],
	{ messages }: SendResult,
): Promise<void> {
	if (cx.quiet) return;
	const made = new Set(messages.map((message) => emailKey(message.to)));
	const left = [...new Set(to.map(emailKey))].filter((key) => !made.has(key));
	const [first] = left;
	if (first === undefined) return;
	const named = left.slice(0, mostNamed);
	const reasons = await Promise.all(named.map((key) => reasonsOf(cx, key)));
	for (const [index, key] of named.entries())
		await cx.note(`no message was made to ${key}: ${sayWhy(reasons[index] ?? null)}`);
	if (left.length > named.length) await cx.note(`and to ${shown(left.length - named.length)} more`);
	const hint = hintOf(reasons[0] ?? null, left.length === 1 ? shellWord(first) : 'ADDRESS');
	if (hint !== null) await cx.hint(hint);
}

/** null: the service does not tell. */
async function reasonsOf(cx: CommandContext, key: string): Promise<readonly string[] | null> {
	const api = await cx.api();
	const { suppressions } = (await api.capabilities()).ext;
	if (suppressions === undefined) return null;
	try {
		const { results } = await suppressions.page({ email__exact: key }, { signal: cx.signal });
		return results.map(({ reason }) => reason);
	} catch (error) {
		// A token that may only send: the send itself is done, and is what was asked for.
		if (error instanceof ApiError) return null;
		throw error;
	}
}

function sayWhy(reasons: readonly string[] | null): string {
	if (reasons === null) return 'suppressed or inactive';
	return reasons.length === 0 ? 'inactive in its list' : `suppressed (${reasons.join(', ')})`;
}

function hintOf(reasons: readonly string[] | null, address: string): string | null {
	if (reasons === null) return null;
	return reasons.length === 0
		? `mailctl subscribers find ${address}`
		: `mailctl suppressions list --email ${address}`;
}
