/** Where the mailings of a target are kept, and who sends them: the one place of `send` that asks. */
import { need } from '../../api/capabilities.js';
import type { MailingPlace } from '../../jobs/mailing-place.js';
import type { CommandContext } from '../context.js';
import { deliverNow } from './send-deliver.js';

/** `MissingExtension` (exit 2) where nothing keeps mailings. */
export async function mailingPlace(cx: CommandContext): Promise<MailingPlace> {
	const mailings = await need(await cx.api(), 'mailings');
	return {
		mailings,
		deliver: (id, { total, stallMs, waits, rate, connections }) =>
			deliverNow(cx, { mailing: id }, total, {
				wait: waits,
				waitTimeout: stallMs,
				rate: rate === undefined ? undefined : String(rate),
				connections,
			}),
	};
}
