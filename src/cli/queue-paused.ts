/** Exit 6: nothing is sent at the moment, because of a person or of the mail server. */
import { isHeldReason } from '../api/pauses.js';
import type { CommandContext } from './context.js';
import { CliError } from './errors.js';
import { exits } from './exit.js';

/** `hint` is what to do about a mail server; a person's pause is ended by `engine queue resume`. */
export async function queuePaused(
	cx: CommandContext,
	reason: string | null,
	hint: string,
): Promise<CliError> {
	const isHeld = isHeldReason(reason);
	const message = isHeld ? `${reason}` : `the mail server takes no mail: ${reason ?? 'unknown reason'}`;
	return new CliError('queue_paused', exits.network, message, {
		hint: isHeld ? await howToResume(cx) : hint,
		retryable: true,
	});
}

async function howToResume(cx: CommandContext): Promise<string> {
	const { local } = await cx.connection();
	if (local !== null) return 'nothing is lost: mailctl engine queue resume';
	return 'nothing is lost: mailctl engine queue resume, on the machine that owns the database';
}
