/**
 * Threads that compose and sign mails before the sender asks for them. Each thread writes mails into a few slabs of
 * shared memory. The caller reads a mail in place and then releases it, so that the thread can reuse the slab.
 */
import { availableParallelism } from 'node:os';
import type { Worker } from 'node:worker_threads';
import type { Uuid } from '../api/records.js';
import type { Ahead, ComposingSettings, LentMail, MailSource } from '../delivery/composer.js';
import type { KeysFor } from '../delivery/dkim/sign.js';
import { sliceBytes } from '../delivery/smtp/dialogue.js';
import type { Mail } from '../delivery/smtp/transaction.js';
import type { Leased } from '../store/queue.js';
import { Channel } from './channel.js';
import { spawnThread } from './spawn.js';

export interface ComposingThreads extends Ahead {
	close(): Promise<void>;
}

export interface ComposingOrder {
	settings: ComposingSettings;
	slabs: readonly SharedArrayBuffer[];
}

export interface ComposingJob {
	slab: number;
	messages: readonly Leased[];
	source?: MailSource;
}

export type ComposedAhead = (Pick<Mail, 'from' | 'to' | 'copies'> & { length: number }) | null;

const worthwhile = 300;
const tooLate = 100;
const mostThreads = 4;
const jobsAhead = 2;
const slabsEach = 6;
const slabBytes = 512 * 1024;
const perJob = 20;
const idleMs = 10_000;
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 4 };

/**
 * Starts a thread after `worthwhile` messages. Starts more while mails come late, up to one per core and at most
 * `mostThreads`. Idle threads end.
 */
export function createComposingThreads(options: ComposingOptions): ComposingThreads {
	return new Composing(options);
}

export interface ComposingOptions {
	settings: ComposingSettings;
	keysFor: KeysFor;
	cores?: number;
	spawn?: typeof spawnThread;
}

interface Expected {
	message: Leased;
	source: MailSource;
	job: Job | null;
	mail: ComposedAhead | undefined;
	from: number;
	waiter: ((mail: LentMail | null) => void) | null;
}

interface Job {
	lane: Lane;
	slab: number;
	expected: readonly Expected[];
	left: number;
	lent: number;
}

class Composing implements ComposingThreads {
	readonly keysFor: KeysFor;
	readonly #startWorker: (slabs: readonly SharedArrayBuffer[]) => Worker;
	readonly #most: number;
	#lanes: Lane[] = [];
	readonly #expected = new Map<Uuid, Expected>();
	#queue: Expected[] = [];
	#seen = 0;
	#late = 0;
	#isClosed = false;
	#idle: NodeJS.Timeout | null = null;

	constructor({ settings, keysFor, cores = availableParallelism(), spawn = spawnThread }: ComposingOptions) {
		this.keysFor = keysFor;
		this.#startWorker = (slabs) =>
			spawn('compose', { workerData: { settings, slabs } satisfies ComposingOrder, resourceLimits });
		this.#most = cores < 2 ? 0 : Math.min(cores, mostThreads);
	}

	expect(source: MailSource, messages: readonly Leased[]): void {
		this.#seen += messages.length;
		if (this.#isClosed || this.#most === 0 || this.#seen < worthwhile) return;
		if (this.#lanes.length === 0) this.#start();
		this.#idle ??= setTimeout(() => void this.#end(), idleMs).unref();
		this.#idle.refresh();
		for (const message of messages) {
			this.#forget(message.message);
			const one = { message, source, job: null, mail: undefined, from: 0, waiter: null };
			this.#expected.set(message.message, one);
			this.#queue.push(one);
		}
		this.#hand();
	}

	take(message: Uuid): LentMail | Promise<LentMail | null> | null {
		const one = this.#expected.get(message);
		if (one === undefined) return null;
		for (const earlier of this.#expected.keys()) {
			if (earlier === message) break;
			this.#forget(earlier);
		}
		if (one.mail === undefined) this.#wasLate();
		if (one.job === null || one.mail !== undefined) {
			const mail = this.#lend(one);
			this.#forget(message);
			return mail;
		}
		this.#expected.delete(message);
		return new Promise((resolve) => {
			one.waiter = resolve;
		});
	}

	async close(): Promise<void> {
		this.#isClosed = true;
		await this.#end();
	}

	#start(): void {
		const lane = new Lane(this.#startWorker, {
			onReady: () => this.#hand(),
			onAnswer: (job) => this.#answered(job),
			// Another thread would fail for the same reason. Without threads, the main thread composes the mails.
			onFailure: () => void this.close(),
		});
		this.#lanes.push(lane);
	}

	#wasLate(): void {
		this.#late += 1;
		const mayStart = this.#lanes.length < this.#most && this.#lanes.every((lane) => lane.isReady);
		if (this.#late < tooLate || !mayStart) return;
		this.#late = 0;
		this.#start();
	}

	#hand(): void {
		for (const lane of this.#lanes)
			while (lane.isFree && this.#queue.length > 0) lane.give(this.#neighbours());
	}

	#neighbours(): Expected[] {
		const source = this.#queue[0]?.source;
		const other = this.#queue.findIndex((one, at) => at === perJob || one.source !== source);
		return this.#queue.splice(0, other === -1 ? this.#queue.length : other);
	}

	#forget(message: Uuid): void {
		const one = this.#expected.get(message);
		if (one === undefined) return;
		this.#expected.delete(message);
		if (one.job !== null) this.#leave(one.job);
		else this.#queue.splice(this.#queue.indexOf(one), 1);
	}

	#answered(job: Job): void {
		for (const one of job.expected) {
			if (one.waiter === null) continue;
			one.waiter(this.#lend(one));
			this.#leave(job);
		}
	}

	/** Copies a mail if no slab is spare. Also copies large mails, because a socket may use them after `release`. */
	#lend({ job, mail, from }: Expected): LentMail | null {
		if (job === null || mail == null) return null;
		const { length, ...envelope } = mail;
		const octets = job.lane.octets(job.slab, from, length);
		if (length > sliceBytes || !job.lane.hasSpare)
			return { mail: { ...envelope, bytes: Buffer.from(octets) }, release: () => undefined };
		job.lent += 1;
		const release = () => {
			job.lent -= 1;
			this.#takeBack(job);
		};
		return { mail: { ...envelope, bytes: octets }, release };
	}

	#leave(job: Job): void {
		job.left -= 1;
		if (job.left > 0) return;
		job.lane.endTaking();
		this.#takeBack(job);
		this.#hand();
	}

	#takeBack(job: Job): void {
		if (job.left > 0 || job.lent > 0) return;
		job.lane.takeBack(job);
		this.#hand();
	}

	async #end(): Promise<void> {
		if (this.#idle !== null) clearTimeout(this.#idle);
		this.#idle = null;
		this.#seen = 0;
		this.#queue = [];
		this.#expected.clear();
		const lanes = this.#lanes;
		this.#lanes = [];
		await Promise.all(lanes.map((lane) => lane.end()));
	}
}

interface LaneEvents {
	onReady: () => void;
	onAnswer: (job: Job) => void;
	onFailure: () => void;
}

class Lane {
	readonly #channel: Channel;
	readonly #onAnswer: (job: Job) => void;
	readonly #slabs = Array.from({ length: slabsEach }, () => new SharedArrayBuffer(slabBytes));
	readonly #jobs = new Set<Job>();
	#ahead = 0;
	readonly #spare = this.#slabs.map((_, index) => index);
	#source: MailSource | null = null;
	#isReady = false;

	constructor(
		start: (slabs: readonly SharedArrayBuffer[]) => Worker,
		{ onReady, onAnswer, onFailure }: LaneEvents,
	) {
		const failed = (why: string, cause: unknown) => new Error(`the composing thread ${why}`, { cause });
		this.#channel = new Channel(start(this.#slabs), { failed, onFailure });
		this.#channel.unref();
		this.#onAnswer = onAnswer;
		const ready = () => {
			this.#isReady = true;
			onReady();
		};
		this.#channel.ask('started', null).then(ready, () => undefined);
	}

	get isReady(): boolean {
		return this.#isReady;
	}

	get isFree(): boolean {
		return this.#isReady && this.#ahead < jobsAhead && this.#spare.length > 0;
	}

	get hasSpare(): boolean {
		return this.#spare.length > 0;
	}

	give(expected: readonly Expected[]): void {
		const [slab, source] = [this.#spare.shift(), expected[0]?.source];
		if (slab === undefined || source === undefined) return;
		this.#ahead += 1;
		const job = { lane: this, slab, expected, left: expected.length, lent: 0 };
		for (const one of expected) one.job = job;
		this.#jobs.add(job);
		const messages = expected.map(({ message }) => message);
		const order: ComposingJob = { slab, messages, ...(source !== this.#source && { source }) };
		this.#source = source;
		this.#channel.ask('compose', order).then(
			(mails) => this.#place(job, mails as readonly ComposedAhead[]),
			() => undefined,
		);
	}

	#place(job: Job, mails: readonly ComposedAhead[]): void {
		if (!this.#jobs.has(job)) return;
		let from = 0;
		for (const [at, one] of job.expected.entries()) {
			const mail = mails[at] ?? null;
			one.mail = mail;
			one.from = from;
			from += mail?.length ?? 0;
		}
		this.#onAnswer(job);
	}

	octets(slab: number, from: number, length: number): Buffer {
		return Buffer.from(this.#slabs[slab] ?? new SharedArrayBuffer(0), from, length);
	}

	endTaking(): void {
		this.#ahead -= 1;
	}

	/** The slab is free even if the thread has not composed this job yet: the thread composes jobs in order. */
	takeBack(job: Job): void {
		this.#jobs.delete(job);
		this.#spare.push(job.slab);
	}

	async end(): Promise<void> {
		for (const { expected } of this.#jobs) for (const { waiter } of expected) waiter?.(null);
		this.#jobs.clear();
		await this.#channel.end();
	}
}
