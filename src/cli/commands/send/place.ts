/** Where the mailings of a target are kept, and who sends them: the one place of `send` that asks. */
import type { MailingPlace } from '../../../jobs/mailing-place.js';
import type { CommandContext } from '../../context.js';
import { deliverNow } from './deliver.js';

/** The target's own mailings, else a ledger of this machine. Ask once a command: a ledger is held by who opened it. */
export async function mailingPlace(cx: CommandContext): Promise<MailingPlace> {
	const { mailings } = (await (await cx.api()).capabilities()).ext;
	if (mailings === undefined) return (await import('./foreign.js')).foreignPlace(cx);
	return {
		mailings,
		deliver: (id, { job, total, stallMs, waits, rate, connections }) =>
			deliverNow(cx, { mailing: id }, total, {
				job,
				wait: waits,
				waitTimeout: stallMs,
				rate: rate === undefined ? undefined : String(rate),
				connections,
			}),
	};
}
