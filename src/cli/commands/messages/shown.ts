/** Messages as all their commands show and name them. */
import type { DeliveryAttempt, Message } from '../../../api/records.js';
import { UsageError } from '../../errors.js';
import { type Columns, column } from '../../render/columns.js';

/** A message, with its attempts where it was asked for alone. */
export type Detailed = Message & { delivery_attempts?: DeliveryAttempt[] };

export const messageColumns: Columns<Detailed> = [
	column('id', 'ID', { isName: true, isWhole: true }),
	column('to', 'TO'),
	column('state', 'STATE'),
	column('subject', 'SUBJECT'),
	column('from', 'FROM', { wide: true }),
	column('type', 'TYPE', { wide: true }),
	column('tag', 'TAG', { wide: true }),
	column('campaign_unique_id', 'CAMPAIGN', { wide: true }),
	column('list_id', 'LIST', { wide: true, align: 'right' }),
	column('attempts', 'ATTEMPTS', { align: 'right', wide: true }),
	column('due_at', 'DUE', { wide: true }),
	column('date_created', 'CREATED', { wide: true }),
	column('date_sent', 'SENT', { wide: true }),
	column('last_reply', 'LAST REPLY', { wide: true }),
	{
		key: 'delivery_attempts',
		header: 'DELIVERY ATTEMPTS',
		wide: true,
		value: (message: Detailed) => message.delivery_attempts?.map(attemptLine).join('; '),
	},
];

/** The message, or `not_found` (exit 3) with a hint. */
export async function existing<T>(message: Promise<T>, id: string): Promise<T> {
	const { missing, orNull } = await import('../../resolve.js');
	const found = await orNull(message);
	if (found === null) throw missing('message', id, 'mailctl messages list');
	return found;
}

/** Lower case; a usage error says what it should be the UUID of. */
export function uuidOf(text: string, of: string): string {
	if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) {
		throw new UsageError(`"${text}" is no UUID of ${of}`, { hint: 'mailctl messages list' });
	}
	return text.toLowerCase();
}

function attemptLine({ number, at, outcome, phase, code, enhanced, text }: DeliveryAttempt): string {
	const reply = [code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
	return `${number}. ${at} ${outcome} at ${phase}: ${reply}`;
}
