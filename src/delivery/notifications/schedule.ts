import { type Micros, microsPerMs, microsPerSecond } from '../../api/datetime.js';
import type { DeliveryResult } from '../../store/queue.js';
import type { NotificationAnswer } from './call.js';

/** Seconds before each attempt, from the previous one; ±10 %, so that failures of one moment spread. */
const delays = [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
const jitter = 0.1;
const longestRetryAfter: Micros = 86_400 * microsPerSecond;

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
	const planned = Math.round(delay * microsPerSecond * (1 - jitter + 2 * jitter * random));
	const asked = Math.min((retryAfterMs ?? 0) * microsPerMs, longestRetryAfter);
	return { kind: 'again', answer: kept, due_at: now + Math.max(planned, asked) };
}
