import { need } from '../../../api/capabilities.js';
import type { Erasure, Erasures } from '../../../api/people.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { answers } from '../../render/columns.js';
import { counted } from '../../render/units.js';
import { assertAddress } from '../../verbs/address-faults.js';
import { change } from '../../verbs/changing.js';
import { missing, orNull } from '../../verbs/resolve.js';

export const subscriberErase = command({
	name: 'erase',
	summary: 'erase a person for good, in all lists and messages',
	description:
		'Deletes the subscribers and suppressions of an address, empties its messages (figures stay), and cancels unsent ' +
		'ones. A keyed hash blocks the address: it cannot be added or imported, and gets no bulk mail. --lift unblocks the address. ' +
		'Backups, files of rejected rows and mail logs do not change.',
	args: [{ name: 'email', summary: 'an e-mail address', of: 'address', ask: 'E-mail address:' }],
	options: { lift: { kind: 'flag', summary: 'allow the address again; erased data does not return' } },
	writes: true,
	createsDatabase: false,
	severity: 'severe',
	columns: answers(['email', 'subscribers', 'messages', 'canceled', 'suppressions', 'lifted']).columns,
	output: '{"email", "subscribers", "messages", "canceled", "suppressions"}; with --lift {"lifted": email}',
	exits: [3],
	examples: ['mailctl subscribers erase ann@example.com --confirm ann@example.com'],
	run: async (cx, { args, options }) => {
		const { address: email } = assertAddress(args.email);
		const erasures = await need(await cx.api(), 'erasures');
		return options.lift ? lift(cx, erasures, email) : erase(cx, erasures, email);
	},
});

async function erase(cx: CommandContext, erasures: Erasures, email: string): Promise<void> {
	// The question says what is stored, so that the user notices a mistyped address.
	const people = await need(await cx.api(), 'people');
	const { is_known, ...person } = await people.get(email, { signal: cx.signal });
	const found = { subscribers: person.subscribers.length, messages: person.messages };
	const what = is_known
		? `erase ${email} for good: ${sizeOf(found)}`
		: `block ${email}, which is unknown here: it cannot be added or imported, and gets no bulk mail`;
	if (cx.dryRun) return cx.wouldDo(what, { erase: email, ...found });
	await cx.confirm({ kind: 'severe', what, name: email });
	const done = await cx.undoable(() => erasures.erase(email, { signal: cx.signal }));
	await cx.out.document({ email, ...done }, sentenceOf(email, done));
	if (is_known)
		await cx.note(
			'not erased: sent mails, backups and copies of the database, files of imports and results, mail logs',
		);
}

function sentenceOf(email: string, { subscribers, messages, canceled }: Erasure): string {
	if (subscribers + messages === 0) return `blocked ${email}: no subscriber and no message had this address`;
	const waiting = canceled === 0 ? '' : ` (${canceled} of them canceled)`;
	return `erased ${email}: ${sizeOf({ subscribers, messages })}${waiting}`;
}

function sizeOf({ subscribers, messages }: Pick<Erasure, 'subscribers' | 'messages'>): string {
	return `${counted(subscribers, 'subscriber')}, ${counted(messages, 'message')}`;
}

async function lift(cx: CommandContext, erasures: Erasures, email: string): Promise<void> {
	const what = `allow ${email} to be added again`;
	const lifted = await change(cx, {
		what,
		plan: { lift: email },
		question: { kind: 'mild', what },
		make: async () => {
			const done = await orNull(erasures.lift(email, { signal: cx.signal }).then(() => email));
			if (done !== null) return done;
			throw missing('erased address', email, mailctl('subscribers', 'find', email));
		},
	});
	if (lifted !== null) await cx.out.document({ lifted }, `${email} may be added again`);
}
