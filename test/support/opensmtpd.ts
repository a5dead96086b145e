/** Debian's OpenSMTPD, in a root folder of its own. */
import { type MailServer, type MailServerOptions, startMailServer } from './mail-server.js';
import { findProgram, makeRoot, nobody, whyNot } from './private-root.js';

const libexec = '/usr/libexec/opensmtpd';
const program = findProgram('smtpd', libexec);

export const noOpenSmtpd: string | null = whyNot(program, 'opensmtpd');

export async function startOpenSmtpd(options: MailServerOptions): Promise<MailServer> {
	if (program === null) throw new Error(noOpenSmtpd ?? '');
	const root = await makeRoot({
		program,
		more: [libexec],
		users: { opensmtpd: 64_002, opensmtpq: 64_003 },
		folders: {
			'/mail': { owner: nobody, mode: 0o755 },
			'/var/run': { owner: 0, mode: 0o755 },
			'/var/spool/smtpd': { owner: 0, mode: 0o711 },
			'/var/lib/opensmtpd/empty': { owner: 0, mode: 0o755 },
		},
		files: { '/etc/mailname': 'mx.example.net\n', '/etc/smtpd.conf': configuration(options) },
	});
	return startMailServer({ root, argv: ['/usr/sbin/smtpd', '-d'], port: options.port });
}

const configuration = ({ port, next, bounces }: MailServerOptions): string => `
table people { "ann" = "${nobody}:${nobody}:/mail" }
table aliases { "ann@example.edu" = "ann" }
table anybody { "@" = "nobody" }
filter "grey" phase rcpt-to match rcpt-to { "bob@example.net" } reject "451 4.7.1 Greylisted, come back later"
listen on 127.0.0.1 port ${port} hostname mx.example.net filter "grey"

action "mailbox" maildir "/mail/%{dest.user}" userbase <people>
action "aliases" maildir "/mail/%{dest.user}" userbase <people> virtual <aliases>
action "next" relay host "smtp+notls://127.0.0.1:${next}"
action "short" relay host "smtp+notls://127.0.0.1:${next}" ttl 2s
action "bounces" relay host "smtp+notls://127.0.0.1:${bounces}"
action "kept" maildir "/mail/kept" virtual <anybody>

match from any for domain "example.net" action "mailbox"
match from any for domain "example.edu" action "aliases"
match from any for domain "example.org" action "next"
match from any for domain "example.info" action "short"
match from any for domain "bounces.example.com" action "bounces"
match from any for domain "kept.example.com" action "kept"
`;
