/**
 * Processes tell each other that messages are ready: NOTIFY after a commit and outside of it, for within it every commit
 * would wait for the one before; LISTEN on a connection of its own. Polling goes on beside it: nothing depends on this.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg, { type ClientConfig } from 'pg';
import { backoff } from '../../api/backoff.js';

/** One for all projects of the database, whose schemas are the payloads. */
const channel = 'mailctl';

/** Its parameter is the schema. */
export const notifyText = `SELECT pg_notify('${channel}', $1)`;

const spacingMs = 50;

/** Acts at a call at once, or when the time since the last time is over: then once for all calls. No failure is told. */
export class Spaced {
	readonly #act: () => Promise<void> | void;
	#timer: NodeJS.Timeout | null = null;
	#isWanted = false;
	#acting = Promise.resolve();

	constructor(act: () => Promise<void> | void) {
		this.#act = act;
	}

	call(): void {
		if (this.#timer === null) this.#begin();
		else this.#isWanted = true;
	}

	/** What waits, acts now; resolves after all that began. */
	async flush(): Promise<void> {
		if (this.#isWanted) this.#begin();
		if (this.#timer !== null) clearTimeout(this.#timer);
		await this.#acting;
	}

	#begin(): void {
		this.#isWanted = false;
		this.#acting = this.#acting.then(this.#act).catch(() => undefined);
		this.#timer = setTimeout(() => {
			this.#timer = null;
			if (this.#isWanted) this.#begin();
		}, spacingMs).unref();
	}
}

export interface Listening {
	stop(): void;
}

const firstWaitMs = 1_000;
const longestWaitMs = 60_000;
/** A connection that is only read says nothing of a server that is gone. */
const pingEveryMs = 30_000;

/** Connects in the background, again and again; a new connection calls `onReady` too, for it may have missed something. */
export function listen(
	{ config, schema }: { config: () => ClientConfig; schema: string },
	onReady: () => void,
): Listening {
	const stopping = new AbortController();
	const { signal } = stopping;
	const told = new Spaced(onReady);
	const wait = (ms: number, until: AbortSignal) => delay(ms, undefined, { signal: until, ref: false });
	const loop = async () => {
		for (let failures = 0; !signal.aborted; ) {
			const client = new pg.Client(config());
			const ended = new AbortController();
			const over = AbortSignal.any([signal, ended.signal]);
			client.on('error', () => ended.abort());
			client.on('end', () => ended.abort());
			client.on('notification', ({ payload }) => {
				if (payload === schema) told.call();
			});
			try {
				await client.connect();
				await client.query(`LISTEN ${channel}`);
				failures = 0;
				told.call();
				while (!over.aborted) {
					await wait(pingEveryMs, over).catch(() => undefined);
					if (!over.aborted) await client.query('SELECT 1');
				}
			} catch {
				failures += 1;
			}
			await client.end().catch(() => undefined);
			const ms = backoff({ first: firstWaitMs, longest: longestWaitMs }, Math.max(1, failures));
			await wait(ms * (0.5 + Math.random() / 2), signal).catch(() => undefined);
		}
	};
	void loop();
	return { stop: () => stopping.abort() };
}
