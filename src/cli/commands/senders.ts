import type { Sender } from '../../api/records.js';
import { type CommandGroup, command } from '../frame/command.js';
import { answers, type Columns, column } from '../render/columns.js';
import { assertAddress } from '../verbs/address-faults.js';
import { change, create } from '../verbs/changing.js';
import { walk } from '../verbs/listing.js';

const columns: Columns<Sender> = [
	column('id', 'ID', { align: 'right' }),
	column('from_email', 'ADDRESS', { isKept: 'address', isName: true }),
	column('date_created', 'ADDED', { time: 'text', wide: true }),
	column('full_name', 'NAME', { wide: true }),
	column('reply_to_email', 'REPLY TO', { wide: true }),
	column('is_verified', 'VERIFIED'),
];

const list = command({
	name: 'list',
	summary: 'list sender addresses',
	examples: ['mailctl senders list'],
	output: 'an array of senders',
	columns,
	async run(cx) {
		const { senders } = await cx.api();
		await cx.out.rows(walk(senders, {}, { signal: cx.signal }), columns, { all: true });
	},
});

const add = command({
	name: 'add',
	summary: 'add a sender address',
	args: [{ name: 'address', summary: 'an e-mail address of yours', of: 'address' }],
	examples: ['mailctl senders add news@example.com'],
	output: 'the sender',
	exits: [5],
	writes: true,
	columns,
	async run(cx, { args }) {
		assertAddress(args.address);
		const input = { from_email: args.address };
		const created = await create(cx, {
			what: `add the sender ${args.address}`,
			plan: { create: input },
			input,
			make: ({ senders }) => senders.create(input, { signal: cx.signal }),
		});
		if (created !== null) await cx.out.created(created, columns);
	},
});

const remove = command({
	name: 'remove',
	summary: 'remove a sender address',
	args: [{ name: 'address', summary: 'an address or an id', of: 'sender', ask: 'Which sender:' }],
	examples: ['mailctl senders remove news@example.com --yes'],
	...answers({ deleted: '[ids]' }),
	exits: [3],
	writes: true,
	severity: 'mild',
	async run(cx, { args }) {
		const { resolveSender } = await import('../verbs/resolve.js');
		const sender = await resolveSender(await cx.api(), args.address, cx.signal);
		const what = `remove the sender ${sender.from_email}`;
		const deleted = await change(cx, {
			what,
			plan: { delete: [sender.id] },
			question: { kind: 'mild', what },
			make: ({ senders }) => senders.delete(sender.id, { signal: cx.signal }).then(() => [sender.id]),
		});
		if (deleted !== null) await cx.out.document({ deleted }, `removed the sender ${sender.from_email}`);
	},
});

export const group: CommandGroup = {
	name: 'senders',
	summary: 'manage sender addresses',
	examples: ['mailctl senders add news@example.com', 'mailctl senders list'],
	commands: [list, add, remove],
};
