/** Messages: the outcome for each recipient of each submission. */

import { isOfCalls } from '../../api/campaigns.js';
import { type MessageFilter, type Messages, need } from '../../api/capabilities.js';
import { type MessageDetail, messageStates, type Uuid } from '../../api/records.js';
import { type CommandGroup, command } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { isMachine } from '../frame/globals.js';
import { cleanLines } from '../render/clean.js';
import { beginningOf, listOptions, listRows, newestFirst, sayWhatIsLeftOut, walk } from '../verbs/listing.js';
import { isUuid } from '../verbs/resolve.js';
import { findCampaign, lookUpCampaign } from './campaigns/find.js';
import { cancel, retry } from './messages/change.js';
import { deletedOf, deletedText, detailColumns, existing, messageColumns, uuidOf } from './messages/shown.js';

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
		if (campaign !== undefined && !isMachine(cx.out.format)) await sayDeleted(cx, messages, campaign);
	},
});

/** A campaign loses all of its messages together; single messages may be of a campaign that only they know. */
async function sayDeleted(cx: CommandContext, messages: Messages, id: Uuid): Promise<void> {
	const deleted = await deletedOf(cx, messages);
	if (deleted === undefined) return;
	const { campaigns } = (await (await cx.api()).capabilities()).ext;
	const found = campaigns && (await lookUpCampaign(campaigns, id, { signal: cx.signal }));
	if (found === undefined || isOfCalls(found) || found.date_dropped !== undefined)
		await cx.note(deletedText(deleted, cx.times));
}

/** A UUID is one of a campaign on any deployment that keeps messages; a name is looked up. */
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
		await sayWhatIsLeftOut(cx, 'every attempt and what was reported');
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

export const group: CommandGroup = {
	name: 'messages',
	summary: 'what became of each message',
	examples: ['mailctl messages list --status deferred', 'mailctl messages list --to ann@example.com -o wide'],
	commands: [list, get, raw, cancel, retry],
};
