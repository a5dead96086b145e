/** A send that nobody answered is no failure: it may have happened. */
import { ApiError } from '../../../api/errors.js';
import type { CommandContext } from '../../context.js';
import { CliError } from '../../errors.js';
import { exits } from '../../exit.js';

/**
 * The answer of a send. Without one it is exit 13, never a plain network error: whoever repeats it blindly may send
 * twice. `key`: the idempotency key under which a repetition is safe; `null` where none is kept.
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
		// An answer that cannot be read says as little as none, but it did come.
		if (error instanceof ApiError && error.code === 'bad_answer' && !error.unanswered)
			await cx.warn('it may have been sent: look at the report before you send it again');
		if (!(error instanceof ApiError) || !error.unanswered) throw error;
		throw new CliError('uncertain', exits.uncertain, `it may or may not have been sent: ${error.message}`, {
			hint:
				key === null
					? 'look at the report or ask a recipient before you send it again'
					: `run it again with --idempotency-key ${key}: what was accepted is not sent twice (24 h)`,
			cause: error,
		});
	}
}
