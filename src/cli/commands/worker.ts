/** `mailctl worker`: sends due messages until it is stopped. */
import { command } from '../frame/command.js';
import { workOff } from './work-off.js';
import { aboutRate, workedOff, workOptions } from './work-options.js';

const worker = command({
	name: 'worker',
	summary: 'send what is due',
	description:
		'Goes on until it is interrupted, waiting for retries that come due; with --drain it ends when nothing is due and no other process is sending, with 14 where something is left for later, as engine queue drain does. ' +
		'On Ctrl-C or SIGTERM what is under way is finished within 10 s, the rest goes back to the queue, and it ends with 0; what is still `queued` is among the counts. ' +
		'With --deadline nothing is begun in its last quarter (9 s at most), and what is under way at its end is cut. ' +
		aboutRate,
	options: {
		drain: { kind: 'flag', summary: 'end when nothing is due; 14 where something is left' },
		...workOptions,
	},
	writes: true,
	role: 'worker',
	columns: workedOff,
	output: '{"sent", "deferred", "bounced", "failed", "uncertain", "canceled", "queued"}',
	exits: [14],
	examples: ['mailctl worker --drain', 'mailctl worker --connections 10 --rate 50/s'],
	run: (cx, { options: { drain, ...options } }) =>
		workOff(cx, { until: drain ? 'settled' : 'stopped', stopping: 'ends', ...options }),
});

export { worker as command };
