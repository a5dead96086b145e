import { type Micros, microsPerMs, microsPerSecond } from '../../api/datetime.js';
import type { DeliveryResult } from '../../store/notifications.js';
import type { NotificationAnswer } from './call.js';

const seconds = (count: number): Micros => count * microsPerSecond;
const hours = (count: number): Micros => seconds(3600 * count);

/** Before each attempt, from the previous one; ±10 %, so that failures of one moment spread. */
const delays: readonly Micros[] = [
	0,
	seconds(5),
	seconds(300),
	seconds(1800),
	hours(2),
	hours(5),
	hours(10),
	hours(14),
	hours(20),
	hours(24),
];
const jitter = 0.1;
const longestRetryAfter: Micros = hours(24);

export interface Attempted {
	before: number;
	url: string;
	answer: NotificationAnswer;
	now: Micros;
	random: number;
}

/** 2xx is delivered; 410 stops the webhook; everything else, a redirect too, is retried while the schedule lasts. */
export function resultOf({ before, url, answer, now, random }: Attempted): DeliveryResult {
	const { status, error, retryAfterMs } = answer;
	const kept = { status, error, answer: answer.text, duration_ms: answer.durationMs };
	if (status !== null && status >= 200 && status < 300) return { kind: 'delivered', answer: kept };
	if (status === 410) return { kind: 'gone', answer: kept, url };
	const delay = delays[before + 1];
	if (delay === undefined) return { kind: 'failed', answer: kept };
	const planned = Math.round(delay * (1 - jitter + 2 * jitter * random));
	const asked = Math.min((retryAfterMs ?? 0) * microsPerMs, longestRetryAfter);
	return { kind: 'again', answer: kept, due_at: now + Math.max(planned, asked) };
}
