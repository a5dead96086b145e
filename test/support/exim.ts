/** Debian's Exim, in a root folder of its own. */
import { type MailServer, type MailServerOptions, startMailServer } from './mail-server.js';
import { findProgram, makeRoot, whyNot } from './private-root.js';

const program = findProgram('exim4');

export const noExim: string | null = whyNot(program, 'exim4-daemon-light');

export async function startExim(options: MailServerOptions): Promise<MailServer> {
	if (program === null) throw new Error(noExim ?? '');
	const exim = 64_001;
	const own = { owner: exim, mode: 0o755 };
	const root = await makeRoot({
		program,
		users: { 'Debian-exim': exim },
		folders: { '/mail': own, '/spool': own, '/var/run': own },
		files: { '/etc/exim4/exim4.conf': configuration(options) },
	});
	const argv = ['/usr/sbin/exim4', '-bdf'];
	return startMailServer({ root, argv, port: options.port, logFile: '/spool/mainlog' });
}

const configuration = ({ port, next, bounces }: MailServerOptions): string => `
primary_hostname = mx.example.net
exim_user = Debian-exim
exim_group = Debian-exim
deliver_drop_privilege
spool_directory = /spool
log_file_path = /spool/%slog
pid_file_path = /spool/exim.pid
keep_environment =
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${port}
disable_ipv6
tls_advertise_hosts =
host_lookup =
rfc1413_hosts =
acl_smtp_rcpt = rcpt
acl_smtp_data = data

begin acl
rcpt:
  defer recipients = bob@example.net
        message = 4.7.1 Greylisted, come back later
  require domains = example.net : example.org : example.edu : bounces.example.com : kept.example.com
  deny domains = example.net
       local_parts = gone
       message = 5.1.1 Unknown user
  require verify = recipient
  accept
data:
  accept

begin routers
next:
  driver = manualroute
  domains = example.org
  route_list = * 127.0.0.1
  self = send
  transport = next
late:
  driver = accept
  domains = example.edu
  verify_only
failing:
  driver = redirect
  domains = example.edu
  allow_fail
  data = :fail: nobody of that name
bounces:
  driver = manualroute
  domains = bounces.example.com
  route_list = * 127.0.0.1
  self = send
  transport = bounces
kept:
  driver = accept
  domains = kept.example.com
  transport = kept
people:
  driver = accept
  domains = example.net
  local_parts = ann
  transport = mailbox

begin transports
next:
  driver = smtp
  port = ${next}
  allow_localhost
bounces:
  driver = smtp
  port = ${bounces}
  allow_localhost
mailbox:
  driver = appendfile
  directory = /mail/$local_part_data
  maildir_format
  return_path_add
kept:
  driver = appendfile
  directory = /mail/kept
  maildir_format

begin retry
* * F,1h,15m
`;
