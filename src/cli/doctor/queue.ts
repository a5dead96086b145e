import { type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import type { PauseCause } from '../../api/pauses.js';
import { causeOf, faultSentence, heldReason, isRefusalOfSender, pausedBy } from '../../api/pauses.js';
import { withoutSecrets } from '../../api/quote.js';
import type { MessageState } from '../../api/records.js';
import type { QueueState } from '../../store/queue.js';
import type { Contents, Webhook } from '../connect/inspect.js';
import { counted, numberText, replyText, shareText, spanText } from '../render/units.js';
import { type Answer, type Checks, ok, problem, type Surroundings, type Verdict, warning } from './checks.js';

type Line = Surroundings['line'];

const hour: Micros = 3_600 * microsPerSecond;

const unfinishedStates: readonly MessageState[] = ['staged', 'queued', 'leased', 'deferred', 'uncertain'];

export function queueChecks(contents: () => Contents, around: Surroundings): Checks {
	const { line, moment, now, until } = around;
	const queue = () => contents().queue();
	const each = <T>(ones: readonly T[], none: string, judge: (one: T) => Verdict): Answer =>
		ones.length === 0 ? ok(none) : ones.slice(0, 5).map(judge);
	return {
		'queue.paused': async () => {
			const { pauses, messages } = await queue();
			return each(pauses, 'the queue is not paused', ({ kind, reason, since, retry_at }) => {
				if (kind !== 'manual') {
					const next = retry_at === null ? '' : `; a worker tries again ${until(retry_at)}`;
					return problem(faultSentence(reason, moment(since)) + next, stepsOf(causeOf(reason ?? ''), line));
				}
				const isEmpty = unfinishedStates.every((state) => (messages[state] ?? 0) === 0);
				const says = `it was paused ${pausedBy(reason)} at ${moment(since)}${reason === null ? '' : `: ${reason}`}`;
				return problem(says, stepsOf(isEmpty ? 'hand' : causeOf(heldReason(reason)), line));
			});
		},
		'queue.waiting': async () => judgeWaiting(await queue(), around),
		'queue.limits': async () =>
			each((await queue()).limits, 'no limit delays messages', ({ setting, limit, messages, last_at }) => {
				const says = `${setting} ${limit} delays ${counted(messages, 'message')} until ${moment(last_at)} or later`;
				if (last_at - now() <= microsPerDay) return ok(says);
				return warning(says, line('engine', 'settings', 'get', setting));
			}),
		'queue.workers': async () => {
			const { workers } = await queue();
			// A killed process of another machine is missed by its silence alone.
			const gone = workers.filter(({ role, messages }) => role === null && messages > 0);
			if (gone.length > 0)
				return gone.map(({ host, pid, messages }) =>
					warning(
						`process ${pid} on ${host} stopped while it was sending ${counted(messages, 'message')}`,
						'the next worker sends them; one in transit may arrive twice',
					),
				);
			const lines = workers.map(({ role, host, pid, heard_at }) => {
				const last = heard_at === null ? '' : ` (heard of ${spanText(Math.max(0, now() - heard_at))} ago)`;
				return `${role ?? 'worker'} ${pid} on ${host}${last}`;
			});
			return ok(lines.join(', ') || 'no worker is running');
		},
		'queue.unfinished': async () =>
			each((await queue()).unfinished, 'no worker stopped while preparing a message', (one) => {
				const { message, state, deaths, due_at } = one;
				const again = due_at === null ? '' : `; it is tried again ${until(due_at)}`;
				const times = deaths === 1 ? 'a worker' : `${deaths} workers`;
				const says = `${times} stopped while preparing message ${message}`;
				return warning(says + (state === 'failed' ? '; it failed' : again), line('messages', 'get', message));
			}),
		'queue.replies': async () => {
			const replies = (await queue()).replies.filter(({ state }) => state !== 'bounced');
			return each(replies, 'no mail server refused or deferred a message in seven days', (one) => {
				const isOfSender = one.state === 'deferred' && isRefusalOfSender(one.reply);
				const list = line('messages', 'list', '--status', one.state);
				return warning(replyText(one), isOfSender ? stepsOf('sender', line) : list);
			});
		},
		'queue.uncertain': async () => {
			const { uncertain = 0 } = (await queue()).messages;
			if (uncertain === 0) return ok('no message is uncertain');
			const says = `${counted(uncertain, 'message')} may have arrived: the mail server's reply was lost`;
			return warning(says, line('messages', 'list', '--status', 'uncertain'));
		},
		'queue.bounced': async () => judgeBounced(await contents().lately(), line),
		'webhooks.deliveries': async () => {
			const all = await contents().webhooks();
			const complaints = all.flatMap((one) => judgeWebhook(one, around) ?? []);
			if (complaints.length > 0) return complaints;
			return ok(all.length === 0 ? 'no webhooks' : `${counted(all.length, 'webhook')} without failures`);
		},
	};
}

/** The steps after a pause, a line each: a sentence where it takes more than one command, and the commands. */
export function stepsOf(cause: PauseCause, line: Line): string {
	const resume = line('engine', 'queue', 'resume');
	const test = line('engine', 'smtp-test');
	const list = (state: MessageState) => line('messages', 'list', '--status', state);
	const init = (...words: readonly string[]) => line('engine', 'init', ...words);
	const steps: Readonly<Record<PauseCause, readonly string[]>> = {
		hand: [resume],
		restore: [
			'cancel messages that were sent after the backup, then resume:',
			...[list('queued'), list('deferred'), line('messages', 'cancel', 'UUID'), resume],
		],
		process: ['fix what stops the worker, which then continues by itself:', line('doctor')],
		unset: ['configure a mail server, then test it:', init('--smtp', 'smtp://USER@HOST:587'), test],
		login: [
			'set the right password, test it, then resume:',
			...[init('--smtp-password-file', 'FILE'), test, resume],
		],
		sender: ['allow the sender at the mail server, or use another one, then resume:', test, resume],
		server: [
			'fix the cause, test the mail server, then resume:',
			...[line('doctor', '--only', 'smtp'), test, resume],
		],
	};
	return steps[cause].join('\n');
}

function judgeWaiting(queue: QueueState, { now, line, until }: Surroundings): Verdict {
	const { due, held, next_due_at, workers, pauses, limits } = queue;
	if (due === 0)
		return ok(next_due_at === null ? 'no message is waiting' : `the next is due ${until(next_due_at)}`);
	const late = next_due_at === null ? 0 : now() - next_due_at;
	const back = held === 0 ? '' : ` (limits delay ${held === due ? 'all' : held} of them)`;
	const says = `${counted(due, 'message')} ${due === 1 ? 'is' : 'are'} due, the oldest for ${spanText(late)}${back}`;
	if (pauses.length > 0) return ok(`${says}: the queue is paused`);
	if (workers.every(({ role }) => role === null))
		return (late > hour ? problem : warning)(`${says}, and no worker is running`, line('worker'));
	if (late <= hour || limits.length > 0) return ok(says);
	return warning(`${says}, although a worker is running`, line('engine', 'queue', 'stats'));
}

/** Mailbox providers take a sender for a spammer whose lists are this stale. */
export function judgeBounced(lately: { attempted: number; hardBounced: number }, line: Line): Verdict {
	const { attempted, hardBounced } = lately;
	const says = `${numberText(hardBounced)} of ${counted(attempted, 'message')} in seven days hard-bounced`;
	if (attempted < 100) return ok(says);
	const share = (hardBounced / attempted) * 100;
	const shown = `${says} (${shareText(share)})`;
	return share <= 5 ? ok(shown) : warning(`${shown}: the list is stale`, line('report', '--last', '7d'));
}

function judgeWebhook(webhook: Webhook, { line, moment, now, until }: Surroundings): Verdict | null {
	const { id, url, stopped, failedLately, deliveredLately, retried } = webhook;
	const name = `webhook ${id} (${withoutSecrets(url)})`;
	const command = (...words: string[]) => line('webhooks', ...words);
	const failed = `${counted(failedLately, 'notification')} failed in 24 hours`;
	if (stopped !== null) {
		const waiting = `${counted(stopped.waiting, 'notification')} waiting`;
		const says = `${name} answered 410 Gone at ${moment(stopped.stopped_at)}: ${waiting}`;
		return problem(says, command('replay', String(id), '--failed'));
	}
	if (failedLately > 0 && deliveredLately === 0)
		return problem(`${name}: ${failed}, and none was delivered`, command('test', String(id)));
	// The target may refuse a single body; refusals that go on are a fault.
	if (retried !== null && (!retried.tookOthersSince || now() - retried.since > microsPerDay)) {
		const again = retried.next === null ? '' : `; it is tried again ${until(retried.next)}`;
		const says = `${name} has been failing since ${moment(retried.since)}: ${retried.said}${again}`;
		return warning(says, command('deliveries', String(id)));
	}
	if (failedLately === 0) return null;
	return warning(`${name}: ${failed}`, command('deliveries', String(id), '--state', 'failed'));
}
