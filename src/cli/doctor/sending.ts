import { isTimeZone, microsPerDay } from '../../api/datetime.js';
import { codeOf, whyUnreachable } from '../../api/errors.js';
import { withoutSecrets } from '../../api/quote.js';
import { isLoopback, isLoopbackUrl } from '../../api/schema/url.js';
import type { Contents, OfContents, Webhook } from '../connect/inspect.js';
import type { SecretCount, SmtpTest } from '../frame/connection.js';
import { counted } from '../render/units.js';
import { acceptance, refusal, remedyFor } from '../verbs/smtp-reply.js';
import { judgeValidity } from './certificate.js';
import {
	type Checks,
	firstError,
	ok,
	once,
	problem,
	type Surroundings,
	skipped,
	type Verdict,
	warning,
} from './checks.js';

type Line = Surroundings['line'];
type Settings = Awaited<ReturnType<Contents['settings']>>;
type Smtp = Awaited<ReturnType<Contents['smtp']>>;

/** The keys of the environment: by their ids, the first wraps; `problem`: why they are unusable. */
interface GivenKeys {
	given: readonly { id: string }[];
	problem: string | null;
}

/** Many mail servers keep strangers waiting before they greet them, and hang up on those who do not wait. */
const mailServerMs = 15_000;

export function sendingChecks(of: OfContents, keys: GivenKeys, around: Surroundings): Checks {
	const { line, online, text, timeout } = around;
	const judged = (judge: (settings: Settings) => Verdict) =>
		of(async ({ settings }) => judge(await settings()));
	let test: (() => Promise<SmtpTest>) | null = null;
	const tried = (judge: (test: SmtpTest) => Verdict) =>
		online(
			of(async ({ smtp, testSmtp }) => {
				if ((await smtp()) === null) return skipped('no mail server is set');
				test ??= once(async () => {
					const limit = timeout(mailServerMs);
					const found = await testSmtp(limit);
					return limit.aborted ? { ...found, reply: firstError(limit.reason) } : found;
				});
				return judge(await test());
			}),
		);
	return {
		'settings.secrets': of(async ({ secrets }) => judgeSecrets(await secrets(), keys, line)),
		'settings.senders': of(async ({ senders }) => {
			const [first, ...others] = await senders();
			if (first === undefined)
				return problem('no sender is known: nothing can be sent', line('senders', 'add', 'ADDRESS'));
			return ok(others.length === 0 ? `${first} may send` : `${others.length + 1} addresses may send`);
		}),
		'settings.smtp': of(async ({ smtp }) => judgeSmtp(await smtp(), line)),
		'settings.public-url': judged((settings) => judgePublicUrl(settings, line)),
		'settings.bounces': judged(({ bounceAddress }) =>
			bounceAddress === null
				? warning(
						'no bounce address is set: later bounces go to the sender of the mail, and are not recorded',
						line('engine', 'settings', 'set', 'bounce_address', 'ADDRESS'),
					)
				: ok(`bounces come back to ${bounceAddress}`),
		),
		'settings.time-zone': judged(({ timeZone }) =>
			isTimeZone(timeZone)
				? ok(`the report counts days of ${timeZone}`)
				: problem(
						`this Node.js knows no time zone "${timeZone}"`,
						line('engine', 'settings', 'set', 'time_zone', 'UTC'),
					),
		),
		'smtp.login': tried((test) => {
			if (test.ok) return ok(acceptance(test));
			const set = line('engine', 'init', '--smtp', 'smtp://USER@HOST:587');
			return problem(refusal(test), test.remedy === null ? set : text(remedyFor(test.remedy)));
		}),
		'smtp.certificate': tried(({ host, port, security, certificate, ok: isFine }) => {
			if (security === 'never') return skipped('TLS is not asked for (tls=never)');
			if (certificate !== null)
				return judgeValidity(host, certificate.validTo, {
					now: around.now(),
					isChecked: security !== 'opportunistic',
					renew: 'the operator of the mail server has to renew it',
				});
			return isFine
				? ok(`${host}:${port} offers no TLS, and none is asked for`)
				: skipped('the mail server has shown none');
		}),
		'webhooks.deliveries': of(async ({ webhooks }) => {
			const all = await webhooks();
			const complaints = all.flatMap((one) => judgeWebhook(one, around) ?? []);
			if (complaints.length > 0) return complaints;
			return ok(all.length === 0 ? 'no webhooks' : `${counted(all.length, 'webhook')} without failures`);
		}),
		'connection.public-url': online(
			of(async ({ settings }) => {
				const { publicUrl } = await settings();
				return publicUrl === null ? skipped('no public URL is set') : visit(publicUrl, around);
			}),
		),
	};
}

function judgeSecrets(counts: readonly SecretCount[], keys: GivenKeys, line: Line): Verdict {
	if (keys.problem !== null)
		return problem(keys.problem, 'one key a line, 32 bytes in hex: openssl rand -hex 32');
	const unknown = counts.find(({ key }) => key !== null && keys.given.every(({ id }) => id !== key));
	if (unknown !== undefined)
		return problem(
			`${counted(unknown.secrets, 'secret')} of the database are wrapped with key ${unknown.key}, which is not given`,
			'name the file with that key in MAILCTL_KEY_FILE',
		);
	const [current] = keys.given;
	const others = counts.filter(({ key }) => key !== current?.id);
	const sum = others.reduce((all, { secrets }) => all + secrets, 0);
	const many = counted(sum, 'secret');
	if (sum === 0) return ok(current === undefined ? 'none' : `wrapped with key ${current.id}`);
	if (current === undefined) return ok(`${many}, not wrapped: MAILCTL_KEY_FILE names no key`);
	return warning(`${many} not wrapped with key ${current.id}`, line('engine', 'secrets', 'wrap'));
}

function judgeSmtp(smtp: Smtp, line: Line): Verdict {
	if (smtp === null)
		return problem(
			'no mail server is set: nothing can be sent',
			line('engine', 'init', '--smtp', 'smtp://USER@HOST:587'),
		);
	const { host, port, security, user, password } = smtp;
	const server = `${host}:${port}`;
	if (user !== null && password === null)
		return problem(
			`${server} is to be logged in to as ${user}, and no password is set`,
			line('engine', 'init', '--smtp-password-file', 'FILE'),
		);
	if (security === 'never' && !isLoopback(host))
		return warning(
			`${server} is used without TLS${user === null ? '' : ', password included'}`,
			line('engine', 'init', '--smtp', 'smtp://USER@HOST:587?tls=required'),
		);
	return ok(`mail goes to ${server}${user === null ? '' : `, as ${user}`}`);
}

function judgePublicUrl({ publicUrl, smtpUrl }: Settings, line: Line): Verdict {
	const fix = line('engine', 'settings', 'set', 'public_url', 'https://HOST');
	// A mail server of this machine may be a trial, or a relay to the internet.
	if (publicUrl === null)
		return warning(
			isLoopbackUrl(smtpUrl)
				? 'no public URL is set: links in mails lead to this machine, which is enough for a test only'
				: 'no public URL is set: mails go without links for opens, clicks and unsubscribing, and bulk mail is refused',
			fix,
		);
	const { protocol, hostname } = new URL(publicUrl);
	if (isLoopback(hostname))
		return warning(`links in mails lead to ${publicUrl}: they work on this machine alone`, fix);
	if (protocol === 'http:')
		return warning(
			`links in mails are plain http (${publicUrl}): mailbox providers distrust such links`,
			fix,
		);
	return ok(`links in mails lead to ${publicUrl}`);
}

/**
 * Any answer will do, except that of a gateway without a server behind it: a proxy may let through only the pages of
 * mails. A warning at most: a network often cannot reach its own public address from within.
 */
async function visit(publicUrl: string, { line, timeout }: Surroundings): Promise<Verdict> {
	const limit = timeout();
	try {
		const { status, body } = await fetch(`${publicUrl}/healthz`, { redirect: 'manual', signal: limit });
		await body?.cancel();
		if (status < 500) return ok(`${publicUrl} answers`);
		return warning(`${publicUrl} answers ${status}: links in mails lead nowhere`, line('serve'));
	} catch (error) {
		// The error of `fetch` itself always says "fetch failed".
		const cause = limit.aborted ? limit.reason : error instanceof Error ? error.cause : error;
		const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
		const code = codeOf(first);
		const why = whyUnreachable(code) ?? firstError(first);
		return warning(`this machine gets no answer from ${publicUrl}: ${why}`, line('serve'));
	}
}

function judgeWebhook(
	{ id, url, stopped, failedLately, deliveredLately, retried }: Webhook,
	{ line, moment, now, until }: Surroundings,
): Verdict | null {
	const name = `webhook ${id} (${withoutSecrets(url)})`;
	const failed = counted(failedLately, 'notification');
	if (stopped !== null)
		return problem(
			`${name} answered 410 Gone at ${moment(stopped.stopped_at)}: ${counted(stopped.waiting, 'notification')} waiting`,
			line('webhooks', 'replay', String(id), '--failed'),
		);
	if (failedLately > 0 && deliveredLately === 0)
		return problem(
			`${name} took nothing in a day: ${failed} failed for good`,
			line('webhooks', 'test', String(id)),
		);
	// The target may refuse a single body; refusals that go on are a fault.
	if (retried !== null && (!retried.tookOthersSince || now() - retried.since > microsPerDay)) {
		const again = retried.next === null ? '' : `; tried again ${until(retried.next)}`;
		return warning(
			`${name} has been failing since ${moment(retried.since)}: ${retried.said}${again}`,
			line('webhooks', 'deliveries', String(id)),
		);
	}
	if (failedLately === 0) return null;
	return warning(
		`${name} failed ${failed} for good in a day`,
		line('webhooks', 'deliveries', String(id), '--state', 'failed'),
	);
}
