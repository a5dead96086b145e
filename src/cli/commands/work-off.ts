/** Sends due messages: `worker` does so all the time, and `engine queue drain` once. */

import { pauseSentence } from '../../api/pauses.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, DeadlinePassed, NoSmtp } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { paced } from '../frame/values.js';
import { numberText } from '../render/plurals.js';
import { queuePaused } from '../verbs/refusals.js';
import { limitedUntil, sentenceOf } from './send/report.js';

export interface WorkOptions {
	until: 'settled' | 'stopped';
	/** The meaning of an earlier signal: it ends a worker, and fails a drain. */
	stopping: 'ends' | 'fails';
	/** `10/s`, not checked yet. */
	rate?: string | undefined;
	connections?: number | undefined;
}

/**
 * Answers the counts on stdout, with how many are still queued. Throws `queue_paused` and `not_drained` (exit 14), and a
 * usage error without a mail server. Where an early stop is a failure (`settled`), it ends with the code of the signal or of
 * `--deadline`: the caller must not take the queue for drained.
 */
export async function workOff(
	cx: CommandContext,
	{ until, stopping, rate, connections }: WorkOptions,
): Promise<ExitCode> {
	const pace = paced(rate);
	const engine = await cx.local();
	if ((await engine.settings.get())['smtp_url'] === undefined) throw new NoSmtp();
	if (cx.dryRun) {
		await cx.wouldDo('send what is due', { send: 'due', messages: (await engine.status()).messages });
		return exits.done;
	}
	const progress = cx.progress('sending', null);
	try {
		const summary = await engine.deliver({
			scope: null,
			until,
			signal: cx.signal,
			leftMs: cx.leftMs(),
			...pace,
			...(connections !== undefined && { connections }),
			onWaiting: (reason, ms) => {
				void cx.warn(`${pauseSentence(reason)}; next try in ${Math.ceil(ms / 1000)} s`);
			},
			onHeld: (reason) => {
				void cx.warn(`${reason}; it goes on when it is resumed`);
			},
			onLimited: (until) => {
				void cx.warn(limitedUntil(until, cx.times));
			},
			onWarning: (warning) => {
				void cx.warn(warning);
			},
			onProgress: (counts) =>
				progress.update(counts.sent, counts.deferred > 0 ? `${counts.deferred} deferred` : ''),
		});
		progress.stop();
		const { next, ...left } = await engine.queue.waiting();
		const { queued } = left;
		await cx.out.document(
			{ ...summary.counts, queued },
			`${sentenceOf(summary.counts)}${queued === 0 ? '' : `, still queued ${numberText(queued)}`}`,
		);
		if (summary.kind === 'paused') {
			const hint = ['nothing is lost, everything is back in the queue: ', mailctl('engine', 'smtp-test')];
			throw await queuePaused(cx, { reason: summary.reason, hint, hasAccepted: false });
		}
		if (summary.kind === 'stopped' && until === 'settled') {
			await cx.hint(['what was not sent stays queued; ', mailctl('engine', 'queue', 'drain'), ' goes on']);
			// Reports a missed deadline for each run with an end of its own.
			if (stopping === 'fails' || cx.signal.reason instanceof DeadlinePassed) cx.signal.throwIfAborted();
		}
		const rest = Object.entries(left).filter(([, count]) => count > 0);
		if (summary.kind === 'settled' && until === 'settled' && rest.length > 0) {
			const what = rest.map(([state, count]) => `${numberText(count)} ${state}`).join(', ');
			const when = next === null ? '' : `; the next may go at ${cx.times.moment(next)}`;
			throw new CliError('not_drained', exits.queued, `not sent yet: ${what}${when}`, {
				hint: [mailctl('worker'), ' waits for it'],
				retryable: true,
			});
		}
	} finally {
		progress.stop();
	}
	return exits.done;
}
