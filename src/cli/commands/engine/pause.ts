/** The pause of the queue, in words. */
import { localTime, offsetText, parseDateTime, withZone } from '../../../api/datetime.js';
import { faultSentence, pausedBy } from '../../../api/pauses.js';
import type { QueueStats } from '../../frame/connection.js';
import type { Times } from '../../render/times.js';

/** Since when, by hand or by the mail server, and why; "the queue is open" without a pause. */
export function pauseLine(paused: QueueStats['paused']): string {
	if (paused === null) return 'the queue is open';
	const { kind, reason, since, retry_at } = paused;
	if (kind === 'manual')
		return `paused ${pausedBy(reason)} since ${since}${reason === null ? '' : `: ${reason}`}`;
	return `${faultSentence(reason, since)}; tried again at ${retry_at}`;
}

const wireTime = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}/g;

/** Times of the wire within a sentence as programs read them: they say that they are of UTC. */
export function withZones(sentence: string): string {
	return sentence.replaceAll(wireTime, withZone);
}

/** Times of the wire within a sentence as people read them, to the second: `2026-11-21 13:00:07 UTC+1`. */
export function withMoments(sentence: string, times: Pick<Times, 'zone'>): string {
	return sentence.replaceAll(wireTime, (time) => {
		const at = parseDateTime(time);
		if (at === null) return time;
		const local = localTime(at, times.zone()).slice(0, 'YYYY-MM-DDTHH:MM:SS'.length).replace('T', ' ');
		return `${local} ${offsetText(at, times.zone())}`;
	});
}
