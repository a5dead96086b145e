/** The end of a delivery: what is said of it, and the exit code it means. */
import type { DeliverySummary } from '../../connection.js';
import type { CommandContext } from '../../context.js';
import { CliError } from '../../errors.js';
import { type ExitCode, exits } from '../../exit.js';
import { queuePaused } from '../../queue-paused.js';
import { shown } from '../../render/counted.js';
import { sentenceOf } from './counts.js';
import { type GoingOn, saysWhoGoesOn, sender, senderAfter } from './goes-on.js';

/** A job that was delivered, in words. */
export interface JobEnd extends GoingOn {
	/** How far it is. */
	sentence: string;
}

/** What a delivery is told of beyond its own summary. */
export interface DeliveryEnd {
	/** Messages that nothing has become of yet. */
	waiting: number;
	/** null: no job, but one submission. */
	job: JobEnd | null;
}

/** The words after a delivery, and the exit code they mean. `summary` null: nobody waited for it. */
export async function concludeDelivery(
	cx: CommandContext,
	summary: DeliverySummary | null,
	{ waiting, job }: DeliveryEnd,
): Promise<ExitCode> {
	if (summary === null) return exits.done;
	const { kind, reason, counts, warnings } = summary;
	for (const warning of warnings) await cx.warn(warning);
	// Where nothing went out, "sent 0" in front of the reason says nothing.
	if (kind === 'settled' || Object.values(counts).some((count) => count > 0))
		await cx.note(`${job?.sentence ?? sentenceOf(counts)}${kind === 'settled' ? '' : stillQueued(waiting)}`);
	if (kind === 'paused') {
		throw await queuePaused(cx, reason, `nothing is lost: mend it, then ${await senderAfter(cx)}`);
	}
	if (kind === 'stalled')
		throw new CliError('stalled', exits.outOfTime, stalledBecause(reason), {
			hint: job === null ? `${await sender(cx)} goes on` : await saysWhoGoesOn(cx, job),
		});
	if (kind === 'stopped') {
		await cx.hint(
			job === null
				? `what was accepted stays queued; ${await sender(cx, 'worker --drain')} sends it`
				: await saysWhoGoesOn(cx, job),
		);
		cx.signal.throwIfAborted();
	}
	if (counts.deferred > 0) await cx.hint(`deferred messages are tried again by ${await sender(cx)}`);
	if (counts.uncertain > 0) return uncertain(cx);
	return counts.bounced + counts.failed > 0 ? exits.partly : exits.done;
}

/** What only a person can decide, where the place lets him. */
async function uncertain(cx: CommandContext): Promise<ExitCode> {
	const { api } = await cx.connection();
	if ((await api.capabilities()).ext.messages !== undefined)
		await cx.hint(
			'mailctl messages list --status uncertain shows what may or may not have arrived; mailctl messages retry ID sends it again',
		);
	return exits.uncertain;
}

function stillQueued(waiting: number): string {
	return waiting > 0 ? `, still queued ${shown(waiting)}` : '';
}

function stalledBecause(reason: string | null): string {
	const what = 'no progress within --wait-timeout';
	return reason === null ? what : `${what}: ${reason}`;
}
