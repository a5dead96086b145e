/** What a notification says. Assumption: the service document shows no payload; these keys are the contract. */
import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { Uuid, Webhook } from '../../api/records.js';

/** The body of a test notification: the shape of a real one, about a message that never was. */
export function testPayload(webhook: Webhook, id: Uuid, now: Micros): string {
	return JSON.stringify({
		id,
		type: webhook.type,
		date: formatDateTime(now),
		test: true,
		message: {
			id: '00000000-0000-0000-0000-000000000000',
			to: 'recipient@example.com',
			from: 'sender@example.com',
			subject: 'Test notification',
			tag: null,
			campaign_unique_id: null,
		},
		data: { url: null, ip: null, user_agent: null, machine: false, smtp_code: null, diagnostic: null },
	});
}
