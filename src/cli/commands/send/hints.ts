/** The way out of what a service refuses about a send. */
import { ApiError } from '../../../api/errors.js';
import { CliError } from '../../errors.js';
import { classify, exits } from '../../exit.js';
import type { Refused } from '../../refusals.js';

/** `hasSenders`: whether the place lets addresses be verified by a command; elsewhere that is done at the service. */
export function sendHint({ path, message }: Refused, { hasSenders = true } = {}): string | undefined {
	if (path === 'from' && message.includes('not verified'))
		return hasSenders ? 'mailctl senders add ADDRESS' : 'verify the address at the service';
	if (path === 'type' && message.includes('public URL'))
		return 'mailctl engine init --public-url https://mail.example.com';
	return path.startsWith('template_unique_id') ? 'mailctl templates list' : undefined;
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
			hint: message.includes('Idempotency-Key') ? 'give another --idempotency-key' : unsent,
		});
	}
}

const unsent = 'nothing was sent; once that is settled, run the same command again';
