/** Sends what is due: what `worker` does all the time, and `engine queue drain` once. */
import type { CommandContext } from '../context.js';
import { type ExitCode, exits } from '../exit.js';
import { queuePaused } from '../queue-paused.js';
import { limitedUntil, sentenceOf } from './send/counts.js';
import { noSmtp, parseRate } from './send/deliver.js';

export interface WorkOptions {
	until: 'settled' | 'stopped';
	/** What a signal before that is: how a worker ends, or what kept a drain from its end. */
	stopping: 'ends' | 'fails';
	/** `10/s`, not checked yet. */
	rate?: string | undefined;
	connections?: number | undefined;
}

/**
 * Answers the counts on stdout, with how many are still queued. Throws `queue_paused` (exit 6), and a usage error
 * without a mail server. Where stopping it fails, it ends with the signal's own code, or that of `--deadline`: whoever
 * asked for a drained queue is not to take it for one.
 */
export async function workOff(
	cx: CommandContext,
	{ until, stopping, rate, connections }: WorkOptions,
): Promise<ExitCode> {
	const engine = await cx.local();
	const status = await engine.status();
	if (status.smtp_url === null) throw noSmtp();
	if (cx.dryRun) {
		await cx.wouldDo('send what is due', { messages: status.messages });
		return exits.done;
	}
	const progress = cx.progress('sending', null);
	try {
		const summary = await engine.deliver({
			scope: null,
			until,
			signal: cx.signal,
			...(rate !== undefined && { rate: parseRate(rate) }),
			...(connections !== undefined && { connections }),
			onWaiting: (reason, ms) => {
				void cx.warn(`the mail server takes no mail (${reason}); next try in ${Math.ceil(ms / 1000)} s`);
			},
			onHeld: (reason) => {
				void cx.warn(`${reason}; it goes on when it is resumed`);
			},
			onLimited: (until) => {
				void cx.warn(limitedUntil(until));
			},
			onWarning: (warning) => {
				void cx.warn(warning);
			},
			onProgress: (counts) =>
				progress.update(counts.sent, counts.deferred > 0 ? `${counts.deferred} deferred` : ''),
		});
		progress.stop();
		const { queued = 0 } = (await engine.status()).messages;
		await cx.out.document(
			{ ...summary.counts, queued },
			`${sentenceOf(summary.counts)}${queued === 0 ? '' : `, still queued ${queued.toLocaleString('en-US')}`}`,
		);
		if (summary.kind === 'paused') {
			const hint = 'nothing is lost, everything is back in the queue: mailctl engine smtp-test';
			throw await queuePaused(cx, summary.reason, hint);
		}
		if (summary.kind === 'stopped' && until === 'settled') {
			await cx.hint('what was not sent stays queued; mailctl engine queue drain goes on');
			if (stopping === 'fails') cx.signal.throwIfAborted();
		}
	} finally {
		progress.stop();
	}
	return exits.done;
}
