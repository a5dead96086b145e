import type { Messages } from '../../../api/capabilities.js';
import type {
	DeletedMessages,
	DeliveryAttempt,
	Message,
	MessageDetail,
	MessageEvent,
	MessageHold,
	MessageReport,
} from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type Column, type Columns, column } from '../../render/columns.js';
import type { Times } from '../../render/times.js';
import { attachmentLines } from '../../render/units.js';
import { isUuid, missing, orNull } from '../../verbs/resolve.js';

export const messageColumns: Columns<Message> = [
	column('id', 'ID', { isName: true, isKept: 'id' }),
	column('to', 'TO', { isKept: 'address' }),
	column('state', 'STATE'),
	column('subject', 'SUBJECT', { isOptional: true }),
	column('from', 'FROM', { wide: true }),
	column('type', 'TYPE', { wide: true }),
	column('tag', 'TAG', { wide: true }),
	column('campaign_unique_id', 'CAMPAIGN ID', { wide: true }),
	column('list_id', 'LIST', { wide: true, align: 'right' }),
	column('attempts', 'ATTEMPTS', { align: 'right', wide: true }),
	column('due_at', 'DUE', { time: 'text', wide: true }),
	column('date_created', 'CREATED', { time: 'recent' }),
	column('date_sent', 'SENT', { time: 'text', wide: true }),
	column('last_reply', 'LAST REPLY', { wide: true }),
	column('campaign', 'CAMPAIGN', { isKept: 'name', isOptional: true }),
];

export const detailColumns: Columns<MessageDetail> = [
	...messageColumns,
	wideLines('delivery_attempts', 'DELIVERY ATTEMPTS', attemptLine),
	wideLines('events', 'EVENTS', eventLine),
	wideLines('reports', 'REPORTED', reportLine),
	wideLines('held_by', 'HELD BACK', holdLine),
	column('tracking', 'TRACKING', { wide: true }),
	{
		key: 'attachments',
		header: 'ATTACHED',
		wide: true,
		value: ({ attachments }: MessageDetail) => attachments,
		lines: ({ attachments }: MessageDetail) => attachmentLines(attachments),
	},
];

function wideLines<K extends 'delivery_attempts' | 'events' | 'reports' | 'held_by'>(
	key: K,
	header: string,
	lineOf: (one: NonNullable<MessageDetail[K]>[number], times: Times) => string,
): Column<MessageDetail> {
	return {
		key,
		header,
		wide: true,
		value: (message) => message[key],
		lines: ({ [key]: all }, times) => [...(all ?? [])].map((one) => lineOf(one, times)),
	};
}

/**
 * The history of a message, in lines: attempts, events, reports, limits. An event is left out where an attempt or a
 * returned mail tells it. Text of servers is not cleaned.
 */
export function detailLines(message: MessageDetail, times: Times): string[] {
	const { delivery_attempts, events = [], reports = [], held_by = [] } = message;
	const told = new Set<string>(['CREATED', 'SENT', ...reports.map(({ event }) => event)]);
	if (delivery_attempts.some(({ outcome }) => outcome === 'bounced')) told.add('HARDBOUNCED');
	return [
		...delivery_attempts.map((one) => attemptLine(one, times)),
		...events.filter(({ type }) => !told.has(type)).map((one) => eventLine(one, times)),
		...reports.map((one) => reportLine(one, times)),
		...held_by.map((one) => holdLine(one, times)),
	];
}

/** The message, or `not_found` (exit 3) with a hint: it may be one that retention has deleted. */
export async function existing<T>(
	cx: CommandContext,
	messages: Pick<Messages, 'page'>,
	{ id, message }: { id: string; message: Promise<T> },
): Promise<T> {
	const found = await orNull(message);
	if (found !== null) return found;
	const { deleted } = await messages.page({ page_size: 1 }, { signal: cx.signal });
	if (deleted !== undefined) await cx.note(deletedText(deleted, cx.times));
	throw missing('message', id, mailctl('messages', 'list'));
}

export function deletedText({ before, keep_messages }: DeletedMessages, times: Times): string {
	return `messages before ${times.day(before)} are deleted (keep_messages ${keep_messages})`;
}

export function uuidOf(text: string, of: string): string {
	if (!isUuid(text)) {
		throw new UsageError(`"${text}" is not the UUID of ${of}`, { hint: mailctl('messages', 'list') });
	}
	return text.toLowerCase();
}

function holdLine({ setting, limit, until }: MessageHold, times: Times): string {
	return `by the limit ${limit} of ${setting}, not before ${times.text(until)}`;
}

function attemptLine(
	{ number, at, outcome, phase, code, enhanced, text }: DeliveryAttempt,
	times: Times,
): string {
	const reply = [code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
	const where = outcome === 'sent' ? outcome : `${outcome} at ${phase}`;
	return `${number}. ${times.text(at)} ${where}: ${reply}`;
}

function eventLine({ type, time, count, link, machine }: MessageEvent, times: Times): string {
	const more = [
		...(link === null ? [] : [link]),
		...(count > 1 ? [`${count} times`] : []),
		...(machine ? ['by a program'] : []),
	];
	const what = type === 'REDIRECTED' ? 'clicked' : type.toLowerCase();
	return [`${times.text(time)} ${what}`, more.join(', ')].filter((part) => part !== '').join(': ');
}

function reportLine({ at, event, code, diagnostic }: MessageReport, times: Times): string {
	const said = [isIn(code, diagnostic) ? null : code, diagnostic].filter((part) => part !== null);
	return [`${times.text(at)} ${event} by mail`, said.join(' ')].filter((part) => part !== '').join(': ');
}

/** Diagnostics mostly have the code: `550 5.1.1 …`, `550-5.1.1 …`. */
function isIn(code: string | null, diagnostic: string | null): boolean {
	return code !== null && diagnostic?.split(/[\s-]+/).includes(code) === true;
}
