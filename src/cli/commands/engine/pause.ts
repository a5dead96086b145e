/** The pause of the queue, in words. */
import { pausedBy } from '../../../api/pauses.js';
import type { QueueStats } from '../../frame/engine-state.js';
import type { Times } from '../../render/times.js';

/** Since when, by hand or by the mail server, and why; "the queue is open" without a pause. */
export function pauseLine(paused: QueueStats['paused']): string {
	if (paused === null) return 'the queue is open';
	const { kind, reason, since, retry_at } = paused;
	if (kind === 'manual')
		return `paused ${pausedBy(reason)} since ${since}${reason === null ? '' : `: ${reason}`}`;
	return `the mail server takes no mail since ${since}: ${reason}; tried again at ${retry_at}`;
}

/** Times of the wire within a sentence as people read them. */
export function withMoments(sentence: string, times: Pick<Times, 'moment'>): string {
	return sentence.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}/g, (time) => times.moment(time));
}
