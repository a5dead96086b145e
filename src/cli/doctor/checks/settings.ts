/** The settings of a database: those missing before mail can go out, and those that should not be used. */
import { isTimeZone } from '../../../api/datetime.js';
import { isLoopback } from '../../../api/schema/url.js';
import type { ContentsCheck } from '../contents-checks.js';
import type { InspectedSettings, InspectedSmtp } from '../inspection.js';
import { type Check, type CheckEnvironment, ok, problem, type Verdict, warning } from '../model.js';

type Line = CheckEnvironment['line'];

/** `settings.…`: a verdict on each setting, in the order one sets up a database. */
export function settingsChecks(ofContents: ContentsCheck, { line }: Pick<CheckEnvironment, 'line'>): Check[] {
	const judged = (judge: (settings: InspectedSettings, line: Line) => Verdict) =>
		ofContents(async ({ settings }) => judge(await settings(), line));
	return [
		{ name: 'settings.senders', run: ofContents(async ({ senders }) => judgeSenders(await senders(), line)) },
		{ name: 'settings.smtp', run: judged(({ smtp }) => judgeSmtp(smtp, line)) },
		{ name: 'settings.public-url', run: judged(judgePublicUrl) },
		{ name: 'settings.bounces', run: judged(judgeBounces) },
		{ name: 'settings.time-zone', run: judged(judgeTimeZone) },
	];
}

function judgeSenders(senders: readonly string[], line: Line): Verdict {
	const [first] = senders;
	if (first === undefined)
		return problem('there is no sender: nothing can be sent', line('senders', 'add', 'ADDRESS'));
	return ok(senders.length === 1 ? `${first} may send` : `${senders.length} addresses may send`);
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
	const clear = `${server} is spoken to in the clear`;
	if (security === 'never' && !isLoopback(host))
		return warning(
			`${clear}${user === null ? '' : ', password and all'}`,
			line('engine', 'init', '--smtp', urlOf(smtp)),
		);
	return ok(`mail goes to ${server}${user === null ? '' : `, as ${user}`}`);
}

/** The URL of the same server with TLS, so that no machine on the way reads the mail. */
function urlOf({ host, port, user }: InspectedSmtp): string {
	const name = host.includes(':') ? `[${host}]` : host;
	return `smtp://${user === null ? '' : `${encodeURIComponent(user)}@`}${name}:${port}?tls=required`;
}

function judgePublicUrl({ publicUrl, smtp }: InspectedSettings, line: Line): Verdict {
	const fix = line('engine', 'settings', 'set', 'public_url', 'https://HOST');
	// A mail server of this machine may be a trial, or a relay to the internet.
	const isTrial = smtp !== null && isLoopback(smtp.host);
	if (publicUrl === null)
		return warning(
			isTrial
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

function judgeBounces({ bounceAddress }: InspectedSettings, line: Line): Verdict {
	if (bounceAddress !== null) return ok(`bounces come back to ${bounceAddress}`);
	return warning(
		'no bounce address is set: what bounces later goes to the sender of the mail, and is not recorded',
		line('engine', 'settings', 'set', 'bounce_address', 'ADDRESS'),
	);
}

function judgeTimeZone({ timeZone }: InspectedSettings, line: Line): Verdict {
	if (isTimeZone(timeZone)) return ok(`the report counts days of ${timeZone}`);
	return problem(
		`this Node.js knows no time zone "${timeZone}"`,
		line('engine', 'settings', 'set', 'time_zone', 'UTC'),
	);
}
