import { expect, it } from 'vitest';
import { systemClock } from '../../../../src/api/datetime.js';
import type { MessageDetail } from '../../../../src/api/records.js';
import { detailLines } from '../../../../src/cli/commands/messages.js';
import { createTimes } from '../../../../src/cli/render/times.js';

const times = createTimes({ zone: () => 'UTC', clock: systemClock, isRead: true });

it('the history of a message lists its opens, clicks and unsubscriptions, each with its time', () => {
	const event = { time: '2026-11-03T10:00:00.000000', count: 1, link: null, machine: false };
	const message: MessageDetail = {
		...{ id: '01a20000-0000-7000-8000-000000000001', to: 'ann@example.com', from: 'news@example.com' },
		...{ subject: 'S', type: 'BULK', tag: null, campaign_unique_id: null, list_id: 1, state: 'sent' },
		...{ attempts: 1, due_at: null, date_created: event.time, date_sent: event.time, last_reply: null },
		delivery_attempts: [],
		events: [
			{ ...event, type: 'OPENED', count: 2 },
			{ ...event, type: 'REDIRECTED', link: 'https://example.com/sale' },
			{ ...event, type: 'UNSUBSCRIBED' },
		],
	};
	expect(detailLines(message, times)).toEqual([
		'2026-11-03 10:00 opened: 2 times',
		'2026-11-03 10:00 clicked: https://example.com/sale',
		'2026-11-03 10:00 unsubscribed',
	]);
});
