import { type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import {
	causeOf,
	faultSentence,
	heldReason,
	isRefusalOfSender,
	type PauseCause,
	pausedBy,
} from '../../api/pauses.js';
import type { MessageState } from '../../api/records.js';
import type { QueueState } from '../../store/queue.js';
import type { OfContents } from '../connect/inspect.js';
import { counted, numberText, replyText, shareText, spanText } from '../render/units.js';
import { type Answer, type Checks, ok, problem, type Surroundings, type Verdict, warning } from './checks.js';

type Line = Surroundings['line'];

const hour: Micros = 3_600 * microsPerSecond;

const unfinishedStates: readonly MessageState[] = ['staged', 'queued', 'leased', 'deferred', 'uncertain'];

export function queueChecks(of: OfContents, around: Surroundings): Checks {
	const { line, moment, now, until } = around;
	const judged = (judge: (state: QueueState) => Answer) => of(async ({ queue }) => judge(await queue()));
	const each = <T>(ones: readonly T[], none: string, judge: (one: T) => Verdict): Answer =>
		ones.length === 0 ? ok(none) : ones.slice(0, 5).map(judge);
	const stats = line('engine', 'queue', 'stats');
	return {
		'queue.paused': judged(({ pauses, messages }) =>
			each(pauses, 'nothing holds the queue up', ({ kind, reason, since, retry_at }) => {
				const fix = (cause: PauseCause) => stepsOf(cause, line).join('\n');
				if (kind === 'manual') {
					const isEmpty = unfinishedStates.every((state) => (messages[state] ?? 0) === 0);
					const why = reason === null ? '' : `: ${reason}`;
					const says = `it was paused ${pausedBy(reason)} at ${moment(since)}${why}`;
					return problem(says, fix(isEmpty ? 'hand' : causeOf(heldReason(reason))));
				}
				const next =
					retry_at === null ? '' : `; the next try is ${until(retry_at)}, if a worker or a server runs`;
				return problem(faultSentence(reason, moment(since)) + next, fix(causeOf(reason ?? '')));
			}),
		),
		'queue.waiting': judged((state) => judgeWaiting(state, around)),
		'queue.limits': judged(({ limits }) =>
			each(limits, 'no limit holds messages back', ({ setting, limit, messages, last_at }) => {
				const held = `${setting} ${limit} holds ${counted(messages, 'message')} back`;
				const says = `${held}, the last at least until ${moment(last_at)}`;
				if (last_at - now() <= microsPerDay) return ok(says);
				return warning(says, line('engine', 'settings', 'get', setting));
			}),
		),
		'queue.workers': judged((state) => judgeWorkers(state, now())),
		'queue.unfinished': judged(({ unfinished }) =>
			each(unfinished, 'no worker ended on a message', ({ message, state, deaths, due_at }) => {
				const look = line('messages', 'get', message);
				if (state === 'failed')
					return warning(`message ${message} failed: a worker ended three times while it prepared it`, look);
				const times = deaths === 1 ? '' : ` ${deaths} times`;
				const next = due_at === null ? '' : `; it is tried again ${until(due_at)}`;
				return warning(`a worker ended${times} while it prepared message ${message}${next}`, look);
			}),
		),
		'queue.deferred': judged(({ deferred }) =>
			each(deferred, 'no domain defers mail', ({ domain, messages, last_reply }) =>
				warning(
					`${domain} defers ${counted(messages, 'message')}: ${last_reply ?? 'no reason given'}`,
					stats,
				),
			),
		),
		'queue.replies': judged(({ replies }) =>
			each(
				replies.filter(({ state }) => state !== 'bounced'),
				'no server refused or deferred a message of seven days',
				(one) => {
					const isOfSender = one.state === 'deferred' && isRefusalOfSender(one.reply);
					const list = line('messages', 'list', '--status', one.state);
					return warning(replyText(one), isOfSender ? stepsOf('sender', line).join('\n') : list);
				},
			),
		),
		'queue.uncertain': judged(({ messages: { uncertain = 0 } }) =>
			uncertain === 0
				? ok('no message is uncertain')
				: warning(
						`${counted(uncertain, 'message')} may or may not have arrived: the answer of the mail server was lost`,
						line('messages', 'list', '--status', 'uncertain'),
					),
		),
		'queue.bounced': of(async ({ lately }) => judgeBounced(await lately(), line)),
	};
}

/** The steps after a pause, in order: a sentence where it takes more than one command, and the commands. */
export function stepsOf(cause: PauseCause, line: Line): string[] {
	const resume = line('engine', 'queue', 'resume');
	const test = line('engine', 'smtp-test');
	const steps: Readonly<Record<PauseCause, readonly string[]>> = {
		hand: [resume],
		restore: [
			'cancel what was sent after the backup, then send again:',
			line('messages', 'list', '--status', 'queued'),
			line('messages', 'list', '--status', 'deferred'),
			line('messages', 'cancel', 'UUID'),
			resume,
		],
		process: ['remove what stops the process that sends; it goes on by itself:', line('doctor')],
		unset: [
			'name a mail server, then try it:',
			line('engine', 'init', '--smtp', 'smtp://USER@HOST:587'),
			test,
		],
		login: [
			'give the login that the mail server wants, try it, then send again:',
			line('engine', 'init', '--smtp-password-file', 'FILE'),
			test,
			resume,
		],
		sender: ['have the mail server accept the sender, or use another one, then send again:', test, resume],
		server: [
			'remove the cause, try the mail server, then send again:',
			line('doctor', '--only', 'smtp'),
			test,
			resume,
		],
	};
	return [...steps[cause]];
}

function judgeWaiting(
	{ due, held, next_due_at, workers, pauses, limits }: QueueState,
	{ now, line, until }: Surroundings,
): Verdict {
	if (due === 0) return ok(next_due_at === null ? 'nothing waits' : `the next is due ${until(next_due_at)}`);
	const late = next_due_at === null ? 0 : now() - next_due_at;
	const back = held === 0 ? '' : ` (${held === due ? 'all' : held} of them held back by limits)`;
	const waiting = `${counted(due, 'message')} ${due === 1 ? 'is' : 'are'} due, the oldest for ${spanText(late)}${back}`;
	if (pauses.length > 0) return ok(`${waiting}: the queue is paused`);
	if (workers.every(({ role }) => role === null))
		return (late > hour ? problem : warning)(`${waiting}, and no process sends`, line('worker'));
	if (late <= hour || limits.length > 0) return ok(waiting);
	return warning(`${waiting}, though a process sends`, line('engine', 'queue', 'stats'));
}

/** A process of another machine that was killed is missed by its silence alone. */
function judgeWorkers({ workers }: QueueState, now: Micros): Answer {
	const gone = workers.filter(({ role, messages }) => role === null && messages > 0);
	if (gone.length > 0)
		return gone.map(({ host, pid, messages }) =>
			warning(
				`process ${pid} on ${host} is gone with ${counted(messages, 'message')} in its hands`,
				'the next process that sends takes them back; what was on its way may arrive twice',
			),
		);
	if (workers.length === 0) return ok('no process sends at the moment');
	const lines = workers.map(({ role, host, pid, heard_at }) => {
		const last = heard_at === null ? '' : ` (heard of ${spanText(Math.max(0, now - heard_at))} ago)`;
		return `${role ?? 'worker'} ${pid} on ${host}${last}`;
	});
	return ok(lines.join(', '));
}

/** Mailbox providers take a sender for a spammer whose lists are this stale. Fewer messages need a larger share. */
export function judgeBounced(
	{ attempted, hardBounced }: { attempted: number; hardBounced: number },
	line: Line,
): Verdict {
	if (attempted === 0) return ok('no message was sent or bounced in seven days');
	const says = `${numberText(hardBounced)} of ${counted(attempted, 'message')} of seven days bounced for good`;
	if (attempted < 20) return ok(`${says}: too few to judge`);
	const share = (hardBounced / attempted) * 100;
	const shown = `${says} (${shareText(share)})`;
	if (share <= (attempted < 100 ? 20 : 5)) return ok(shown);
	return warning(`${shown}: the list is stale`, line('report', '--last', '7d'));
}
