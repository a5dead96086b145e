/** `mailctl worker`: sends what is due, until told to stop. */
import { command } from '../command.js';
import { CliError } from '../errors.js';
import { exits } from '../exit.js';
import { sentenceOf } from './send-counts.js';
import { noSmtp, parseRate } from './send-deliver.js';
import { sendOptions } from './send-options.js';

const worker = command({
	name: 'worker',
	summary: 'send what is due',
	description:
		'Goes on until it is interrupted, waiting for retries that come due; with --drain it ends when nothing is due. ' +
		'On Ctrl-C or SIGTERM what is under way is finished within 10 s, the rest goes back to the queue.',
	options: {
		drain: { kind: 'flag', summary: 'end when nothing is due' },
		connections: sendOptions.connections,
		rate: sendOptions.rate,
	},
	writes: true,
	role: 'worker',
	output: '{"sent", "deferred", "bounced", "failed", "uncertain", "canceled"}',
	exits: [6],
	examples: ['mailctl worker --drain', 'mailctl worker --connections 10 --rate 50/s'],
	run: async (cx, { options }) => {
		const engine = await cx.local();
		const status = await engine.status();
		if (status.smtp_url === null) throw noSmtp(cx);
		if (cx.dryRun) return cx.wouldDo('send what is due', { messages: status.messages });
		const progress = cx.progress('sending', null);
		try {
			const summary = await engine.deliver({
				scope: null,
				until: options.drain ? 'settled' : 'stopped',
				signal: cx.signal,
				...(options.rate !== undefined && { rate: parseRate(options.rate) }),
				...(options.connections !== undefined && { connections: options.connections }),
				onWaiting: (reason, ms) => {
					void cx.warn(`the mail server takes no mail (${reason}); next try in ${Math.ceil(ms / 1000)} s`);
				},
				onWarning: (warning) => {
					void cx.warn(warning);
				},
				onProgress: (counts) =>
					progress.update(counts.sent, counts.deferred > 0 ? `${counts.deferred} deferred` : ''),
			});
			progress.stop();
			await cx.out.document(summary.counts, sentenceOf(summary.counts));
			if (summary.kind === 'paused') {
				throw new CliError(
					'queue_paused',
					exits.network,
					`the mail server takes no mail: ${summary.reason ?? 'unknown reason'}`,
					{
						hint: 'nothing is lost, everything is back in the queue: mailctl engine smtp-test',
						retryable: true,
					},
				);
			}
		} finally {
			progress.stop();
		}
		return exits.done;
	},
});

export { worker as command };
