import type { Wait } from '../../api/backoff.js';
import type { OutStream } from '../frame/io.js';
import { numberText } from './units.js';

export interface Progress {
	update(done: number, note?: string): void;
	stop(): void;
}

interface ProgressOptions {
	label: string;
	total: number | null;
	before: number;
	quiet: boolean;
	elapsedMs: () => number;
	say: (line: string) => Promise<void>;
}

const terminalEveryMs = 100;
const lineEveryMs = 10_000;
const rateOfMs = 30_000;
const leastRateMs = 1_000;

export function createProgress(stderr: StatusLine, options: ProgressOptions): Progress {
	if (options.quiet) return { update: () => {}, stop: () => {} };
	const start = options.elapsedMs();
	const everyMs = stderr.canRewrite ? terminalEveryMs : lineEveryMs;
	let last = stderr.canRewrite ? Number.NEGATIVE_INFINITY : start;
	let since = { at: start, done: options.before };
	const later: (typeof since)[] = [];
	const rateOf = (done: number, now: number) => {
		while (later[0] !== undefined && later[0].at <= now - rateOfMs) since = later.shift() ?? since;
		later.push({ at: now, done });
		const ms = now - since.at;
		return ms < leastRateMs ? 0 : (Math.max(0, done - since.done) * 1_000) / ms;
	};
	return {
		update(done, note) {
			const now = options.elapsedMs();
			if (now - last < everyMs) return;
			last = now;
			const line = describe(options, done, rateOf(done, now), note);
			if (stderr.canRewrite) stderr.stand(line);
			else void options.say(line);
		},
		stop: () => {
			if (stderr.canRewrite) stderr.stand(null);
		},
	};
}

/** `importing 1,200 of 5,000 · 24% · 400/s · 9s left · 3 rejected`. `rate` is per second; 0: unknown. */
function describe(
	{ label, total }: Pick<ProgressOptions, 'label' | 'total'>,
	done: number,
	rate: number,
	note = '',
): string {
	const parts = [`${label} ${numberText(done)}${total === null ? '' : ` of ${numberText(total)}`}`];
	if (total !== null && total > 0) parts.push(`${Math.floor((Math.min(done, total) * 100) / total)}%`);
	if (rate > 0) parts.push(`${rate < 10 ? rate.toFixed(1) : numberText(Math.round(rate))}/s`);
	if (total !== null && rate > 0 && done < total) parts.push(`${span((total - done) / rate)} left`);
	if (note !== '') parts.push(note);
	return parts.join(' · ');
}

function span(seconds: number): string {
	const whole = Math.ceil(seconds);
	if (whole < 60) return `${whole}s`;
	if (whole < 3600) return `${Math.floor(whole / 60)}m${whole % 60}s`;
	return `${Math.floor(whole / 3600)}h${Math.floor((whole % 3600) / 60)}m`;
}

export interface StatusLine extends OutStream {
	readonly canRewrite: boolean;
	/**
	 * Shows `line` as the status line, cut to the terminal width. Null removes the status line. Requires `canRewrite`.
	 */
	stand(line: string | null): void;
	wait(line: string | null): void;
	saidAt(): number;
	close(): void;
	/** Wraps stdout, which shares the terminal. Each write to stdout removes the line that `wait` shows. */
	beside(stream: OutStream): OutStream;
}

const toStart = '\r\x1b[K';

export function withStatusLine(
	stream: OutStream,
	{
		isDumb = false,
		elapsedMs = () => performance.now(),
	}: { isDumb?: boolean; elapsedMs?: () => number } = {},
): StatusLine {
	let standing: string | null = null;
	let waiting: string | null = null;
	let shown: string | null = null;
	let saidAt = Number.NEGATIVE_INFINITY;
	let isClosed = false;
	const show = () => {
		if (isClosed) return;
		const before = shown;
		// Count code units. Wide characters are rare here, and measuring graphemes would load more code.
		shown = (standing ?? waiting)?.slice(0, stream.columns - 1) ?? null;
		if (before !== null || shown !== null) void stream.write(`${toStart}${shown ?? ''}`);
	};
	const wait = (line: string | null) => {
		waiting = line;
		if (standing === null) show();
	};
	const write: OutStream['write'] = (text) => {
		saidAt = elapsedMs();
		if (shown === null) return stream.write(text);
		void stream.write(toStart);
		const written = stream.write(text);
		void stream.write(shown);
		return written;
	};
	return Object.assign(writingTo(stream, write), {
		canRewrite: stream.isTTY && !isDumb,
		stand: (line: string | null) => {
			saidAt = elapsedMs();
			standing = line;
			show();
		},
		wait,
		saidAt: () => saidAt,
		close: () => {
			standing = null;
			waiting = null;
			show();
			isClosed = true;
		},
		beside: (other: OutStream) =>
			writingTo(other, (text) => {
				saidAt = elapsedMs();
				if (waiting !== null) wait(null);
				return other.write(text);
			}),
	});
}

function writingTo(stream: OutStream, write: OutStream['write']): OutStream {
	return {
		raw: stream.raw,
		isTTY: stream.isTTY,
		get columns() {
			return stream.columns;
		},
		write,
	};
}

const silentMs = 1_000;
const turnMs = 120;

/** After a second without output, shows the wait that began first. The timer does not keep the process alive. */
export function createSpinner(
	stderr: StatusLine,
	{ unicode, elapsedMs }: { unicode: boolean; elapsedMs: () => number },
): (what: string) => Wait {
	const turns = unicode ? '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏' : '|/-\\';
	const waits = new Set<{ what: string; note: string }>();
	let since = Number.NEGATIVE_INFINITY;
	let endedAt = Number.NEGATIVE_INFINITY;
	let drawnAt = Number.NEGATIVE_INFINITY;
	let timer: NodeJS.Timeout | null = null;
	let turn = 0;
	const draw = () => {
		const now = elapsedMs();
		const [oldest] = waits;
		if (oldest === undefined || now - Math.max(since, stderr.saidAt()) < silentMs) return;
		if (now - drawnAt < turnMs) return;
		drawnAt = now;
		turn = (turn + 1) % turns.length;
		const seconds = Math.floor((now - since) / 1_000);
		stderr.wait(`${turns[turn]} waiting for ${oldest.what}, ${seconds} s${oldest.note}`);
	};
	return (what) => {
		const wait = { what, note: '' };
		if (waits.size === 0 && elapsedMs() - endedAt > silentMs) since = elapsedMs();
		waits.add(wait);
		timer ??= setInterval(draw, turnMs).unref();
		draw();
		return {
			again: (repetition, of) => {
				wait.note = `, retrying (${repetition} of ${of})`;
			},
			end: () => {
				waits.delete(wait);
				endedAt = elapsedMs();
				if (waits.size > 0 || timer === null) return;
				clearInterval(timer);
				timer = null;
				stderr.wait(null);
			},
		};
	};
}
