/** Test notifications of the embedded engine. */
import { randomUUID } from 'node:crypto';
import type { TestResult, Webhook } from '../../api/records.js';
import { callWebhook } from '../../delivery/notifications/call.js';
import { testPayload } from '../../delivery/notifications/payload.js';
import { readSettings } from '../../engine/settings.js';
import type { LocalParts } from './parts.js';

export function createNotifier({ store, clock }: LocalParts): {
	test(webhook: Webhook): Promise<TestResult>;
} {
	return {
		test: async (webhook) => {
			const { allowPrivateWebhooks } = await readSettings(store);
			const { status, error, durationMs } = await callWebhook({
				url: webhook.url,
				body: testPayload(webhook, randomUUID(), clock.now()),
				headers: {},
				credentials: webhook.is_auth_enabled ? { login: webhook.login, password: webhook.password } : null,
				allowPrivate: allowPrivateWebhooks,
			});
			const result = status !== null && status >= 200 && status < 300;
			return { result, status_code: status, error, duration_ms: durationMs };
		},
	};
}
