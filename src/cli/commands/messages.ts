import { type Messages, need } from '../../api/capabilities.js';
import { ApiError, listFieldErrors } from '../../api/errors.js';
import {
	type DeletedMessages,
	type DeliveryAttempt,
	type Message,
	type MessageDetail,
	type MessageEvent,
	type MessageHold,
	type MessageReport,
	messageStates,
} from '../../api/records.js';
import { type CommandGroup, command } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { isMachine } from '../frame/globals.js';
import { given } from '../frame/values.js';
import { cleanLines } from '../render/clean.js';
import { type Column, type Columns, column } from '../render/columns.js';
import type { Times } from '../render/times.js';
import { attachmentLines } from '../render/units.js';
import { changeEach, findEach, nameOrCount, namesOf } from '../verbs/changing.js';
import { beginningOf, listRows, newestFirst, pageOptions, walk } from '../verbs/listing.js';
import { isUuid, missing, orNull } from '../verbs/resolve.js';
import { campaignIdOf } from './campaigns/record.js';

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
	column('attachments', 'ATTACHED', { wide: true, lines: (one) => attachmentLines(one.attachments) }),
];

function wideLines<K extends 'delivery_attempts' | 'events' | 'reports' | 'held_by'>(
	key: K,
	header: string,
	lineOf: (one: NonNullable<MessageDetail[K]>[number], times: Times) => string,
): Column<MessageDetail> {
	const lines: Column<MessageDetail>['lines'] = ({ [key]: all }, times) =>
		[...(all ?? [])].map((one) => lineOf(one, times));
	return column(key, header, { wide: true, lines });
}

/**
 * Omits events that repeat an attempt or a report. The lines contain text from servers, so the caller must remove
 * control characters.
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

type Pages = Pick<Messages, 'page'>;

/** Throws `not_found` (exit code 3). If retention has deleted messages, prints a note first. */
export async function existing<T>(cx: CommandContext, messages: Pages, id: string, message: Promise<T>) {
	const found = await orNull(message);
	if (found !== null) return found;
	const { deleted } = await messages.page({ page_size: 1 }, { signal: cx.signal });
	if (deleted !== undefined) await cx.note(deletedText(deleted, cx.times));
	throw missing('message', id, mailctl('messages', 'list'));
}

export function deletedText({ before, keep_messages }: DeletedMessages, times: Times): string {
	return `mailctl deletes messages from before ${times.day(before)} (keep_messages ${keep_messages})`;
}

export function uuidOf(text: string, of: string): string {
	if (!isUuid(text)) {
		throw new UsageError(`"${text}" is not the UUID of ${of}`, { hint: mailctl('messages', 'list') });
	}
	return text.toLowerCase();
}

function holdLine({ setting, limit, until }: MessageHold, times: Times): string {
	return `delayed by the limit ${limit} of ${setting}, at least until ${times.text(until)}`;
}

function attemptLine({ number, at, outcome, phase, code, enhanced, text }: DeliveryAttempt, times: Times) {
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
	// Do not repeat the code, because most diagnostics start with it: `550 5.1.1 …`, `550-5.1.1 …`.
	const isSaid = code !== null && diagnostic?.split(/[\s-]+/).includes(code) === true;
	const said = [isSaid ? null : code, diagnostic].filter((part) => part !== null);
	return [`${times.text(at)} ${event} by mail`, said.join(' ')].filter((part) => part !== '').join(': ');
}

const list = command({
	name: 'list',
	summary: 'list messages, newest first',
	options: {
		status: { kind: 'choice', choices: messageStates, summary: 'filter by state' },
		to: { kind: 'text', summary: 'filter by recipient' },
		campaign: { kind: 'text', placeholder: 'NAME|UUID', summary: 'filter by campaign' },
		tag: { kind: 'text', summary: 'filter by tag' },
		since: { kind: 'date', summary: 'show messages created since this day' },
		...pageOptions,
	},
	examples: ['mailctl messages list --status deferred', 'mailctl messages list --to ann@example.com -o wide'],
	output: 'an array of messages',
	columns: messageColumns,
	async run(cx, { options }) {
		const messages = await need(await cx.api(), 'messages');
		const { status, to, tag } = options;
		const campaign = await campaignIdOf(cx, options.campaign);
		const { how, ordering } = newestFirst(options);
		const since = options.since && beginningOf(cx, options.since);
		const filter = { ordering, ...given({ status, to, campaign_unique_id: campaign, tag, since }) };
		const rows = (most: number | undefined) => walk(messages, filter, { signal: cx.signal, limit: most });
		await listRows(cx, how, { columns: messageColumns, rows });
		if (campaign === undefined || isMachine(cx.out.format)) return;
		const request = { campaign_unique_id: campaign, page_size: 1 };
		const { count, deleted } = await messages.page(request, { signal: cx.signal });
		if (count === 0 && deleted !== undefined) await cx.note(deletedText(deleted, cx.times));
	},
});

const idArg = { name: 'id', of: 'message', ask: 'Which message:' } as const;
const idsArg = { ...idArg, many: true } as const;

const get = command({
	name: 'get',
	summary: 'show messages and their delivery attempts',
	args: [{ ...idsArg, summary: 'UUIDs of messages' }],
	examples: ['mailctl messages get 0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f'],
	output: 'the message; an array for several ids',
	exits: [3],
	columns: detailColumns,
	async run(cx, { args }) {
		const messages = await need(await cx.api(), 'messages');
		const found: MessageDetail[] = [];
		const ids = args.id.map((text) => uuidOf(text, 'a message'));
		for (const id of ids)
			found.push(await existing(cx, messages, id, messages.get(id, { signal: cx.signal })));
		const [only, ...others] = found;
		if (only !== undefined && others.length === 0) await cx.out.record(only, detailColumns);
		else await cx.out.rows(found, detailColumns, { all: true });
	},
});

const raw = command({
	name: 'raw',
	summary: 'print a message as it is sent, with its headers',
	args: [{ ...idArg, summary: 'the UUID of a message' }],
	examples: ['mailctl messages raw 0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f > message.eml'],
	output: '{"id", "raw_base64"}',
	exits: [3],
	async run(cx, { args }) {
		const messages = await need(await cx.api(), 'messages');
		const id = uuidOf(args.id, 'a message');
		const message = await existing(cx, messages, id, messages.raw(id));
		if (isMachine(cx.out.format) || cx.globals.fields !== undefined) return cx.out.document(message);
		const bytes = Buffer.from(message.raw_base64, 'base64');
		// A terminal would interpret control characters; a file keeps the bytes that were signed and sent.
		await cx.out.raw(
			cx.io.stdout.isTTY ? cleanLines(bytes.toString('utf8').replaceAll('\r\n', '\n')) : bytes,
		);
	},
});

const ofMany = {
	args: [{ ...idsArg, summary: 'UUIDs of messages; - reads them from standard input' }],
	writes: true,
	columns: messageColumns,
	output: 'an array of the changed messages',
	exits: [3, 5, 9],
} as const;

const cancel = command({
	...ofMany,
	name: 'cancel',
	summary: 'cancel messages that are not sent yet',
	description:
		'Cancels staged, queued and deferred messages. Messages that are being sent, or may have been sent, are refused.',
	severity: 'mild',
	examples: ['mailctl messages cancel 0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f --yes'],
	run: (cx, { args }) => change(cx, 'cancel', args.id),
});

const retry = command({
	...ofMany,
	name: 'retry',
	summary: 'make deferred, uncertain and failed messages due now',
	description:
		'"worker" or "serve" sends the messages. The mail server\'s reply to an uncertain message was lost, so that message may arrive twice. A ' +
		'bounced message has a bad address, so it cannot be retried.',
	examples: ['mailctl messages retry 0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f'],
	run: (cx, { args }) => change(cx, 'retry', args.id),
});

async function change(cx: CommandContext, action: 'cancel' | 'retry', texts: readonly string[]) {
	const messages = await need(await cx.api(), 'messages');
	const found = await findEach(namesOf(cx, texts), async (text) => {
		const id = uuidOf(text, 'a message');
		return existing(cx, messages, id, messages.get(id, { signal: cx.signal }));
	});
	const { changed, exit } = await changeEach(cx, found, {
		what: (some) => {
			const names = some.map(({ to }) => `the message to ${to}`);
			return `${action} ${nameOrCount(names, 'messages')}`;
		},
		few: action === 'cancel' ? 'ask' : 'go on',
		plan: (ids) => ({ [action]: ids }),
		make: ({ id }) => messages[action](id, { signal: cx.signal }).catch(refuse),
		columns: messageColumns,
	});
	const { local } = await cx.connection();
	const isIdle = local !== null && action === 'retry' && changed.length > 0 && !cx.dryRun;
	if (isIdle && !(await local.queue.hasWorker()))
		await cx.hint(['due now; ', mailctl('worker'), ' sends it']);
	return exit;
}

/** Throws only the text of the field error, because it already names the state of the message. */
function refuse(error: unknown): never {
	const isRefused = error instanceof ApiError && error.code === 'invalid';
	const [complaint] = isRefused ? listFieldErrors(error.fields ?? {}) : [];
	if (complaint === undefined) throw error;
	throw new ApiError('invalid', complaint.message, { cause: error });
}

export const group: CommandGroup = {
	name: 'messages',
	summary: 'follow, cancel and retry single messages',
	examples: ['mailctl messages list --status deferred', 'mailctl messages list --to ann@example.com -o wide'],
	commands: [list, get, raw, cancel, retry],
};
