import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { microsPerSecond } from '../../api/datetime.js';
import type { TestResult, Webhook } from '../../api/records.js';
import { formatSecret, formatTestNotification, signedHeaders } from '../../api/webhook-calls.js';
import { callWebhook } from '../../delivery/notifications/call.js';
import { sendNotifications } from '../../delivery/notifications/sender.js';
import { readSettings } from '../../engine/settings.js';
import { leaseOwner } from '../../store/core/processes.js';
import type { DeliverOptions, DeliverySummary } from './mail.js';
import { freshKey, type LocalParts } from './parts.js';

type NotifierParts = Pick<LocalParts, 'store' | 'clock'>;

interface NotifyOptions {
	until: 'settled' | 'stopped';
	signal: AbortSignal;
	log: (line: NotifyLine) => void;
}

interface NotifyLine {
	event: string;
	reason: string;
}

export function createNotifier({ store, clock }: NotifierParts) {
	const allowPrivate = async () => (await readSettings(store)).allowPrivateWebhooks;
	const secrets = () => store.writes.ensureWebhookSecret({ fresh: freshKey(), now: clock.now() });
	return {
		test: async (webhook: Webhook): Promise<TestResult> => {
			const now = clock.now();
			const id = randomUUID();
			const body = formatTestNotification({ id, type: webhook.type, at: now });
			const signed = { id, timestamp: Math.floor(now / microsPerSecond), body };
			const { status, error, durationMs } = await callWebhook({
				url: webhook.url,
				body,
				headers: signedHeaders(
					signed,
					(await secrets()).map(({ secret }) => formatSecret(secret)),
				),
				credentials: webhook.is_auth_enabled ? { login: webhook.login, password: webhook.password } : null,
				allowPrivate: await allowPrivate(),
			});
			const result = status !== null && status >= 200 && status < 300;
			return { result, status_code: status, error, duration_ms: durationMs };
		},
		run: async ({ until, signal, log }: NotifyOptions) => {
			await secrets();
			const owner = leaseOwner(randomUUID().slice(0, 8));
			await sendNotifications(
				{
					...{ writes: store.writes, clock, owner, random: Math.random, allowPrivate },
					onEvent: (event) => log(lineOf(event)),
				},
				{ until, signal },
			);
		},
	};
}

const againMs = 2_000;

/** Sends the notifications of `serve`. Logs and retries failures. `stop` waits up to 8 s for calls in progress. */
export function startNotifying(parts: NotifierParts, log: (line: object) => void): { stop(): Promise<void> } {
	const notifier = createNotifier(parts);
	const stopping = new AbortController();
	const { signal } = stopping;
	const loop = async () => {
		while (!signal.aborted) {
			await notifier.run({ until: 'stopped', signal, log }).catch((error: unknown) => {
				log({ event: 'notifications_failed', error: error instanceof Error ? error.message : String(error) });
			});
			await delay(againMs, undefined, { signal }).catch(() => undefined);
		}
	};
	const ended = loop();
	return {
		stop: () => {
			stopping.abort();
			return ended;
		},
	};
}

export async function notifyBeside(
	notifier: Pick<ReturnType<typeof createNotifier>, 'run'>,
	{ options, warn }: { options: DeliverOptions; warn: (text: string) => void },
	deliver: () => Promise<DeliverySummary>,
): Promise<DeliverySummary> {
	const ended = new AbortController();
	const run = (until: NotifyOptions['until'], signal: AbortSignal) =>
		notifier.run({ until, signal, log: ({ reason }) => warn(reason) }).catch((error: unknown) => {
			warn(`notifications are not sent: ${error instanceof Error ? error.message : String(error)}`);
		});
	const signals = [ended.signal, ...(options.signal === undefined ? [] : [options.signal])];
	const beside = run('stopped', AbortSignal.any(signals));
	const summary = await deliver().finally(async () => {
		ended.abort();
		await beside;
	});
	const stopped = options.signal ?? new AbortController().signal;
	if (options.until === 'settled' && !stopped.aborted) await run('settled', stopped);
	return summary;
}

type SenderEvent = Parameters<NonNullable<Parameters<typeof sendNotifications>[0]['onEvent']>>[0];

function lineOf(event: SenderEvent): NotifyLine & Record<string, unknown> {
	if (event.kind === 'webhook_stopped') {
		const { webhook_id, url } = event;
		const { origin } = new URL(url);
		return {
			event: 'webhook_stopped',
			webhook_id,
			reason: `webhook ${webhook_id} at ${origin} answered 410`,
		};
	}
	const { error, ms } = event;
	const reason = error instanceof Error ? error.message : String(error);
	return { event: 'notifications_paused', reason, retry_in_ms: ms };
}
