/** The body of a webhook delivery (api-decisions 32). */
import { formatDateTime, type Micros } from './datetime.js';
import type { Uuid, WireDateTime } from './records.js';

export interface Notification {
	id: Uuid;
	type: string;
	date: WireDateTime;
	test: boolean;
	message: {
		id: Uuid;
		to: string;
		from: string;
		subject: string;
		tag: string | null;
		campaign_unique_id: Uuid | null;
	};
	data: {
		url: string | null;
		ip: string | null;
		user_agent: string | null;
		/** True for a scanner or a prefetching proxy. */
		machine: boolean;
		/** The enhanced code (`5.1.1`) if there is one. */
		smtp_code: string | null;
		diagnostic: string | null;
	};
}

export interface Notice extends Pick<Notification, 'id' | 'type' | 'message' | 'data'> {
	at: Micros;
}

export function formatNotification({ id, type, at, message, data }: Notice): string {
	return JSON.stringify(body({ id, type, at, message, data }, { test: false }));
}

export function formatTestNotification({ id, type, at }: Pick<Notice, 'id' | 'type' | 'at'>): string {
	const message = {
		id: '00000000-0000-0000-0000-000000000000',
		to: 'recipient@example.com',
		from: 'sender@example.com',
		subject: 'Test notification',
		tag: null,
		campaign_unique_id: null,
	};
	const data = { url: null, ip: null, user_agent: null, machine: false, smtp_code: null, diagnostic: null };
	return JSON.stringify(body({ id, type, at, message, data }, { test: true }));
}

function body({ id, type, at, message, data }: Notice, { test }: Pick<Notification, 'test'>): Notification {
	return {
		id,
		type,
		date: formatDateTime(at),
		test,
		message: {
			id: message.id,
			to: message.to,
			from: message.from,
			subject: message.subject,
			tag: message.tag,
			campaign_unique_id: message.campaign_unique_id,
		},
		data: {
			url: data.url,
			ip: data.ip,
			user_agent: data.user_agent,
			machine: data.machine,
			smtp_code: data.smtp_code,
			diagnostic: data.diagnostic,
		},
	};
}
