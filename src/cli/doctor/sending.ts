import { isTimeZone, type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import type { PauseCause } from '../../api/pauses.js';
import { causeOf, faultSentence, heldReason, isRefusalOfSender, pausedBy } from '../../api/pauses.js';
import { withoutSecrets } from '../../api/quote.js';
import type { MessageState } from '../../api/records.js';
import { isLoopback, isLoopbackUrl } from '../../api/schema/url.js';
import type { QueueState } from '../../store/queue.js';
import type { Contents, Webhook } from '../connect/inspect.js';
import { counted, numberText, replyText, shareText, spanText } from '../render/units.js';
import { acceptance, remedyFor, smtpRefusal } from '../verbs/refusals.js';
import type { Answer, Checks, Surroundings, Verdict } from './checks.js';
import { firstError, ok, once, problem, Skip, warning } from './checks.js';
import { judgeValidity } from './machine.js';

/** `contents` throws `Skip` if the database is not open. */
export interface Database extends Surroundings {
	contents(): Contents;
}

/**
 * Ids of the keys in the environment. New secrets are encrypted with the first key. `problem`: why no key is usable.
 */
interface GivenKeys {
	given: readonly { id: string }[];
	problem: string | null;
}

/** Many mail servers delay the greeting for unknown clients, and disconnect a client that does not wait. */
const mailServerMs = 15_000;

export function sendingChecks({ contents, ...around }: Database, keys: GivenKeys): Checks {
	const { line, text, timeout, now, goOnline } = around;
	const set = (name: string, value: string) => line('engine', 'settings', 'set', name, value);
	const init = (flag: string, value: string) => line('engine', 'init', flag, value);
	const setServer = init('--smtp', 'smtp://USER@HOST:587');
	const tryServer = once(async () => {
		goOnline();
		const { smtp, testSmtp } = contents();
		if ((await smtp()) === null) throw new Skip('no mail server is configured');
		const limit = timeout(mailServerMs);
		const test = await testSmtp(limit);
		return limit.aborted ? { ...test, reply: firstError(limit.reason) } : test;
	});
	return {
		'settings.secrets': async () => {
			const counts = await contents().secrets();
			if (keys.problem !== null)
				return problem(keys.problem, 'one key a line, 32 bytes in hex: openssl rand -hex 32');
			const unknown = counts.find(({ key }) => key !== null && keys.given.every(({ id }) => id !== key));
			if (unknown !== undefined) {
				const says = `${counted(unknown.secrets, 'secret')} encrypted with key ${unknown.key}, which is missing`;
				return problem(says, 'add the missing key to the file that MAILCTL_KEY_FILE names');
			}
			const [current] = keys.given;
			const others = counts.filter(({ key }) => key !== current?.id);
			const sum = others.reduce((all, { secrets }) => all + secrets, 0);
			const many = counted(sum, 'secret');
			if (sum === 0) return ok(current === undefined ? 'no secrets' : `encrypted with key ${current.id}`);
			if (current === undefined) return ok(`${many} stored in plain text: MAILCTL_KEY_FILE is not set`);
			return warning(`${many} not encrypted with key ${current.id}`, line('engine', 'secrets', 'wrap'));
		},
		'settings.senders': async () => {
			const [first, ...others] = await contents().senders();
			if (first === undefined)
				return problem('no sender, so nothing can be sent', line('senders', 'add', 'ADDRESS'));
			return ok(others.length === 0 ? `${first} may send` : `${others.length + 1} addresses may send`);
		},
		'settings.smtp': async () => {
			const smtp = await contents().smtp();
			if (smtp === null) return problem('no mail server, so nothing can be sent', setServer);
			const { host, port, security, user, password } = smtp;
			const server = `${host}:${port}`;
			const noPassword = `no password is set for ${user} at ${server}`;
			if (user !== null && password === null)
				return problem(noPassword, init('--smtp-password-file', 'FILE'));
			const what = user === null ? 'mail goes' : 'mail and password go';
			if (security === 'never' && !isLoopback(host))
				return warning(
					`${what} to ${server} without TLS`,
					init('--smtp', 'smtp://USER@HOST:587?tls=required'),
				);
			return ok(`mail goes to ${server}${user === null ? '' : `, as ${user}`}`);
		},
		'settings.public-url': async () => {
			const { publicUrl, smtpUrl } = await contents().settings();
			const fix = set('public_url', 'https://HOST');
			// Without a public URL, mails have links only if the mail server is on this machine, as in a test.
			const why = isLoopbackUrl(smtpUrl)
				? 'so links in mails lead to this machine'
				: 'so mails have no tracking and no unsubscribe links';
			if (publicUrl === null) return warning(`no public URL is set, ${why}`, fix);
			const { protocol, hostname } = new URL(publicUrl);
			const links = `links in mails lead to ${publicUrl}`;
			if (isLoopback(hostname)) return warning(`${links}, which works only on this machine`, fix);
			if (protocol === 'http:') return warning(`${links}: mailbox providers distrust plain http`, fix);
			return ok(links);
		},
		'settings.bounces': async () => {
			const { bounceAddress } = await contents().settings();
			if (bounceAddress !== null) return ok(`bounces come back to ${bounceAddress}`);
			const says = 'no bounce address is set: mailctl receives no bounces by mail';
			return warning(says, set('bounce_address', 'ADDRESS'));
		},
		'settings.time-zone': async () => {
			const { timeZone } = await contents().settings();
			if (isTimeZone(timeZone)) return ok(`reports count days in the time zone ${timeZone}`);
			return problem(`this Node.js does not know the time zone "${timeZone}"`, set('time_zone', 'UTC'));
		},
		'smtp.login': async () => {
			const test = await tryServer();
			if (test.ok) return ok(acceptance(test));
			return problem(smtpRefusal(test), test.remedy === null ? setServer : text(remedyFor(test.remedy)));
		},
		'smtp.certificate': async () => {
			const { host, port, security, certificate, ok: isFine } = await tryServer();
			if (security === 'never') throw new Skip('the setting smtp_url turns TLS off');
			if (certificate !== null)
				return judgeValidity(host, certificate.validTo, {
					now: now(),
					isChecked: security !== 'opportunistic',
					renew: 'ask the operator of the mail server to renew the certificate',
				});
			if (!isFine) throw new Skip('the mail server showed no certificate');
			return ok(`${host}:${port} offers no TLS, and the setting smtp_url does not require TLS`);
		},
	};
}

type Line = Surroundings['line'];

const hour: Micros = 3_600 * microsPerSecond;

const unfinishedStates: readonly MessageState[] = ['staged', 'queued', 'leased', 'deferred', 'uncertain'];

export function queueChecks({ contents, ...around }: Database): Checks {
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
			// Only a missing heartbeat shows that a worker on another machine was killed.
			const gone = workers.filter(({ role, messages }) => role === null && messages > 0);
			if (gone.length > 0)
				return gone.map(({ host, pid, messages }) =>
					warning(
						`process ${pid} on ${host} stopped while it was sending ${counted(messages, 'message')}`,
						'the next worker sends these messages; one that was in transit may arrive twice',
					),
				);
			const lines = workers.map(({ role, host, pid, heard_at }) => {
				const last = heard_at === null ? '' : ` (last seen ${spanText(Math.max(0, now() - heard_at))} ago)`;
				return `${role ?? 'worker'} ${pid} on ${host}${last}`;
			});
			return ok(lines.join(', ') || 'no worker is running');
		},
		'queue.unfinished': async () =>
			each((await queue()).unfinished, 'no worker stopped while preparing a message', (one) => {
				const { message, state, deaths, due_at } = one;
				const again = due_at === null ? '' : `; a worker tries again ${until(due_at)}`;
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
			if (uncertain === 0) return ok('no message has an uncertain outcome');
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

export function stepsOf(cause: PauseCause, line: Line): string {
	const resume = line('engine', 'queue', 'resume');
	const test = line('engine', 'smtp-test');
	const list = (state: MessageState) => line('messages', 'list', '--status', state);
	const init = (...words: readonly string[]) => line('engine', 'init', ...words);
	const steps: Readonly<Record<PauseCause, readonly string[]>> = {
		hand: [resume],
		restore: [
			'messages sent after the backup are queued again: cancel them, then resume:',
			...[list('queued'), list('deferred'), line('messages', 'cancel', 'UUID'), resume],
		],
		process: ['find and fix what stops the worker; the worker then continues by itself:', line('doctor')],
		unset: ['configure a mail server, then test it:', init('--smtp', 'smtp://USER@HOST:587'), test],
		login: [
			'set the right password, test it, then resume:',
			...[init('--smtp-password-file', 'FILE'), test, resume],
		],
		sender: ['allow the sender at the mail server, or use another sender, then resume:', test, resume],
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

/** Mailbox providers treat a sender as a spammer if more than 5 % of the addresses are invalid. */
export function judgeBounced(lately: { attempted: number; hardBounced: number }, line: Line): Verdict {
	const { attempted, hardBounced } = lately;
	const says = `${numberText(hardBounced)} of ${counted(attempted, 'message')} in seven days hard-bounced`;
	if (attempted < 100) return ok(says);
	const share = (hardBounced / attempted) * 100;
	const shown = `${says} (${shareText(share)})`;
	if (share <= 5) return ok(shown);
	return warning(`${shown}: too many addresses are invalid`, line('report', '--last', '7d'));
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
	// If the target has since accepted another notification, report the failure only after a day.
	if (retried !== null && (!retried.tookOthersSince || now() - retried.since > microsPerDay)) {
		const again = retried.next === null ? '' : `; mailctl tries again ${until(retried.next)}`;
		const says = `${name} has been failing since ${moment(retried.since)}: ${retried.said}${again}`;
		return warning(says, command('deliveries', String(id)));
	}
	if (failedLately === 0) return null;
	return warning(`${name}: ${failed}`, command('deliveries', String(id), '--state', 'failed'));
}
