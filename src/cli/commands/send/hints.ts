/** What is said of a service's answer to a send: the way out of a refusal, a lost answer, addresses without a message. */

import { emailKey } from '../../../api/address.js';
import { ApiError, mayHaveHappened } from '../../../api/errors.js';
import type { SendResult, WireDateTime } from '../../../api/records.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { classify, exits } from '../../frame/exit.js';
import type { Times } from '../../render/times.js';
import { numberText } from '../../render/units.js';
import type { Refused } from '../../verbs/refusals.js';

/** `hasSenders`: whether the place lets addresses be verified by a command; elsewhere that is done at the service. */
export function sendHint({ path, code }: Refused, { hasSenders = true } = {}): Hint | undefined {
	if (code === 'not_verified' && !hasSenders) return 'verify the address at the service';
	return path.startsWith('template_unique_id') ? mailctl('templates', 'list') : undefined;
}

/** The answer of a send; a refusal without a way out of its own says at least that nothing left. */
export async function saidToBeUnsent<T>(sending: Promise<T>): Promise<T> {
	try {
		return await sending;
	} catch (error) {
		if (!(error instanceof ApiError || error instanceof CliError)) throw error;
		const { code, exit, message, hint, details, retryable } = classify(error);
		if (exit !== exits.refused || hint !== null) throw error;
		const cause = error instanceof CliError && error.cause !== undefined ? error.cause : error;
		throw new CliError(code, exit, message, {
			...(details !== null && { details }),
			retryable,
			cause,
			hint: code === 'unprocessable' ? 'give another --idempotency-key' : unsent,
		});
	}
}

const unsent = 'nothing was sent; once that is settled, run the same command again';

/**
 * The answer of a send. Without a clear one it is exit 13, never a plain network or server error: a blind repetition
 * may send twice. `key`: the idempotency key under which a repetition is safe; `null` where none is kept.
 */
export async function maybeSent<T>(cx: CommandContext, sending: Promise<T>, key: string | null): Promise<T> {
	try {
		return await sending;
	} catch (error) {
		if (cx.signal.aborted) {
			const { local } = await cx.connection();
			if (local === null)
				await cx.warn('stopped before the service answered: it may or may not have been sent');
		}
		if (!(error instanceof ApiError) || !mayHaveHappened(error)) throw error;
		throw new CliError('uncertain', exits.uncertain, `it may or may not have been sent: ${error.message}`, {
			hint:
				key === null
					? 'look at the report or ask a recipient before you send it again'
					: `run it again with --idempotency-key ${key}: what was accepted is not sent twice (24 h)`,
			cause: error,
		});
	}
}

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
	const against = await Promise.all(named.map((key) => againstOf(cx, key)));
	for (const [index, key] of named.entries())
		await cx.note(`no message was made to ${key}: ${sayWhy(against[index] ?? null, cx.times)}`);
	if (left.length > named.length) await cx.note(`and to ${numberText(left.length - named.length)} more`);
	const hint = hintOf(against[0] ?? null, left.length === 1 ? first : 'ADDRESS');
	if (hint !== null) await cx.hint(hint);
}

/** What stands against mail to an address. */
interface Against {
	reasons: readonly string[];
	date_erased: WireDateTime | null;
}

/** null: the service does not tell. */
async function againstOf(cx: CommandContext, key: string): Promise<Against | null> {
	const api = await cx.api();
	const { suppressions, people } = (await api.capabilities()).ext;
	if (suppressions === undefined) return null;
	try {
		const { results } = await suppressions.page({ email__exact: key }, { signal: cx.signal });
		const reasons = results.map(({ reason }) => reason);
		// No suppression has the address of an erased person.
		const person = reasons.length === 0 ? await people?.get(key, { signal: cx.signal }) : undefined;
		return { reasons, date_erased: person?.date_erased ?? null };
	} catch (error) {
		// A token that may only send: the send itself is done, and is what was asked for.
		if (error instanceof ApiError) return null;
		throw error;
	}
}

function sayWhy(against: Against | null, times: Pick<Times, 'day'>): string {
	if (against === null) return 'suppressed or inactive';
	const { reasons, date_erased } = against;
	if (date_erased !== null) return `the person was erased on ${times.day(date_erased)}`;
	return reasons.length === 0 ? 'inactive in its list' : `suppressed (${reasons.join(', ')})`;
}

function hintOf(against: Against | null, address: string): Hint | null {
	if (against === null) return null;
	if (against.date_erased !== null)
		return ['if the person joins again: ', mailctl('subscribers', 'erase', address, '--lift')];
	return against.reasons.length === 0 ? mailctl('subscribers', 'find', address) : mailctl('why', address);
}
