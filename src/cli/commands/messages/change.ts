/** `messages cancel` and `messages retry`: a person's decisions on single messages. */
import { need } from '../../../api/capabilities.js';
import { ApiError, listFieldErrors } from '../../../api/errors.js';
import type { Message, MessageState } from '../../../api/records.js';
import { command } from '../../frame/command.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { agreeToAll, eachOf, findEach, nameOrCount, namesOf } from '../../verbs/bulk.js';
import { existing, messageColumns, uuidOf } from './shown.js';

type Action = 'cancel' | 'retry';

const example = '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f';

export const cancel = command({
	...shared('cancel'),
	summary: 'no longer send messages that wait',
	description:
		'Staged, queued and deferred messages are canceled. What is under way, final, or may have been sent already is refused.',
	severity: 'mild',
	examples: [`mailctl messages cancel ${example} --yes`],
	run: (cx, { args }) => change(cx, 'cancel', args.id),
});

export const retry = command({
	...shared('retry'),
	summary: 'make messages due now: deferred, uncertain and failed ones',
	description:
		'It sends nothing itself: mailctl worker or mailctl serve does. A deferred message is due at once, with the attempts it has had. An uncertain one, whose answer was lost after it was handed over, goes back to the queue, and may arrive twice; only a person can decide that. A failed one is sent again, whatever refused it. What bounced went to a bad address and stays.',
	examples: [`mailctl messages retry ${example}`],
	run: (cx, { args }) => change(cx, 'retry', args.id),
});

function shared(name: Action) {
	return {
		name,
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
}

async function change(cx: CommandContext, action: Action, texts: readonly string[]) {
	const messages = await need(await cx.api(), 'messages');
	const found = await findEach(namesOf(cx, texts), async (text) => {
		const id = uuidOf(text, 'a message');
		return existing(cx, messages, { id, message: messages.get(id, { signal: cx.signal }) });
	});
	const what = action === 'cancel' ? cancellation(found) : `retry ${describe(found)}`;
	if (cx.dryRun) return foreseen(cx, action, { found, what });
	const few = action === 'cancel' ? 'ask' : 'go on';
	await agreeToAll(cx, { what, count: found.length, few });
	const changed: Message[] = [];
	const changeOne = async (message: Message) => {
		changed.push(await worded(messages[action](message.id, { signal: cx.signal }), message, found.length));
	};
	const again = (rest: readonly Message[]) =>
		mailctl('messages', action, ...rest.map(({ id }) => id), ...(few === 'ask' ? ['--yes'] : []));
	const { failed } = await eachOf(cx, found, changeOne, again);
	await cx.out.rows(changed, messageColumns, { all: true });
	if (action === 'retry' && changed.length > 0) await sayWhoSends(cx);
	return failed === 0 ? exits.done : exits.partly;
}

/** On a database of this machine each is tried, which a dry run undoes; elsewhere the service decides. */
async function foreseen(
	cx: CommandContext,
	action: Action,
	{ found, what }: { found: readonly Message[]; what: string },
) {
	const messages = await need(await cx.api(), 'messages');
	const { local } = await cx.connection();
	const { done, failed } = await eachOf(cx, found, async (message) => {
		if (local !== null) await worded(messages[action](message.id), message, found.length);
	});
	const ids = done.map(({ id }) => id);
	await cx.wouldDo(what, action === 'cancel' ? { cancel: ids } : { retry: ids });
	return failed === 0 ? exits.done : exits.partly;
}

/** The change, or the refusal of a state in the words of this command: exit 5 with a way out for a single message. */
async function worded<T>(change: Promise<T>, { id, to, state }: Message, count: number): Promise<T> {
	try {
		return await change;
	} catch (error) {
		const refused = error instanceof ApiError && error.code === 'invalid' ? error.fields : null;
		const [complaint] = refused === null ? [] : listFieldErrors(refused);
		if (complaint === undefined) throw error;
		const text = complaint.message.replace(/^The message/, `the message to ${to}`).replace(/\.$/, '');
		if (count > 1) throw new ApiError('invalid', text, { cause: error });
		throw new CliError('invalid', exits.refused, text, {
			hint: afterRefusal(state, { id, to }),
			cause: error,
		});
	}
}

function afterRefusal(state: MessageState, { id, to }: Pick<Message, 'id' | 'to'>): Hint {
	if (state === 'bounced') return [mailctl('suppressions', 'list', '--email', to), ' shows why'];
	return [mailctl('messages', 'get', id), ' shows what became of it'];
}

/** A server sends without a further command; on this machine a sending process may be missing. */
async function sayWhoSends(cx: CommandContext): Promise<void> {
	const { local } = await cx.connection();
	if (local === null) return;
	const { workers } = await local.queue.stats();
	if (workers.some(({ role }) => role === 'serve' || role === 'worker')) return;
	await cx.hint(['due now; ', mailctl('worker'), ' sends it']);
}

/** The text of the consent. Throws `invalid` (exit 5) where it is too late to cancel any of them. */
function cancellation(found: readonly Message[]): string {
	const late = found.flatMap((message) => {
		const why = tooLate[message.state];
		return why === undefined ? [] : [{ ...message, why }];
	});
	const [first] = late;
	if (first === undefined) return `cancel ${describe(found)}`;
	if (late.length < found.length)
		return `cancel ${found.length - late.length} of ${found.length} messages; it is too late for the others`;
	const message =
		found.length === 1
			? `the message to ${first.to} ${first.why}; it cannot be canceled`
			: `it is too late: none of the ${found.length} messages can be canceled`;
	throw new CliError('invalid', exits.refused, message, {
		hint: [mailctl('messages', 'get', first.id), ' shows what became of it'],
	});
}

/** Why a state cannot be canceled; absent: it can, or is canceled. Checked before the question. */
const tooLate: Partial<Record<MessageState, string>> = {
	leased: 'is being sent',
	sent: 'is sent',
	bounced: 'has bounced',
	failed: 'has failed',
	uncertain: 'may have been sent already',
};

function describe(found: readonly Message[]): string {
	return nameOrCount(
		found.map(({ to }) => `the message to ${to}`),
		'messages',
	);
}
