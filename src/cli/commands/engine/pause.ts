/** The pause of the queue, in words. */
import { pausedBy } from '../../../api/pauses.js';
import type { QueueStats } from '../../frame/engine-state.js';

/** Since when, by hand or by the mail server, and why; "the queue is open" without a pause. */
export function pauseLine(paused: QueueStats['paused']): string {
	if (paused === null) return 'the queue is open';
	const { kind, reason, since, retry_at } = paused;
	if (kind === 'manual')
		return `paused ${pausedBy(reason)} since ${since}${reason === null ? '' : `: ${reason}`}`;
	return `the mail server takes no mail since ${since}: ${reason}; tried again at ${retry_at}`;
}

/** Shortens times of the wire within a sentence: without microseconds, as people read them. */
export function toSeconds(text: string): string {
	return text.replaceAll(/(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{6}/g, '$1 $2');
}
