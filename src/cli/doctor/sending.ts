/** What a database needs to send: its settings, the mail server, a public URL that answers, webhooks that are taken. */
import { isTimeZone, type Micros, microsPerDay } from '../../api/datetime.js';
import { whyUnreachable } from '../../api/errors.js';
import { withoutSecrets } from '../../api/quote.js';
import { isLoopback } from '../../api/schema/url.js';
import type { SecretCount, SmtpTest } from '../frame/connection.js';
import { momentText } from '../render/times.js';
import { counted, untilText } from '../render/units.js';
import { acceptance, refusal, remedyFor } from '../verbs/smtp-reply.js';
import { judgeValidity } from './certificate.js';
import {
	type Check,
	firstError,
	ok,
	once,
	online,
	problem,
	type Surroundings,
	skipped,
	type Verdict,
	warning,
} from './checks.js';
import type { InspectedSettings, InspectedSmtp, InspectedWebhook, OfContents } from './inspection.js';

type Line = Surroundings['line'];

/** The keys of the environment: by their ids, the first wraps; `problem`: why they are unusable. */
interface GivenKeys {
	given: readonly { id: string }[];
	problem: string | null;
}

/** `settings.…`, in the order one sets up a database, and `smtp.…`. */
export function sendingChecks(of: OfContents, keys: GivenKeys, around: Surroundings): Check[] {
	const { line } = around;
	const judged = (judge: (settings: InspectedSettings, line: Line) => Verdict) =>
		of(async ({ settings }) => judge(await settings(), line));
	return [
		{
			name: 'settings.secrets',
			run: of(async ({ secrets }) => judgeSecrets(await secrets(), keys, line)),
		},
		{
			name: 'settings.senders',
			run: of(async ({ senders }) => {
				const [first, ...others] = await senders();
				if (first === undefined)
					return problem('there is no sender: nothing can be sent', line('senders', 'add', 'ADDRESS'));
				return ok(others.length === 0 ? `${first} may send` : `${others.length + 1} addresses may send`);
			}),
		},
		{ name: 'settings.smtp', run: judged(({ smtp }) => judgeSmtp(smtp, line)) },
		{ name: 'settings.public-url', run: judged(judgePublicUrl) },
		{
			name: 'settings.bounces',
			run: judged(({ bounceAddress }) =>
				bounceAddress === null
					? warning(
							'no bounce address is set: what bounces later goes to the sender of the mail, and is not recorded',
							line('engine', 'settings', 'set', 'bounce_address', 'ADDRESS'),
						)
					: ok(`bounces come back to ${bounceAddress}`),
			),
		},
		{
			name: 'settings.time-zone',
			run: judged(({ timeZone }) =>
				isTimeZone(timeZone)
					? ok(`the report counts days of ${timeZone}`)
					: problem(
							`this Node.js knows no time zone "${timeZone}"`,
							line('engine', 'settings', 'set', 'time_zone', 'UTC'),
						),
			),
		},
		...smtpChecks(of, around),
	];
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
	const older = current === undefined ? counts : counts.filter(({ key }) => key !== current.id);
	const many = older.reduce((sum, { secrets }) => sum + secrets, 0);
	if (current === undefined)
		return ok(
			many === 0
				? 'there are none'
				: `${counted(many, 'secret')}, not wrapped: MAILCTL_KEY_FILE names no key`,
		);
	return older.length === 0
		? ok(`wrapped with key ${current.id}`)
		: warning(
				`${counted(many, 'secret')} not wrapped with key ${current.id}`,
				line('engine', 'secrets', 'wrap'),
			);
}

/** Null: none is set. */
function judgeSmtp(smtp: InspectedSmtp | null, line: Line): Verdict {
	if (smtp === null)
		return problem(
			'no mail server is set: nothing can be sent',
			line('engine', 'init', '--smtp', 'smtp://USER@HOST:587'),
		);
	const { host, port, security, user, hasPassword } = smtp;
	const server = `${host}:${port}`;
	if (user !== null && !hasPassword)
		return problem(
			`${server} is to be logged in to as ${user}, and there is no password`,
			line('engine', 'init', '--smtp-password-file', 'FILE'),
		);
	if (security === 'never' && !isLoopback(host)) {
		const name = host.includes(':') ? `[${host}]` : host;
		const login = user === null ? '' : `${encodeURIComponent(user)}@`;
		return warning(
			`${server} is spoken to in the clear${user === null ? '' : ', password and all'}`,
			line('engine', 'init', '--smtp', `smtp://${login}${name}:${port}?tls=required`),
		);
	}
	return ok(`mail goes to ${server}${user === null ? '' : `, as ${user}`}`);
}

function judgePublicUrl({ publicUrl, smtp }: InspectedSettings, line: Line): Verdict {
	const fix = line('engine', 'settings', 'set', 'public_url', 'https://HOST');
	// A mail server of this machine may be a trial, or a relay to the internet.
	if (publicUrl === null)
		return warning(
			smtp !== null && isLoopback(smtp.host)
				? 'no public URL is set: links in mails lead to this machine, which does for a trial alone'
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

/** Many mail servers keep strangers waiting before they greet them, and hang up on those who do not wait. */
const mailServerMs = 15_000;

function smtpChecks(of: OfContents, around: Surroundings): Check[] {
	const { clock, line, text, timeout } = around;
	type Tried = { test: SmtpTest; late: string | null };
	let ask: (() => Promise<Tried>) | null = null;
	const tried = (judge: (tried: Tried, smtp: InspectedSmtp) => Verdict) =>
		of(async ({ settings, testSmtp }) => {
			const { smtp } = await settings();
			if (smtp === null) return skipped('no mail server is set');
			ask ??= once(async () => {
				const limit = timeout(mailServerMs);
				const test = await testSmtp(limit);
				return { test, late: limit.aborted ? firstError(limit.reason) : null };
			});
			return judge(await ask(), smtp);
		});
	const asked = (judge: Parameters<typeof tried>[0]) => online(around, tried(judge));
	return [
		{
			name: 'smtp.login',
			run: asked(({ test, late }) => {
				if (test.ok) return ok(acceptance(test));
				const fix =
					test.remedy === null
						? line('engine', 'init', '--smtp', 'smtp://USER@HOST:587')
						: text(remedyFor(test.remedy));
				return problem(late === null ? refusal(test) : `${test.host}:${test.port}: ${late}`, fix);
			}),
		},
		{
			name: 'smtp.certificate',
			run: asked(({ test }, { host, port, security }) => {
				if (security === 'never') return skipped('TLS is not asked for (tls=never)');
				if (test.certificate !== null)
					return judgeValidity(
						{ name: host, validTo: test.certificate.validTo },
						{
							now: clock.now(),
							isChecked: security !== 'opportunistic',
							renew: 'the operator of the mail server has to renew it',
						},
					);
				return test.ok
					? ok(`${host}:${port} offers no TLS, and none is asked for`)
					: skipped('the mail server has shown none');
			}),
		},
	];
}

/** `connection.public-url`. */
export function publicUrlCheck(of: OfContents, around: Surroundings): Check {
	const judge: Parameters<OfContents>[0] = async ({ settings }) => {
		const { publicUrl } = await settings();
		return publicUrl === null ? skipped('no public URL is set') : visit(publicUrl, around);
	};
	return { name: 'connection.public-url', run: online(around, of(judge)) };
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
		const code = first instanceof Error && 'code' in first ? String(first.code) : '';
		// `dns.public-url` has the problem of a name that does not exist: no server mends it.
		const fix = code === 'ENOTFOUND' || code === 'EAI_AGAIN' ? null : line('serve');
		const why = whyUnreachable(code) ?? firstError(first);
		return warning(`this machine gets no answer from ${publicUrl}: ${why}`, fix);
	}
}

/** `webhooks.deliveries`: a verdict for each webhook that something is wrong with. */
export function webhookCheck(of: OfContents, around: Surroundings): Check {
	return {
		name: 'webhooks.deliveries',
		run: of(async ({ webhooks }) => {
			const all = await webhooks();
			const complaints = all.map((one) => judgeWebhook(one, around)).filter((verdict) => verdict !== null);
			if (complaints.length > 0) return complaints;
			if (all.length === 0) return ok('there are no webhooks');
			return ok(
				all.length === 1 ? '1 webhook gets what it is told' : `${all.length} webhooks get what they are told`,
			);
		}),
	};
}

/** Null: no complaint. */
function judgeWebhook(
	{ id, url, stopped, failedLately, deliveredLately, oldestRetried }: InspectedWebhook,
	{ clock, line, zone }: Surroundings,
): Verdict | null {
	const now: Micros = clock.now();
	const name = `webhook ${id} (${withoutSecrets(url)})`;
	if (stopped !== null) {
		const { since, waiting } = stopped;
		const left =
			waiting === 0 ? '' : `, and ${counted(waiting, 'notification')} ${waiting === 1 ? 'waits' : 'wait'}`;
		return problem(
			`${name} answered 410 Gone: it is told nothing since ${momentText(since, zone)}${left}`,
			line('webhooks', 'replay', String(id), '--failed'),
		);
	}
	if (failedLately > 0 && deliveredLately === 0)
		return problem(
			`${name} took nothing in a day: ${counted(failedLately, 'notification')} failed for good`,
			line('webhooks', 'test', String(id)),
		);
	// A single refused body is no fault of the target, unless refusals go on.
	if (
		oldestRetried !== null &&
		(!oldestRetried.tookOthersSince || now - oldestRetried.since > microsPerDay)
	) {
		const { since, next, said } = oldestRetried;
		const again = next === null ? '' : `; tried again ${untilText(next, { now, zone })}`;
		return warning(
			`${name} is tried in vain since ${momentText(since, zone)}: ${said}${again}`,
			line('webhooks', 'deliveries', String(id)),
		);
	}
	if (failedLately > 0)
		return warning(
			`${name} failed ${counted(failedLately, 'notification')} for good in a day`,
			line('webhooks', 'deliveries', String(id), '--state', 'failed'),
		);
	return null;
}
