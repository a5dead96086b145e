import { formatDateTime, type Micros } from './datetime.js';
import type { Uuid } from './records.js';

export interface Notice {
	id: Uuid;
	type: string;
	at: Micros;
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
		smtp_code: string | null;
		diagnostic: string | null;
	};
}

export function formatNotification({ id, type, at, message, data }: Notice, test = false): string {
	return JSON.stringify({ id, type, date: formatDateTime(at), test, message, data });
}

export function formatTestNotification(event: Pick<Notice, 'id' | 'type' | 'at'>): string {
	const message = {
		id: '00000000-0000-0000-0000-000000000000',
		to: 'recipient@example.com',
		from: 'sender@example.com',
		subject: 'Test notification',
		tag: null,
		campaign_unique_id: null,
	};
	const data = { url: null, ip: null, user_agent: null, machine: false, smtp_code: null, diagnostic: null };
	return formatNotification({ ...event, message, data }, true);
}
