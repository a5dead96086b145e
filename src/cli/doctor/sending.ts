import { isTimeZone } from '../../api/datetime.js';
import { isLoopback, isLoopbackUrl } from '../../api/schema/url.js';
import type { Contents } from '../connect/inspect.js';
import { counted } from '../render/units.js';
import { acceptance, remedyFor, smtpRefusal } from '../verbs/refusals.js';
import { judgeValidity } from './certificate.js';
import { type Checks, firstError, ok, once, problem, Skip, type Surroundings, warning } from './checks.js';

/** The keys of the environment: by their ids, the first wraps; `problem`: why they are unusable. */
interface GivenKeys {
	given: readonly { id: string }[];
	problem: string | null;
}

/** Many mail servers keep strangers waiting before they greet them, and hang up on those who do not wait. */
const mailServerMs = 15_000;

export function sendingChecks(contents: () => Contents, keys: GivenKeys, around: Surroundings): Checks {
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
				return problem(says, 'add that key to the file in MAILCTL_KEY_FILE');
			}
			const [current] = keys.given;
			const others = counts.filter(({ key }) => key !== current?.id);
			const sum = others.reduce((all, { secrets }) => all + secrets, 0);
			const many = counted(sum, 'secret');
			if (sum === 0) return ok(current === undefined ? 'no secrets' : `encrypted with key ${current.id}`);
			if (current === undefined) return ok(`${many} not encrypted: MAILCTL_KEY_FILE is not set`);
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
			// A mail server of this machine may be a trial, or a relay to the internet.
			const why = isLoopbackUrl(smtpUrl)
				? 'so links in mails lead to this machine'
				: 'so mails have no links for opens, clicks and unsubscribing';
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
			const says = 'no bounce address is set: bounces that arrive later are not recorded';
			return warning(says, set('bounce_address', 'ADDRESS'));
		},
		'settings.time-zone': async () => {
			const { timeZone } = await contents().settings();
			if (isTimeZone(timeZone)) return ok(`reports count days of ${timeZone}`);
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
					renew: 'ask the operator of the mail server to renew it',
				});
			if (!isFine) throw new Skip('the mail server showed no certificate');
			return ok(`${host}:${port} offers no TLS, and none is required`);
		},
	};
}
