/** Messages: what became of each recipient of each submission. */
import { type MessageFilter, need } from '../../api/capabilities.js';
import { type DeliveryAttempt, type Message, messageStates } from '../../api/records.js';
import { type CommandGroup, command } from '../command.js';
import { UsageError } from '../errors.js';
import { listOptions, listRows } from '../listing.js';
import { cleanLines } from '../render/clean.js';
import { type Columns, column } from '../render/columns.js';
import { walk } from '../walk.js';

type Detailed = Message & { delivery_attempts?: DeliveryAttempt[] };

const columns: Columns<Detailed> = [
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

const list = command({
	name: 'list',
	aliases: ['ls'],
	summary: 'list messages, oldest first',
	options: {
		status: { kind: 'choice', choices: messageStates, summary: 'only those in this state' },
		to: { kind: 'text', summary: 'only those to this address' },
		campaign: { kind: 'text', summary: 'only those of this mailing (its UUID)' },
		since: { kind: 'date', summary: 'only those created on this day (UTC) or later' },
		limit: listOptions.limit,
		all: listOptions.all,
	},
	examples: ['mailctl messages list --status deferred', 'mailctl messages list --to ann@example.com -o wide'],
	output: 'an array of messages',
	columns,
	async run(cx, { options }) {
		const messages = await need(await cx.api(), 'messages');
		const filter: MessageFilter = {
			...(options.status !== undefined && { status: options.status }),
			...(options.to !== undefined && { to: options.to }),
			...(options.campaign !== undefined && { campaign_unique_id: uuidOf(options.campaign, 'a mailing') }),
			...(options.since !== undefined && { since: `${options.since}T00:00:00.000000` }),
		};
		const { all, limit } = options;
		await listRows(
			cx,
			{ all, limit },
			{
				columns,
				rows: (most) => walk(messages, filter, { signal: cx.signal, limit: most }),
			},
		);
	},
});

const get = command({
	name: 'get',
	summary: 'show messages with every delivery attempt',
	args: [{ name: 'id', summary: 'UUIDs of messages', many: true }],
	examples: ['mailctl messages get 0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f'],
	output: 'the message; an array of them when several are asked for',
	exits: [3],
	columns,
	async run(cx, { args }) {
		const messages = await need(await cx.api(), 'messages');
		const found: Detailed[] = [];
		const ids = args.id.map((text) => uuidOf(text, 'a message'));
		for (const id of ids) found.push(await existing(messages.get(id), id));
		const [only, ...others] = found;
		if (only !== undefined && others.length === 0) await cx.out.record(only, columns);
		else await cx.out.rows(found, columns, { all: true });
	},
});

const raw = command({
	name: 'raw',
	summary: 'print a message as it is sent, headers and all',
	args: [{ name: 'id', summary: 'the UUID of a message' }],
	examples: ['mailctl messages raw 0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f > message.eml'],
	output: '{"id", "raw_base64"}',
	exits: [3],
	async run(cx, { args }) {
		const messages = await need(await cx.api(), 'messages');
		const id = uuidOf(args.id, 'a message');
		const message = await existing(messages.raw(id), id);
		if (cx.out.format === 'json' || cx.out.format === 'ndjson') return cx.out.document(message);
		const bytes = Buffer.from(message.raw_base64, 'base64');
		// A terminal acts on control characters; a file keeps the bytes that were signed and sent.
		await cx.out.raw(
			cx.io.stdout.isTTY ? cleanLines(bytes.toString('utf8').replaceAll('\r\n', '\n')) : bytes,
		);
	},
});

export const group: CommandGroup = {
	name: 'messages',
	summary: 'what became of each message',
	commands: [list, get, raw],
};

async function existing<T>(message: Promise<T>, id: string): Promise<T> {
	const { missing, orNull } = await import('../resolve.js');
	const found = await orNull(message);
	if (found === null) throw missing('message', id, 'mailctl messages list');
	return found;
}

function uuidOf(text: string, of: string): string {
	if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) {
		throw new UsageError(`"${text}" is no UUID of ${of}`, { hint: 'mailctl messages list' });
	}
	return text.toLowerCase();
}

function attemptLine({ number, at, outcome, phase, code, enhanced, text }: DeliveryAttempt): string {
	const reply = [code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
	return `${number}. ${at} ${outcome} at ${phase}: ${reply}`;
}
