import { type MessageFilter, need } from '../../api/capabilities.js';
import { ApiError, listFieldErrors } from '../../api/errors.js';
import { type Message, type MessageDetail, messageStates, type Uuid } from '../../api/records.js';
import { type CommandGroup, command } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { exits } from '../frame/exit.js';
import { isMachine } from '../frame/globals.js';
import { cleanLines } from '../render/clean.js';
import { agreeToAll, eachOf, findEach, nameOrCount, namesOf } from '../verbs/bulk.js';
import { beginningOf, listOptions, listRows, newestFirst, walk } from '../verbs/listing.js';
import { isUuid } from '../verbs/resolve.js';
import { findCampaign } from './campaigns/find.js';
import { deletedText, detailColumns, existing, messageColumns, uuidOf } from './messages/shown.js';

const list = command({
	name: 'list',
	aliases: ['ls'],
	summary: 'list messages, newest first',
	options: {
		status: { kind: 'choice', choices: messageStates, summary: 'only those in this state' },
		to: { kind: 'text', summary: 'only those to this address' },
		campaign: { kind: 'text', placeholder: 'NAME|UUID', summary: 'only those of this campaign' },
		tag: { kind: 'text', summary: 'only those with this tag' },
		since: { kind: 'date', summary: 'only those created on this day or later' },
		sort: listOptions.sort,
		limit: listOptions.limit,
		all: listOptions.all,
	},
	examples: ['mailctl messages list --status deferred', 'mailctl messages list --to ann@example.com -o wide'],
	output: 'an array of messages',
	columns: messageColumns,
	async run(cx, { options }) {
		const messages = await need(await cx.api(), 'messages');
		const { status, to, tag, since } = options;
		const campaign = await campaignOf(cx, options.campaign);
		const { how, ordering } = newestFirst(options);
		const filter: MessageFilter = {
			ordering,
			...(status !== undefined && { status }),
			...(to !== undefined && { to }),
			...(campaign !== undefined && { campaign_unique_id: campaign }),
			...(tag !== undefined && { tag }),
			...(since !== undefined && { since: beginningOf(cx, since) }),
		};
		await listRows(cx, how, {
			columns: messageColumns,
			rows: (most) => walk(messages, filter, { signal: cx.signal, limit: most }),
		});
		if (campaign === undefined || isMachine(cx.out.format)) return;
		const request = { campaign_unique_id: campaign, page_size: 1 };
		const { count, deleted } = await messages.page(request, { signal: cx.signal });
		if (count === 0 && deleted !== undefined) await cx.note(deletedText(deleted, cx.times));
	},
});

async function campaignOf(cx: CommandContext, text: string | undefined): Promise<Uuid | undefined> {
	if (text === undefined || isUuid(text)) return text?.toLowerCase();
	const campaigns = await need(await cx.api(), 'campaigns', 'a campaign by its name');
	return (await findCampaign(cx, campaigns, text)).id;
}

const get = command({
	name: 'get',
	summary: 'show messages with every delivery attempt',
	args: [{ name: 'id', summary: 'UUIDs of messages', many: true, of: 'message', ask: 'Which message:' }],
	examples: ['mailctl messages get 0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f'],
	output: 'the message; an array of them when several are asked for',
	exits: [3],
	columns: detailColumns,
	async run(cx, { args }) {
		const messages = await need(await cx.api(), 'messages');
		const found: MessageDetail[] = [];
		const ids = args.id.map((text) => uuidOf(text, 'a message'));
		for (const id of ids)
			found.push(await existing(cx, messages, { id, message: messages.get(id, { signal: cx.signal }) }));
		const [only, ...others] = found;
		if (only !== undefined && others.length === 0) await cx.out.record(only, detailColumns);
		else await cx.out.rows(found, detailColumns, { all: true });
	},
});

const raw = command({
	name: 'raw',
	summary: 'print a message as it is sent, headers and all',
	args: [{ name: 'id', summary: 'the UUID of a message', of: 'message', ask: 'Which message:' }],
	examples: ['mailctl messages raw 0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f > message.eml'],
	output: '{"id", "raw_base64"}',
	exits: [3],
	async run(cx, { args }) {
		const messages = await need(await cx.api(), 'messages');
		const id = uuidOf(args.id, 'a message');
		const message = await existing(cx, messages, { id, message: messages.raw(id) });
		if (isMachine(cx.out.format) || cx.globals.fields !== undefined) return cx.out.document(message);
		const bytes = Buffer.from(message.raw_base64, 'base64');
		// A terminal acts on control characters; a file keeps the bytes that were signed and sent.
		await cx.out.raw(
			cx.io.stdout.isTTY ? cleanLines(bytes.toString('utf8').replaceAll('\r\n', '\n')) : bytes,
		);
	},
});

const ofMany = {
	args: [
		{
			name: 'id',
			summary: 'UUIDs of messages; - reads them from stdin',
			many: true,
			of: 'message',
			ask: 'Which message:',
		},
	],
	writes: true,
	columns: messageColumns,
	output: 'an array of the changed messages',
	exits: [3, 5, 9],
} as const;

const cancel = command({
	...ofMany,
	name: 'cancel',
	summary: 'no longer send messages that wait',
	description:
		'Staged, queued and deferred messages are canceled. Any other message is refused: it is being sent, is final, or may have been sent already.',
	severity: 'mild',
	examples: ['mailctl messages cancel 0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f --yes'],
	run: (cx, { args }) => change(cx, 'cancel', args.id),
});

const retry = command({
	...ofMany,
	name: 'retry',
	summary: 'make messages due now: deferred, uncertain and failed ones',
	description:
		'It sends nothing itself: mailctl worker or mailctl serve does. A deferred message is due at once, with the attempts it has had. An uncertain one, whose answer was lost after it was handed over, goes back to the queue, and may arrive twice; only a person can decide that. A failed one is sent again, whatever refused it. A bounced one went to a bad address and stays.',
	examples: ['mailctl messages retry 0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f'],
	run: (cx, { args }) => change(cx, 'retry', args.id),
});

async function change(cx: CommandContext, action: 'cancel' | 'retry', texts: readonly string[]) {
	const messages = await need(await cx.api(), 'messages');
	const found = await findEach(namesOf(cx, texts), async (text) => {
		const id = uuidOf(text, 'a message');
		return existing(cx, messages, { id, message: messages.get(id, { signal: cx.signal }) });
	});
	const names = found.map(({ to }) => `the message to ${to}`);
	const what = `${action} ${nameOrCount(names, 'messages')}`;
	const { local } = await cx.connection();
	const changed: Message[] = [];
	const changeOne = async ({ id }: Message) => {
		// Elsewhere the service decides; a dry run on a database of this machine is undone.
		if (cx.dryRun && local === null) return;
		changed.push(await messages[action](id, { signal: cx.signal }).catch(refuse));
	};
	if (cx.dryRun) {
		const { done, failed } = await eachOf(cx, found, changeOne);
		const ids = done.map(({ id }) => id);
		await cx.wouldDo(what, action === 'cancel' ? { cancel: ids } : { retry: ids });
		return failed === 0 ? exits.done : exits.partly;
	}
	const few = action === 'cancel' ? 'ask' : 'go on';
	await agreeToAll(cx, { what, count: found.length, few });
	const { failed } = await eachOf(cx, found, changeOne);
	await cx.out.rows(changed, messageColumns, { all: true });
	const isIdle = local !== null && action === 'retry' && changed.length > 0;
	if (isIdle && !(await local.queue.hasWorker()))
		await cx.hint(['due now; ', mailctl('worker'), ' sends it']);
	return failed === 0 ? exits.done : exits.partly;
}

/** The state that refuses is said in the complaint about it. */
function refuse(error: unknown): never {
	const isRefused = error instanceof ApiError && error.code === 'invalid';
	const [complaint] = isRefused ? listFieldErrors(error.fields ?? {}) : [];
	if (complaint === undefined) throw error;
	throw new ApiError('invalid', complaint.message, { cause: error });
}

export const group: CommandGroup = {
	name: 'messages',
	summary: 'what became of each message',
	examples: ['mailctl messages list --status deferred', 'mailctl messages list --to ann@example.com -o wide'],
	commands: [list, get, raw, cancel, retry],
};
