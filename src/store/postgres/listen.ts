/**
 * Sends NOTIFY after COMMIT, because PostgreSQL runs commits that contain NOTIFY one after the other. LISTEN uses a
 * separate connection. Workers also poll, so a lost notification only delays a message.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg, { type ClientConfig } from 'pg';
import { backoff } from '../../api/backoff.js';

const channel = 'mailctl';

export const notifyText = `SELECT pg_notify('${channel}', $1)`;

const spacingMs = 50;

/** The first `call` runs `act` at once. Calls in the next 50 ms share one run. Ignores failures of `act`. */
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
const pingEveryMs = 30_000;

/** Reconnects until `stop`. Each connect calls `onReady`, because a notification may have been missed. */
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
