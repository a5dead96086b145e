/** The queue: reasons for delays, senders, and outcomes. */
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
import { momentText } from '../render/times.js';
import { counted, numberText, replyText, shareText, spanText, untilText } from '../render/units.js';
import {
	type Answer,
	type Check,
	ok,
	once,
	problem,
	type Surroundings,
	type Verdict,
	warning,
} from './checks.js';
import type { DatabaseContents, OfContents } from './inspection.js';

type Line = Surroundings['line'];

interface Around extends Pick<Surroundings, 'line' | 'zone'> {
	now: Micros;
}

/** `queue.…`; reasons for a full stop come first. */
export function queueChecks(of: OfContents, { clock, line, zone }: Surroundings): Check[] {
	// It walks everything that waits: once for all of them.
	let ask: (() => Promise<QueueState>) | null = null;
	const judged = (judge: (state: QueueState, around: Around) => Answer) =>
		of(async ({ queue }: DatabaseContents) => {
			ask ??= once(queue);
			return judge(await ask(), { now: clock.now(), line, zone });
		});
	return [
		{ name: 'queue.paused', run: judged(judgePause) },
		{ name: 'queue.waiting', run: judged(judgeWaiting) },
		{ name: 'queue.limits', run: judged(judgeLimits) },
		{ name: 'queue.workers', run: judged(judgeWorkers) },
		{ name: 'queue.unfinished', run: judged(judgeUnfinished) },
		{ name: 'queue.deferred', run: judged(judgeDeferred) },
		{ name: 'queue.replies', run: judged(judgeReplies) },
		{ name: 'queue.uncertain', run: judged(judgeUncertain) },
		{ name: 'queue.bounced', run: of(async ({ lately }) => judgeBounced(await lately(), line)) },
	];
}

const hour: Micros = 3_600 * microsPerSecond;

/** States of messages that may still be sent. */
const unfinished: readonly MessageState[] = ['staged', 'queued', 'leased', 'deferred', 'uncertain'];

/** A fault comes from the mail server; a pause by hand from a person, who may have forgotten it. */
function judgePause({ pauses, messages }: QueueState, { now, line, zone }: Around): Answer {
	if (pauses.length === 0) return ok('nothing holds the queue up');
	const isEmpty = unfinished.every((state) => (messages[state] ?? 0) === 0);
	return pauses.map(({ kind, reason, since, retry_at }) => {
		const from = momentText(since, zone);
		if (kind === 'manual') {
			const cause = isEmpty ? 'hand' : causeOf(heldReason(reason));
			const why = reason === null ? '' : `: ${reason}`;
			return problem(`it was paused ${pausedBy(reason)} at ${from}${why}`, stepsOf(cause, line).join('\n'));
		}
		const cause = causeOf(reason ?? '');
		const next =
			retry_at === null
				? ''
				: `; the next try is ${untilText(retry_at, { now, zone })}, if a worker or a server runs`;
		return problem(faultSentence(reason, from) + next, stepsOf(cause, line).join('\n'));
	});
}

/** What to do after a pause, in order: a sentence where it takes more than one command, and the commands. */
export function stepsOf(cause: PauseCause, line: Line): string[] {
	const resume = line('engine', 'queue', 'resume');
	const test = line('engine', 'smtp-test');
	switch (cause) {
		case 'hand':
			return [resume];
		case 'restore':
			return [
				'cancel what was sent after the backup, then send again:',
				line('messages', 'list', '--status', 'queued'),
				line('messages', 'list', '--status', 'deferred'),
				line('messages', 'cancel', 'UUID'),
				resume,
			];
		case 'process':
			return ['mend what stops the process that sends; it goes on by itself:', line('doctor')];
		case 'unset':
			return [
				'name a mail server, then try it:',
				line('engine', 'init', '--smtp', 'smtp://USER@HOST:587'),
				test,
			];
		case 'login':
			return [
				'give the login that the mail server wants, try it, then send again:',
				line('engine', 'init', '--smtp-password-file', 'FILE'),
				test,
				resume,
			];
		case 'sender':
			return ['have the mail server accept the sender, or use another one, then send again:', test, resume];
		case 'server':
			return [
				'look at the cause, mend it, try the mail server, then send again:',
				line('doctor', '--only', 'smtp'),
				test,
				resume,
			];
	}
}

/** Waiting messages are no harm, unless no worker takes them. */
function judgeWaiting(
	{ due, held, next_due_at, workers, pauses, limits }: QueueState,
	{ now, line, zone }: Around,
): Verdict {
	if (due === 0)
		return ok(
			next_due_at === null ? 'nothing waits' : `the next is due ${untilText(next_due_at, { now, zone })}`,
		);
	const late = next_due_at === null ? 0 : now - next_due_at;
	const back = held === 0 ? '' : ` (${held === due ? 'all' : held} of them held back by limits)`;
	const waiting = `${counted(due, 'message')} ${due === 1 ? 'is' : 'are'} due, the oldest for ${spanText(late)}${back}`;
	if (pauses.length > 0) return ok(`${waiting}: the queue is paused`);
	if (workers.every(({ role }) => role === null))
		return (late > hour ? problem : warning)(`${waiting}, and no process sends`, line('worker'));
	return late > hour && limits.length === 0
		? warning(`${waiting}, though a process sends`, line('engine', 'queue', 'stats'))
		: ok(waiting);
}

/** Limits are set on purpose, but perhaps without a reckoning of how long they take. */
function judgeLimits({ limits }: QueueState, { now, line, zone }: Around): Answer {
	if (limits.length === 0) return ok('no limit holds messages back');
	return limits.slice(0, 5).map(({ setting, limit, messages, last_at }) => {
		const held = `${setting} ${limit} holds ${counted(messages, 'message')} back`;
		const says = `${held}, the last at least until ${momentText(last_at, zone)}`;
		return last_at - now > microsPerDay
			? warning(says, line('engine', 'settings', 'get', setting))
			: ok(says);
	});
}

/** A process of another machine that was killed is missed by its silence alone. */
function judgeWorkers({ workers }: QueueState, { now }: Around): Answer {
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

/** A message that ends its worker, or that something else ended it on. */
function judgeUnfinished({ unfinished }: QueueState, { now, line, zone }: Around): Answer {
	if (unfinished.length === 0) return ok('no worker ended on a message');
	return unfinished.slice(0, 5).map(({ message, state, deaths, due_at }) => {
		const look = line('messages', 'get', message);
		if (state === 'failed')
			return warning(`message ${message} failed: a worker ended three times while it prepared it`, look);
		const times = deaths === 1 ? '' : ` ${deaths} times`;
		const next = due_at === null ? '' : `; it is tried again ${untilText(due_at, { now, zone })}`;
		return warning(`a worker ended${times} while it prepared message ${message}${next}`, look);
	});
}

const mostDomains = 3;

function judgeDeferred({ deferred }: QueueState, { line }: Around): Answer {
	if (deferred.length === 0) return ok('no domain puts mail off');
	const stats = line('engine', 'queue', 'stats');
	const shown = deferred
		.slice(0, mostDomains)
		.map(({ domain, messages, last_reply }) =>
			warning(
				`${domain} puts ${counted(messages, 'message')} off: ${last_reply ?? 'it did not say why'}`,
				stats,
			),
		);
	const more = deferred.length - shown.length;
	return more === 0
		? shown
		: [...shown, warning(`${counted(more, 'other domain')} put mail off, too`, stats)];
}

/** Bad addresses are counted by `queue.bounced`. */
function judgeReplies({ replies }: QueueState, { line }: Around): Answer {
	const refused = replies.filter(({ state }) => state !== 'bounced');
	if (refused.length === 0) return ok('no server refused or put off a message of seven days');
	return refused.map((one) => {
		const isOfSender = one.state === 'deferred' && isRefusalOfSender(one.reply);
		const fix = isOfSender ? stepsOf('sender', line).join('\n') : null;
		return warning(replyText(one), fix ?? line('messages', 'list', '--status', one.state));
	});
}

function judgeUncertain({ messages }: QueueState, { line }: Around): Verdict {
	const count = messages.uncertain ?? 0;
	if (count === 0) return ok('no message is uncertain');
	return warning(
		`${counted(count, 'message')} may or may not have arrived: the answer of the mail server was lost`,
		line('messages', 'list', '--status', 'uncertain'),
	);
}

/** Of fewer messages it takes a larger share: of 25, two are two people, and nine a stale list. */
const worrying = [
	{ attempted: 100, percent: 5 },
	{ attempted: 20, percent: 20 },
] as const;

/** Of seven days. Mailbox providers take a sender for a spammer whose lists are this stale. */
export function judgeBounced(
	{ attempted, hardBounced }: { attempted: number; hardBounced: number },
	line: Line,
): Verdict {
	if (attempted === 0) return ok('no message was sent or bounced in seven days');
	const says = `${numberText(hardBounced)} of ${counted(attempted, 'message')} of seven days bounced for good`;
	const found = worrying.find((one) => attempted >= one.attempted);
	if (found === undefined) return ok(`${says}: too few to judge`);
	const share = (hardBounced / attempted) * 100;
	const shown = `${says} (${shareText(share)})`;
	return share > found.percent
		? warning(`${shown}: the list is stale`, line('report', '--last', '7d'))
		: ok(shown);
}
