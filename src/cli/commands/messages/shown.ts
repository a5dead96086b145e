/** Messages as all their commands show and name them. */

import type {
	DeliveryAttempt,
	Message,
	MessageDetail,
	MessageEvent,
	MessageHold,
	MessageReport,
} from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import { UsageError } from '../../frame/errors.js';
import { tableCell } from '../../render/cells.js';
import { type Columns, column } from '../../render/columns.js';
import { isUuid } from '../../verbs/resolve.js';

/** Of a message as lists show it. */
export const messageColumns: Columns<Message> = [
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
];

/** Of a message that was asked for alone. */
export const detailColumns: Columns<MessageDetail> = [
	...messageColumns,
	{
		key: 'delivery_attempts',
		header: 'DELIVERY ATTEMPTS',
		wide: true,
		value: ({ delivery_attempts }: MessageDetail) => delivery_attempts,
		lines: ({ delivery_attempts }: MessageDetail) => delivery_attempts.map(attemptLine),
	},
	{
		key: 'events',
		header: 'EVENTS',
		wide: true,
		value: ({ events }: MessageDetail) => events,
		lines: ({ events = [] }: MessageDetail) => events.map(eventLine),
	},
	{
		key: 'reports',
		header: 'REPORTED',
		wide: true,
		value: ({ reports }: MessageDetail) => reports,
		lines: ({ reports = [] }: MessageDetail) => reports.map(reportLine),
	},
	{
		key: 'held_by',
		header: 'HELD BACK',
		wide: true,
		value: ({ held_by }: MessageDetail) => held_by,
		lines: ({ held_by = [] }: MessageDetail) => held_by.map(holdLine),
	},
];

/** The history of a message, in lines: attempts, events, reports, limits. Text of servers is not cleaned. */
export function detailLines(message: MessageDetail): string[] {
	return [
		...message.delivery_attempts.map(attemptLine),
		...(message.events ?? []).filter(({ type }) => type !== 'CREATED' && type !== 'SENT').map(eventLine),
		...(message.reports ?? []).map(reportLine),
		...(message.held_by ?? []).map(holdLine),
	];
}

/** The message, or `not_found` (exit 3) with a hint. */
export async function existing<T>(message: Promise<T>, id: string): Promise<T> {
	const { missing, orNull } = await import('../../verbs/resolve.js');
	const found = await orNull(message);
	if (found === null) throw missing('message', id, mailctl('messages', 'list'));
	return found;
}

/** Lower case; `of` completes the usage error "… is no UUID of". */
export function uuidOf(text: string, of: string): string {
	if (!isUuid(text)) {
		throw new UsageError(`"${text}" is no UUID of ${of}`, { hint: mailctl('messages', 'list') });
	}
	return text.toLowerCase();
}

function holdLine({ setting, limit, until }: MessageHold): string {
	return `by the limit ${limit} of ${setting}, not before ${tableCell(until)}`;
}

function attemptLine({ number, at, outcome, phase, code, enhanced, text }: DeliveryAttempt): string {
	const reply = [code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
	return `${number}. ${tableCell(at)} ${outcome} at ${phase}: ${reply}`;
}

function eventLine({ type, time, count, link, machine }: MessageEvent): string {
	const more = [
		...(link === null ? [] : [link]),
		...(count > 1 ? [`${count} times`] : []),
		...(machine ? ['by a program'] : []),
	];
	return [`${tableCell(time)} ${type}`, more.join(', ')].filter((part) => part !== '').join(': ');
}

/** The reporter is not shown: every way of ingestion means a returned mail. */
function reportLine({ at, event, code, diagnostic }: MessageReport): string {
	const said = [isIn(code, diagnostic) ? null : code, diagnostic].filter((part) => part !== null);
	return [`${tableCell(at)} ${event} by mail`, said.join(' ')].filter((part) => part !== '').join(': ');
}

/** Diagnostics mostly begin with the code. */
function isIn(code: string | null, diagnostic: string | null): boolean {
	return code !== null && diagnostic?.startsWith(code) === true;
}
