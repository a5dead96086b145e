/** The queue: what holds mail up, who sends, and what came of it. */
import { type Clock, type Micros, microsPerDay, microsPerSecond } from '../../../api/datetime.js';
import type { QueueState } from '../../../store/queue.js';
import { countOf, momentText, spanText, untilText } from '../amounts.js';
import type { Look } from '../looking.js';
import { type Check, ok, problem, type Surroundings, type Verdict, warning } from '../model.js';

type Line = Surroundings['line'];

/** `queue.…`; why nothing leaves comes first. */
export function queueChecks(look: Look, clock: Clock, { line }: Pick<Surroundings, 'line'>): Check[] {
	// It walks everything that waits: once for all of them.
	let asked: Promise<QueueState> | null = null;
	const judged = (judge: (state: QueueState, around: Around) => Verdict | readonly Verdict[]) =>
		look(async ({ queue }) => {
			asked ??= queue();
			return judge(await asked, { now: clock.now(), line });
		});
	return [
		{ name: 'queue.paused', run: judged(judgePause) },
		{ name: 'queue.waiting', run: judged(judgeWaiting) },
		{ name: 'queue.limits', run: judged(judgeLimits) },
		{ name: 'queue.workers', run: judged(judgeWorkers) },
		{ name: 'queue.deferred', run: judged(judgeDeferred) },
		{ name: 'queue.uncertain', run: judged(judgeUncertain) },
		{ name: 'queue.bounced', run: look(async ({ lately }) => judgeBounced(await lately(), line)) },
	];
}

interface Around {
	now: Micros;
	line: Line;
}

const hour: Micros = 3_600 * microsPerSecond;

/** A fault is the mail server's; a pause by hand is somebody's, who may have forgotten it. */
function judgePause({ pauses }: Pick<QueueState, 'pauses'>, { now, line }: Around): Verdict | Verdict[] {
	if (pauses.length === 0) return ok('nothing holds the queue up');
	return pauses.map(({ kind, reason, since, retry_at }) => {
		if (kind === 'manual') {
			const why = reason === null ? '' : `: ${reason}`;
			return problem(`it was paused by hand at ${momentText(since)}${why}`, line('engine queue resume'));
		}
		const next = retry_at === null ? '' : `; it is tried again ${untilText(retry_at, now)} by whoever sends`;
		return problem(
			`the mail server takes no mail since ${momentText(since)}: ${reason ?? 'it did not say why'}${next}`,
			line('engine queue resume'),
		);
	});
}

/** That messages wait is no harm; that nobody comes for them is. */
function judgeWaiting(
	{
		due,
		held,
		next_due_at,
		workers,
		pauses,
		limits,
	}: Omit<QueueState, 'messages' | 'oldest_at' | 'deferred'>,
	{ now, line }: Around,
): Verdict {
	if (due === 0)
		return ok(next_due_at === null ? 'nothing waits' : `the next is due ${untilText(next_due_at, now)}`);
	const late = next_due_at === null ? 0 : now - next_due_at;
	const back = held === 0 ? '' : ` (${held === due ? 'all' : held} of them held back by limits)`;
	const waiting = `${countOf(due, 'message')} ${due === 1 ? 'is' : 'are'} due, the oldest for ${spanText(late)}${back}`;
	if (pauses.length > 0) return ok(`${waiting}: the queue is paused`);
	const isServed = workers.some(({ role }) => role !== null);
	if (!isServed) return (late > hour ? problem : warning)(`${waiting}, and no process sends`, line('worker'));
	if (limits.length > 0) return ok(waiting);
	return late > hour
		? warning(`${waiting}, though a process sends`, line('engine queue stats'))
		: ok(waiting);
}

const mostLimits = 5;

/** They are there on purpose; but who set one may not have reckoned how long it takes. */
function judgeLimits({ limits }: QueueState, { now, line }: Around): Verdict | Verdict[] {
	if (limits.length === 0) return ok('no limit holds messages back');
	return limits.slice(0, mostLimits).map(({ setting, limit, messages, last_at }) => {
		const held = `${setting} ${limit} holds ${countOf(messages, 'message')} back`;
		const says = `${held}, the last at least until ${momentText(last_at)}`;
		return last_at - now > microsPerDay ? warning(says, line(`engine settings get ${setting}`)) : ok(says);
	});
}

/** One of another machine that was killed is missed by its silence alone. */
function judgeWorkers({ workers }: QueueState, { now }: Around): Verdict | Verdict[] {
	const gone = workers.filter(({ role, messages }) => role === null && messages > 0);
	if (gone.length > 0)
		return gone.map(({ host, pid, messages }) =>
			warning(
				`process ${pid} on ${host} is gone with ${countOf(messages, 'message')} in its hands`,
				'the next process that sends takes them back; what was on its way may arrive twice',
			),
		);
	const [first] = workers;
	if (first === undefined) return ok('no process sends at the moment');
	const lines = workers.map(({ role, host, pid, heard_at }) => {
		const last = heard_at === null ? '' : ` (heard of ${spanText(Math.max(0, now - heard_at))} ago)`;
		return `${role ?? 'worker'} ${pid} on ${host}${last}`;
	});
	return ok(lines.join(', '));
}

const mostDomains = 3;

function judgeDeferred({ deferred }: QueueState, { line }: Around): Verdict | Verdict[] {
	if (deferred.length === 0) return ok('no domain puts mail off');
	const shown = deferred
		.slice(0, mostDomains)
		.map(({ domain, messages, last_reply }) =>
			warning(
				`${domain} puts ${countOf(messages, 'message')} off: ${last_reply ?? 'it did not say why'}`,
				line('engine queue stats'),
			),
		);
	const more = deferred.length - shown.length;
	if (more === 0) return shown;
	return [
		...shown,
		warning(`${countOf(more, 'other domain')} put mail off, too`, line('engine queue stats')),
	];
}

function judgeUncertain({ messages }: QueueState, { line }: Around): Verdict {
	const count = messages.uncertain ?? 0;
	if (count === 0) return ok('no message is uncertain');
	return warning(
		`of ${countOf(count, 'message')} nobody knows whether it arrived: the answer of the mail server was lost`,
		line('messages list --status uncertain'),
	);
}

/** Of fewer messages it takes a larger share: of 25, two are two people, and nine a stale list. */
const worrying = [
	{ sent: 100, percent: 5 },
	{ sent: 20, percent: 20 },
] as const;

/** Of seven days. Mailbox providers take a sender for a spammer whose lists are this stale. */
export function judgeBounced(
	{ sent, hardBounced }: { sent: number; hardBounced: number },
	line: Line,
): Verdict {
	const share = sent === 0 ? 0 : (hardBounced / sent) * 100;
	const says = `${countOf(hardBounced, 'message')} of ${countOf(sent, 'message')} sent in seven days bounced for good`;
	const found = worrying.find((one) => sent >= one.sent);
	if (sent === 0) return ok('nothing was sent in seven days');
	if (found === undefined) return ok(`${says}: too few to judge`);
	const shown = `${says} (${share.toFixed(1)} %)`;
	return share > found.percent ? warning(`${shown}: the list is stale`, line('report --last 7d')) : ok(shown);
}
