import { pauseSentence } from '../../api/pauses.js';
import { command } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, DeadlinePassed, NoSmtp } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { paced } from '../frame/values.js';
import { answer } from '../render/columns.js';
import { numberText } from '../render/units.js';
import { queuePaused } from '../verbs/refusals.js';
import { sendOptions } from './send/options.js';
import { limitedUntil, sentenceOf } from './send/report.js';

export const workOptions = {
	connections: sendOptions.connections,
	rate: {
		kind: 'text',
		placeholder: 'N/s',
		summary: 'at most so many messages a second (10/s), minute (600/m) or hour (100/h)',
	},
} as const;

export const aboutRate =
	'A process with a --rate also counts the messages of others with one: two workers with --rate 10/s send 10 a second together. The setting send_limit holds for all of them, with a rate or without.';

const worker = command({
	name: 'worker',
	summary: 'send what is due',
	description:
		'Goes on until it is interrupted, waiting for retries that come due; with --drain it ends when nothing is due and no other process is sending. It waits for messages that limits hold back. If messages are left for later (deferred, or planned), it ends with 14 and says until when. ' +
		'On Ctrl-C or SIGTERM it finishes messages under way within 10 s, returns the others to the queue, and ends with 0. ' +
		'With --deadline it begins no message in the last quarter (9 s at most), and cuts those under way at the end. ' +
		aboutRate,
	options: {
		drain: { kind: 'flag', summary: 'end when nothing is due; 14 where something is left' },
		...workOptions,
	},
	writes: true,
	role: 'worker',
	columns: answer('sent', 'deferred', 'bounced', 'failed', 'uncertain', 'canceled', 'queued'),
	output: '{"sent", "deferred", "bounced", "failed", "uncertain", "canceled", "queued"}',
	exits: [14],
	examples: ['mailctl worker --drain', 'mailctl worker --connections 10 --rate 50/s'],
	run: (cx, { options }) => work(cx, options),
});

export { worker as command };

/**
 * Answers the counts, with how many are still queued. Throws `queue_paused` and `not_drained` (exit 14), and a usage error
 * without a mail server. A drain that misses `--deadline` ends with 12: the queue must not be taken for drained.
 */
async function work(
	cx: CommandContext,
	{
		drain,
		rate,
		connections,
	}: { drain: boolean; rate?: string | undefined; connections?: number | undefined },
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
			until: drain ? 'settled' : 'stopped',
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
		if (!drain) return exits.done;
		if (summary.kind === 'stopped') {
			await cx.hint(['what was not sent stays queued; ', mailctl('worker', '--drain'), ' goes on']);
			if (cx.signal.reason instanceof DeadlinePassed) cx.signal.throwIfAborted();
		}
		const rest = Object.entries(left).filter(([, count]) => count > 0);
		if (summary.kind === 'settled' && rest.length > 0) {
			const what = rest.map(([state, count]) => `${numberText(count)} ${state}`).join(', ');
			const when = next === null ? '' : `; the next may go at ${cx.times.moment(next)}`;
			throw new CliError('not_drained', exits.queued, `not sent yet: ${what}${when}`, {
				hint: [mailctl('worker'), ' waits for it'],
				retryable: true,
			});
		}
		return exits.done;
	} finally {
		progress.stop();
	}
}
