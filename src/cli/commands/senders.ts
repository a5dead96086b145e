/** Verified sender addresses: every message's `from` is one of them. */
import { need } from '../../api/capabilities.js';
import type { Sender } from '../../api/records.js';
import { type CommandGroup, command } from '../command.js';
import type { CommandContext } from '../context.js';
import { explained } from '../refusals.js';
import { type Columns, column } from '../render/columns.js';
import { walk } from '../walk.js';

const columns: Columns<Sender> = [
	column('id', 'ID', { align: 'right' }),
	column('email', 'ADDRESS', { isName: true }),
	column('date_created', 'ADDED', { wide: true }),
];

const list = command({
	name: 'list',
	aliases: ['ls'],
	summary: 'list the verified senders',
	examples: ['mailctl senders list'],
	output: 'an array of senders',
	columns,
	async run(cx) {
		const senders = await need(await cx.api(), 'senders');
		await cx.out.rows(walk(senders, {}, { signal: cx.signal }), columns, { all: true });
	},
});

const add = command({
	name: 'add',
	summary: 'let messages be sent from an address',
	args: [{ name: 'address', summary: 'an e-mail address of yours' }],
	examples: ['mailctl senders add news@example.com'],
	output: 'the sender',
	exits: [5],
	writes: true,
	columns,
	async run(cx, { args }) {
		const senders = await need(await cx.api(), 'senders');
		if (cx.dryRun) return cx.wouldDo(`add the sender ${args.address}`, { email: args.address });
		const input = { email: args.address };
		await cx.out.created(await explained(senders.create(input), { input }), columns);
	},
});

const remove = command({
	name: 'remove',
	aliases: ['rm', 'delete'],
	summary: 'no longer send from an address',
	args: [{ name: 'address', summary: 'an address or an id' }],
	examples: ['mailctl senders remove news@example.com --yes'],
	output: '{"deleted": [ids]}',
	exits: [3],
	writes: true,
	severity: 'mild',
	async run(cx, { args }) {
		const sender = await find(cx, args.address);
		if (cx.dryRun) return cx.wouldDo(`remove the sender ${sender.email}`, { deleted: [sender.id] });
		await cx.confirm({ kind: 'mild', what: `remove the sender ${sender.email}` });
		const senders = await need(await cx.api(), 'senders');
		await senders.delete(sender.id);
		await cx.out.document({ deleted: [sender.id] }, `removed the sender ${sender.email}`);
	},
});

export const group: CommandGroup = {
	name: 'senders',
	summary: 'verified sender addresses',
	commands: [list, add, remove],
};

async function find(cx: CommandContext, text: string): Promise<Sender> {
	const { resolveSender } = await import('../resolve.js');
	return resolveSender(await cx.api(), text, cx.signal);
}
