import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { startSending } from '../../../src/cli/connect/serve.js';
import type { DeliverOptions } from '../../../src/cli/frame/connection.js';
import { openStore } from '../../../src/store/open.js';
import { eventually } from '../../support/eventually.js';

it('a worker stores no reason for a manual pause, because the engine reads this pause from the database', async () => {
	const store = await openStore(':memory:', { clock: systemClock, mode: 'create' });
	onTestFinished(() => store.close());
	await store.writes.putSettings({ values: { smtp_url: 'smtp://127.0.0.1:2525' }, now: systemClock.now() });
	let told: DeliverOptions | null = null;
	const sending = startSending({
		store,
		mailer: {
			deliver: async (options) => {
				told = options;
				options.onHeld?.('the queue is paused');
				const { signal = new AbortController().signal } = options;
				await once(signal, 'abort');
				throw signal.reason;
			},
		},
		log: () => undefined,
	});
	onTestFinished(() => sending.stop());
	await eventually(() => expect(told).not.toBe(null));
	expect(sending.whyPaused()).toBeNull();
});
