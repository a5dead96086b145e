/** Metrics for Prometheus, and the request log, which contains no tokens, queries or bodies. */
import {
	type Clock,
	formatDateTime,
	microsPerSecond,
	monotonicMicros,
	steadyOf,
} from '../../api/datetime.js';
import type { SocketExchange } from './connection.js';
import type { Exchange } from './exchange.js';

export interface RequestLog {
	finished(exchange: SocketExchange): void;
	refused(refused: Refused): void;
	failed(exchange: Pick<Exchange, 'id' | 'method'>, error: unknown, path?: string): void;
}

interface Refused {
	ip: string | null;
	status: number;
	code: string;
	method?: string;
	path?: string | null;
}

export function createRequestLog({ clock, log }: { clock: Clock; log(line: object): void }): RequestLog {
	const time = () => `${formatDateTime(clock.now())}Z`;
	return {
		finished: ({ id, method, shownPath, answered, began, principal, ip, error }) =>
			log({
				time: time(),
				id,
				method,
				path: shownPath,
				status: answered?.status ?? null,
				ms: Math.round((steadyOf(clock) - began) / 100) / 10,
				bytes: answered?.body == null ? 0 : Buffer.byteLength(answered.body),
				token: principal?.name ?? null,
				ip,
				error,
			}),
		refused: ({ ip, status, code, method = null, path = null }) =>
			log({ time: time(), id: null, method, path, status, ms: 0, bytes: 0, token: null, ip, error: code }),
		failed: ({ id, method }, error, path) => {
			const { message, stack } = error instanceof Error ? error : { message: String(error) };
			const cause = causeOf(error);
			log({ time: time(), level: 'error', id, method, path, error: message, cause, stack });
		},
	};
}

function causeOf(error: unknown): string | undefined {
	if (!(error instanceof Error && error.cause instanceof Error)) return undefined;
	const { cause } = error;
	return 'code' in cause ? `${cause.message} (${String(cause.code)})` : cause.message;
}

export type Gauges = Readonly<Record<string, number>>;

export interface Metrics {
	/** `operation` must have few distinct values, because metrics keep each label value forever. */
	begin(): (operation: string, status: number) => void;
	render(gauges?: Gauges): string;
}

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

interface Histogram {
	counts: number[];
	count: number;
	sum: number;
}

export function createMetrics(): Metrics {
	const requests = new Map<string, number>();
	const durations = new Map<string, Histogram>();
	let inFlight = 0;
	return {
		begin: () => {
			const began = monotonicMicros();
			inFlight += 1;
			return (operation, status) => {
				inFlight -= 1;
				const labels = `operation="${operation}",status="${status}"`;
				requests.set(labels, (requests.get(labels) ?? 0) + 1);
				const histogram = durations.get(operation) ?? { counts: buckets.map(() => 0), count: 0, sum: 0 };
				durations.set(operation, histogram);
				observe(histogram, (monotonicMicros() - began) / microsPerSecond);
			};
		},
		render: (gauges = {}) =>
			[
				'# HELP mailctl_http_requests_total Requests answered.',
				'# TYPE mailctl_http_requests_total counter',
				...[...requests].map(([labels, count]) => `mailctl_http_requests_total{${labels}} ${count}`),
				'# HELP mailctl_http_request_duration_seconds Time from request to answer.',
				'# TYPE mailctl_http_request_duration_seconds histogram',
				...[...durations].flatMap(([operation, histogram]) => histogramLines(operation, histogram)),
				'# HELP mailctl_http_requests_in_flight Requests being answered.',
				'# TYPE mailctl_http_requests_in_flight gauge',
				`mailctl_http_requests_in_flight ${inFlight}`,
				...gaugeLines(gauges),
				'',
			].join('\n'),
	};
}

function observe(histogram: Histogram, seconds: number): void {
	histogram.count += 1;
	histogram.sum += seconds;
	const index = buckets.findIndex((limit) => seconds <= limit);
	if (index >= 0) histogram.counts[index] = (histogram.counts[index] ?? 0) + 1;
}

function histogramLines(operation: string, { counts, count, sum }: Histogram): string[] {
	const name = 'mailctl_http_request_duration_seconds';
	let below = 0;
	const lines = buckets.map((limit, index) => {
		below += counts[index] ?? 0;
		return `${name}_bucket{operation="${operation}",le="${limit}"} ${below}`;
	});
	return [
		...lines,
		`${name}_bucket{operation="${operation}",le="+Inf"} ${count}`,
		`${name}_sum{operation="${operation}"} ${sum}`,
		`${name}_count{operation="${operation}"} ${count}`,
	];
}

function gaugeLines(gauges: Gauges): string[] {
	const named = new Set<string>();
	return Object.entries(gauges).flatMap(([series, value]) => {
		const name = series.split('{')[0] ?? series;
		const head = named.has(name) ? [] : [`# TYPE ${name} gauge`];
		named.add(name);
		return [...head, `${series} ${value}`];
	});
}
