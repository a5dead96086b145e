/** The sending worker of `serve`: a failure does not end it, and it follows settings that other processes change. */
import { setTimeout as delay } from 'node:timers/promises';
import { noMailServer, stalledReason } from '../../api/pauses.js';
import { ehloName } from '../../delivery/smtp/settings.js';
import { readSettings } from '../../engine/settings.js';
import type { Store } from '../../store/store.js';
import type { DeliverOptions } from '../frame/connection.js';
import { firstSender, type Mailer } from './mail.js';

export interface SendingOptions extends Pick<DeliverOptions, 'connections' | 'rate'> {
	store: Store;
	mailer: Pick<Mailer, 'deliver'>;
	log: (line: object) => void;
}

export interface Sending {
	/** Something new is due. */
	wake(): void;
	/** The obstacle to sending in this process, except a pause by hand, which the store has. */
	whyPaused(): string | null;
	/** Takes no more leases; messages in flight get 9 s, the rest returns to the queue. */
	stop(): Promise<void>;
}

/** How often settings are looked at; and how long a run that failed waits before the next. */
const settingsEveryMs = 2_000;

/** Begins at once; failures are logged and tried again. `stop` never rejects; store and mailer are closed after it. */
export function startSending(options: SendingOptions): Sending {
	const stopping = new AbortController();
	const state: State = { paused: null, wake: () => {} };
	const ended = loop(options, state, stopping.signal);
	return {
		wake: () => state.wake(),
		whyPaused: () => state.paused,
		stop: () => {
			stopping.abort();
			return ended;
		},
	};
}

interface State {
	paused: string | null;
	wake: () => void;
}

async function loop(options: SendingOptions, state: State, signal: AbortSignal): Promise<void> {
	while (!signal.aborted) {
		try {
			const configured = await fingerprint(options.store);
			if (configured === null) state.paused = noMailServer;
			else await runWith(options, state, { configured, signal });
		} catch (error) {
			state.paused = stalledReason(error);
			options.log({ event: 'worker_failed', error: error instanceof Error ? error.message : String(error) });
		}
		await delay(settingsEveryMs, undefined, { signal }).catch(() => undefined);
	}
}

/** One run with the settings as they are; it ends when they change. */
async function runWith(
	{ store, mailer, log, connections, rate }: SendingOptions,
	state: State,
	{ configured, signal }: { configured: string; signal: AbortSignal },
): Promise<void> {
	const changed = new AbortController();
	const watch = setInterval(async () => {
		const now = await fingerprint(store).catch(() => configured);
		if (now !== configured) changed.abort();
	}, settingsEveryMs);
	state.paused = null;
	try {
		await mailer.deliver({
			scope: null,
			until: 'stopped',
			signal: AbortSignal.any([signal, changed.signal]),
			...(connections !== undefined && { connections }),
			...(rate !== undefined && { rate }),
			onReady: (wake) => {
				state.wake = wake;
			},
			onProgress: () => {
				state.paused = null;
			},
			onWaiting: (reason, ms) => {
				state.paused = reason;
				log({ event: 'sending_paused', reason, retry_in_ms: ms });
			},
			// Not remembered: a pause by hand is read from the database, for no event reports its end.
			onHeld: (reason) => log({ event: 'sending_paused', reason }),
			onWarning: (warning) => log({ event: 'content_warning', warning }),
		});
	} finally {
		clearInterval(watch);
		state.wake = () => {};
	}
}

/** The settings a run is made from; `null` without a mail server. */
async function fingerprint(store: Store): Promise<string | null> {
	const settings = await readSettings(store);
	const { smtpUrl, smtpPassword, smtpCa, publicUrl, bounceAddress } = settings;
	if (smtpUrl === null) return null;
	const name = ehloName(settings, await firstSender(store.reads));
	return JSON.stringify([smtpUrl, smtpPassword, smtpCa, name, publicUrl, bounceAddress]);
}
