import {
	type Clock,
	localTime,
	type Micros,
	microsPerDay,
	microsPerSecond,
	offsetText,
	parseDateTime,
} from '../../api/datetime.js';

/** Formats the times that one command prints. Returns an invalid time of the API unchanged. */
export interface Times {
	zone(): string;
	text(time: string): string;
	day(time: string): string;
	/** Returns `4 min ago` or `in 2 h`. For times a day or more away, or without a terminal, calls `text`. */
	recent(time: string): string;
	moment(time: string | Micros): string;
	/** Returns `Times: Europe/Oslo (UTC+1)` at the first call after a time was formatted, otherwise null. */
	caption(): string | null;
}

interface TimesOptions {
	zone: () => string;
	clock: Clock;
	isRead: boolean;
}

export function createTimes({ zone: findZone, clock, isRead }: TimesOptions): Times {
	let found: string | undefined;
	const zone = () => {
		found ??= findZone();
		return found;
	};
	const offsets = new Set<string>();
	let isNamed = false;
	const shown = (time: string, length: number) => {
		const at = parseDateTime(time);
		if (at === null) return time;
		offsets.add(offsetText(at, zone()));
		return localTime(at, zone()).slice(0, length).replace('T', ' ');
	};
	const text = (time: string) => shown(time, 'YYYY-MM-DDTHH:MM'.length);
	return {
		zone,
		text,
		day: (time) => shown(time, 'YYYY-MM-DD'.length),
		recent: (time) => (isRead ? agoText(parseDateTime(time), clock.now()) : null) ?? text(time),
		moment: (time) => {
			const at = typeof time === 'number' ? time : parseDateTime(time);
			return at === null ? String(time) : momentText(at, zone());
		},
		caption: () => {
			if (isNamed || offsets.size === 0) return null;
			isNamed = true;
			const name = zone();
			return name === 'UTC' ? 'Times: UTC' : `Times: ${name} (${[...offsets].sort().join(', ')})`;
		},
	};
}

export function momentText(at: Micros, zone: string): string {
	return `${localTime(at, zone).slice(0, 'YYYY-MM-DDTHH:MM'.length).replace('T', ' ')} ${offsetText(at, zone)}`;
}

function agoText(at: Micros | null, now: Micros): string | null {
	if (at === null || Math.abs(now - at) >= microsPerDay) return null;
	const seconds = Math.floor(Math.abs(now - at) / microsPerSecond);
	if (seconds === 0) return 'now';
	const span =
		seconds < 60
			? `${seconds} s`
			: seconds < 3_600
				? `${Math.floor(seconds / 60)} min`
				: `${Math.floor(seconds / 3_600)} h`;
	return at < now ? `${span} ago` : `in ${span}`;
}
