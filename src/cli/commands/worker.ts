import { pauseSentence } from '../../api/pauses.js';
import { command, type OptionValues } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, DeadlinePassed, NoSmtp } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { given, paced } from '../frame/values.js';
import { answers } from '../render/columns.js';
import { numberText } from '../render/units.js';
import { queuePaused } from '../verbs/refusals.js';
import { sendOptions } from './send/options.js';
import { limitedUntil, sentenceOf } from './send/report.js';

export const workOptions = {
	connections: sendOptions.connections,
	rate: {
		kind: 'text',
		placeholder: 'N/s',
		summary: 'send at most this many messages, such as 10/s, 600/m or 100/h',
	},
} as const;

const options = { drain: { kind: 'flag', summary: 'end when no message is due' }, ...workOptions } as const;
type Options = OptionValues<typeof options>;

const worker = command({
	name: 'worker',
	summary: 'send due messages',
	description:
		'Runs until it is interrupted, and retries deferred messages. On Ctrl-C or SIGTERM it finishes messages ' +
		'in transit within 10 s. With --drain it ends when nothing is due, with exit code 14 if messages are left for ' +
		'later. Workers with --rate share one limit.',
	options,
	writes: true,
	role: 'worker',
	...answers(['sent', 'deferred', 'bounced', 'failed', 'uncertain', 'canceled', 'queued']),
	exits: [14],
	examples: ['mailctl worker --drain', 'mailctl worker --connections 10 --rate 50/s'],
	run: (cx, { options }) => work(cx, options),
});

export { worker as command };

/**
 * Throws `NoSmtp` without a mail server, and `queue_paused` if the queue is paused. After a drain, throws `not_drained`
 * (exit code 14) if messages are not due yet. Exits with 12 if `--deadline` ends a drain.
 */
async function work(cx: CommandContext, { drain, rate, connections }: Options): Promise<ExitCode> {
	const pace = paced(rate);
	const engine = await cx.local();
	if ((await engine.settings.get())['smtp_url'] === undefined) throw new NoSmtp();
	if (cx.dryRun) {
		await cx.wouldDo('send the due messages', { send: 'due', messages: (await engine.status()).messages });
		return exits.done;
	}
	const progress = cx.progress('sending', null);
	try {
		const summary = await engine.deliver({
			...{ scope: null, until: drain ? 'settled' : 'stopped', signal: cx.signal, leftMs: cx.leftMs() },
			...{ ...pace, ...given({ connections }) },
			onWaiting: (reason, ms) =>
				void cx.warn(`${pauseSentence(reason)}; next try in ${Math.ceil(ms / 1000)} s`),
			onHeld: (reason) => void cx.warn(`${reason}; sending continues when you resume the queue`),
			onLimited: (until) => void cx.warn(limitedUntil(until, cx.times)),
			onWarning: (warning) => void cx.warn(warning),
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
			const test = mailctl('engine', 'smtp-test');
			const hint = ['all messages are back in the queue; test the mail server: ', test];
			throw await queuePaused(cx, { reason: summary.reason, hint, hasAccepted: false });
		}
		if (!drain) return exits.done;
		if (summary.kind === 'stopped') {
			await cx.hint(['unsent messages stay queued; ', mailctl('worker', '--drain'), ' continues']);
			if (cx.signal.reason instanceof DeadlinePassed) cx.signal.throwIfAborted();
		}
		const rest = Object.entries(left).filter(([, count]) => count > 0);
		if (summary.kind === 'settled' && rest.length > 0) {
			const what = rest.map(([state, count]) => `${numberText(count)} ${state}`).join(', ');
			const when = next === null ? '' : `; mailctl can send the next one at ${cx.times.moment(next)}`;
			throw new CliError('not_drained', exits.queued, `not sent yet: ${what}${when}`, {
				hint: [mailctl('worker'), ' sends them when they are due'],
				retryable: true,
			});
		}
		return exits.done;
	} finally {
		progress.stop();
	}
}
