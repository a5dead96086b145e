/** Time as the project keeps it (integer microseconds) and as the wire says it (naive UTC, six digits). */
import type { WireDateTime } from './records.js';

/** Microseconds since 1970-01-01T00:00:00Z; an integer, exact until the year 2255. */
export type Micros = number;

export const microsPerMs = 1_000;
export const microsPerSecond = 1_000_000;
export const microsPerDay = 86_400_000_000;

/** Where the time comes from; passed in, so that tests and `--now` can fix it. */
export interface Clock {
	now(): Micros;
}

/** The machine's clock: wall time, refined to microseconds within the process. */
export const systemClock: Clock = {
	now: () => Math.round((performance.timeOrigin + performance.now()) * microsPerMs),
};

/** `YYYY-MM-DDTHH:MM:SS.ffffff` (api-decisions 19: always six digits). */
export function formatDateTime(at: Micros): WireDateTime {
	const ms = Math.floor(at / microsPerMs);
	const rest = String(at - ms * microsPerMs).padStart(3, '0');
	return `${new Date(ms).toISOString().slice(0, -1)}${rest}`;
}
