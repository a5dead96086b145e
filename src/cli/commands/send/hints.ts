/** The way out of what a service refuses about a send. */
import type { Refused } from '../../refusals.js';

export function sendHint({ path, message }: Refused): string | undefined {
	if (path === 'from' && message.includes('not verified')) return 'mailctl senders add ADDRESS';
	if (path === 'type' && message.includes('public URL'))
		return 'mailctl engine init --public-url https://mail.example.com';
	return path.startsWith('template_unique_id') ? 'mailctl templates list' : undefined;
}
