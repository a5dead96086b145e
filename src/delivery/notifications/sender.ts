/** Several processes can send. If one is killed, others send its deliveries with the same ids once its leases end. */
import { backoff } from '../../api/backoff.js';
import { type Clock, type Micros, microsPerMs, microsPerSecond, steadyOf } from '../../api/datetime.js';
import { formatSecret, signedHeaders } from '../../api/webhook-calls.js';
import type { Writes } from '../../store/operations.js';
import type {
	DeliveryResult,
	DeliverySettled,
	DeliverySettlement,
	LeasedDelivery,
} from '../../store/queue.js';
import { Groups } from '../groups.js';
import { callWebhook, type NotificationAnswer } from './call.js';
import { Hosts } from './hosts.js';

export type SenderEvent =
	| { kind: 'webhook_stopped'; webhook_id: number; url: string }
	| { kind: 'store_failed'; error: unknown; ms: number };

interface SenderOptions {
	writes: Pick<Writes, 'leaseDeliveries' | 'settleDeliveries'>;
	clock: Clock;
	owner: string;
	random: () => number;
	allowPrivate: () => Promise<boolean>;
	onEvent?: (event: SenderEvent) => void;
	pollMs?: number;
	drainMs?: number;
	pauseMs?: number;
	/** 120 s by default. Leases are not renewed, so a lease must outlast a call and the wait before the call. */
	leaseMs?: number;
}

interface SenderRun {
	until: 'settled' | 'stopped';
	signal: AbortSignal;
}

interface SenderCounts {
	delivered: number;
	again: number;
	failed: number;
}

interface Settled {
	settlement: DeliverySettlement;
	delivery: LeasedDelivery;
}

/** No call starts when its lease ends within this time, because its outcome could not be recorded. */
const callMs = 20_000;
const leaseMax = 512;
const longestPauseMs = 30_000;
const storeTries = 5;

export async function sendNotifications(options: SenderOptions, run: SenderRun): Promise<SenderCounts> {
	return new Sender(options, run).finish();
}

class Sender {
	readonly #options: Required<Omit<SenderOptions, 'onEvent'>> & Pick<SenderOptions, 'onEvent'>;
	readonly #run: SenderRun;
	readonly #hosts = new Hosts();
	readonly #counts: SenderCounts = { delivered: 0, again: 0, failed: 0 };
	/** Each call has its own signal. A shared signal would keep ended calls in memory. */
	readonly #cuts = new Set<AbortController>();
	#isCutting = false;
	#isDraining = false;
	readonly #leaseEnds = new Map<string, number>();
	readonly #settlements: Groups<Settled, DeliverySettled>;
	#secrets: readonly string[] = [];
	#allowPrivate = false;
	#failures = 0;
	readonly #waiting = new Set<() => void>();

	constructor(options: SenderOptions, run: SenderRun) {
		this.#options = { pollMs: 500, drainMs: 8_000, leaseMs: 120_000, pauseMs: 250, ...options };
		this.#run = run;
		this.#settlements = new Groups({
			...{ size: 64, ms: 25 },
			write: (group) => this.#write(group.map(({ settlement }) => settlement)),
			written: (each, result = 'lost_lease') => this.#onSettled(each, result),
			onFault: () => undefined,
		});
	}

	async finish(): Promise<SenderCounts> {
		const onAbort = () => this.#changed();
		this.#run.signal.addEventListener('abort', onAbort);
		try {
			while (!this.#run.signal.aborted) {
				// Read `#isQuiet` first. While `#lease` runs, a stored outcome may make a delivery due that `#lease` misses.
				const wasQuiet = this.#isQuiet;
				const leased = await this.#lease();
				this.#startCalls();
				if (this.#isOver(wasQuiet && this.#isQuiet && leased === 0)) break;
				const isNews = this.#isQuiet && !wasQuiet;
				if (!this.#isLow && !isNews) await this.#change(this.#options.pollMs);
			}
			await this.#drain();
			return this.#counts;
		} finally {
			this.#run.signal.removeEventListener('abort', onAbort);
		}
	}

	get #isLow(): boolean {
		return this.#hosts.isLow(performance.now());
	}

	get #isQuiet(): boolean {
		return this.#hosts.underWay === 0 && this.#settlements.unwritten === 0;
	}

	#isOver(isIdle: boolean): boolean {
		if (this.#run.until === 'stopped') return false;
		return this.#failures === 0 ? isIdle : this.#failures >= storeTries;
	}

	async #lease(): Promise<number> {
		const { writes, clock, owner, allowPrivate, leaseMs } = this.#options;
		const now = clock.now();
		const until = now + leaseMs * microsPerMs;
		const end = steadyOf(clock) + leaseMs * microsPerMs;
		const { each } = this.#hosts;
		const shares = this.#hosts.shares(performance.now());
		try {
			const command = { owner, now, until, max: leaseMax, each, shares };
			const { deliveries, secrets } = await writes.leaseDeliveries(command);
			this.#secrets = secrets.map(formatSecret);
			this.#allowPrivate = await allowPrivate();
			for (const { delivery } of deliveries) this.#leaseEnds.set(delivery, end);
			this.#hosts.add(deliveries);
			this.#failures = 0;
			return deliveries.length;
		} catch (error) {
			await this.#pause(error);
			return 0;
		}
	}

	#startCalls(): void {
		for (;;) {
			const delivery = this.#run.signal.aborted ? null : this.#hosts.next(performance.now());
			if (delivery === null) return;
			void this.#call(delivery).then(() => this.#onEnded());
		}
	}

	#onEnded(): void {
		this.#startCalls();
		const isIdle = this.#hosts.underWay === 0;
		if (isIdle || this.#isLow || this.#run.signal.aborted) this.#changed();
	}

	async #call(delivery: LeasedDelivery): Promise<void> {
		const { clock, random } = this.#options;
		const end = this.#leaseEnds.get(delivery.delivery) ?? 0;
		if (steadyOf(clock) + callMs * microsPerMs > end) {
			this.#hosts.ended(delivery, { isAnswered: null, nowMs: performance.now() });
			this.#push(delivery, { kind: 'released' });
			return;
		}
		const { delivery: id, payload: body, url, credentials } = delivery;
		const timestamp = Math.floor(clock.now() / microsPerSecond);
		const cut = new AbortController();
		this.#cuts.add(cut);
		const answer = await callWebhook({
			url,
			body,
			headers: signedHeaders({ id, timestamp, body }, this.#secrets),
			credentials,
			allowPrivate: this.#allowPrivate,
			signal: cut.signal,
		});
		this.#cuts.delete(cut);
		this.#hosts.ended(delivery, { isAnswered: answer.status !== null, nowMs: performance.now() });
		const isCut = this.#isCutting && answer.status === null;
		const attempted = { before: delivery.attempts, url, answer, now: clock.now(), random: random() };
		this.#push(delivery, isCut ? { kind: 'released' } : resultOf(attempted));
	}

	#push(delivery: LeasedDelivery, result: DeliverySettlement['result']): void {
		const { delivery: id, fence } = delivery;
		const settlement = { delivery: id, fence, at: this.#options.clock.now(), result };
		this.#settlements.push({ settlement, delivery });
	}

	/** If the outcome of a call is never stored, a sender repeats the call once the lease has ended. */
	async #write(settlements: DeliverySettlement[]): Promise<DeliverySettled[]> {
		for (let tries = 1; ; tries += 1) {
			try {
				return await this.#options.writes.settleDeliveries({ settlements });
			} catch (error) {
				await this.#pause(error);
				if (this.#isDraining && tries >= storeTries) throw error;
			}
		}
	}

	#onSettled({ settlement, delivery }: Settled, result: DeliverySettled): void {
		const { kind } = settlement.result;
		if (this.#isQuiet) this.#changed();
		this.#leaseEnds.delete(settlement.delivery);
		if (result === 'lost_lease' || kind === 'released') return;
		this.#counts[result === 'moved' ? 'again' : kind === 'gone' ? 'failed' : kind] += 1;
		const { webhook_id, url } = delivery;
		if (kind === 'gone' && result !== 'moved')
			this.#options.onEvent?.({ kind: 'webhook_stopped', webhook_id, url });
	}

	async #pause(error: unknown): Promise<void> {
		this.#failures += 1;
		const pauses = { first: this.#options.pauseMs, longest: longestPauseMs };
		const ms = this.#run.signal.aborted ? 100 : backoff(pauses, this.#failures);
		this.#options.onEvent?.({ kind: 'store_failed', error, ms });
		await this.#change(ms);
	}

	async #drain(): Promise<void> {
		this.#isDraining = true;
		for (const delivery of this.#hosts.drop()) this.#push(delivery, { kind: 'released' });
		const timer = setTimeout(() => this.#cutAll(), this.#options.drainMs);
		while (this.#hosts.underWay > 0) await this.#change(this.#options.pollMs);
		clearTimeout(timer);
		await this.#settlements.flush().catch(() => undefined);
	}

	#cutAll(): void {
		this.#isCutting = true;
		for (const cut of this.#cuts) cut.abort();
	}

	#changed(): void {
		for (const wake of this.#waiting) wake();
	}

	#change(ms: number): Promise<void> {
		return new Promise((resolve) => {
			const wake = () => {
				clearTimeout(timer);
				this.#waiting.delete(wake);
				resolve();
			};
			const timer = setTimeout(wake, ms);
			this.#waiting.add(wake);
		});
	}
}

/** Seconds before each attempt. A random ±10 % spreads deliveries that failed at the same time. */
const delays = [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
const jitter = 0.1;
const longestRetryAfter: Micros = 86_400 * microsPerSecond;

interface Attempted {
	before: number;
	url: string;
	answer: NotificationAnswer;
	now: Micros;
	random: number;
}

/** The sender does not follow a redirect. It repeats the call, as after a failure. */
function resultOf({ before, url, answer, now, random }: Attempted): DeliveryResult {
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
