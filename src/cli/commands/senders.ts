import type { Sender } from '../../api/records.js';
import { type CommandGroup, command } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import { answer, type Columns, column } from '../render/columns.js';
import { assertAddress } from '../verbs/address-faults.js';
import { maybeCreated } from '../verbs/changing.js';
import { foresee, notTaken } from '../verbs/dry-run.js';
import { walk } from '../verbs/listing.js';
import { explained } from '../verbs/refusals.js';

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
	aliases: ['ls'],
	summary: 'list the verified senders',
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
	summary: 'let messages be sent from an address',
	args: [{ name: 'address', summary: 'an e-mail address of yours', of: 'address' }],
	examples: ['mailctl senders add news@example.com'],
	output: 'the sender',
	exits: [5],
	writes: true,
	columns,
	async run(cx, { args }) {
		assertAddress(args.address);
		const { senders } = await cx.api();
		const input = { from_email: args.address };
		if (cx.dryRun) {
			// A deployment without `/senders/` says so here, too.
			await senders.page({ page_size: 1 }, { signal: cx.signal });
			const { senderFields } = await import('../../api/inputs.js');
			const { emailKey } = await import('../../api/address.js');
			const isTaken = ({ from_email }: Sender) => emailKey(from_email) === emailKey(args.address);
			const walked = () => walk(senders, {}, { signal: cx.signal });
			const beside = () => notTaken(walked(), { field: 'from_email', isTaken });
			const how = { fields: senderFields, input, mode: 'create', beside } as const;
			await foresee(cx, () => senders.create(input), how);
			return cx.wouldDo(`add the sender ${args.address}`, { create: input });
		}
		const creating = explained(senders.create(input, { signal: cx.signal }), { input });
		const created = await maybeCreated(creating, {
			what: `the sender ${args.address}`,
			look: mailctl('senders', 'list'),
			isUnique: true,
		});
		await cx.out.created(created, columns);
	},
});

const remove = command({
	name: 'remove',
	aliases: ['rm', 'delete'],
	summary: 'no longer send from an address',
	args: [{ name: 'address', summary: 'an address or an id', of: 'sender', ask: 'Which sender:' }],
	examples: ['mailctl senders remove news@example.com --yes'],
	columns: answer('deleted'),
	output: '{"deleted": [ids]}',
	exits: [3],
	writes: true,
	severity: 'mild',
	async run(cx, { args }) {
		const { resolveSender } = await import('../verbs/resolve.js');
		const sender = await resolveSender(await cx.api(), args.address, cx.signal);
		if (cx.dryRun) return cx.wouldDo(`remove the sender ${sender.from_email}`, { delete: [sender.id] });
		await cx.confirm({ kind: 'mild', what: `remove the sender ${sender.from_email}` });
		const { senders } = await cx.api();
		await senders.delete(sender.id, { signal: cx.signal });
		await cx.out.document({ deleted: [sender.id] }, `removed the sender ${sender.from_email}`);
	},
});

export const group: CommandGroup = {
	name: 'senders',
	summary: 'verified sender addresses',
	examples: ['mailctl senders add news@example.com', 'mailctl senders list'],
	commands: [list, add, remove],
};
