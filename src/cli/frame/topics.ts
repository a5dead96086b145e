import { exitMeanings } from './exit.js';
import { environmentRows, globalHelp, type Topic } from './help.js';

export function topicText(topic: Topic): string {
	if (topic === 'exit-codes') return exitCodes();
	if (topic === 'environment') return environment();
	if (topic === 'options') return globalHelp();
	return `${texts[topic].trim()}\n`;
}

function exitCodes(): string {
	const lines = Object.entries(exitMeanings).map(([code, meaning]) => `${code.padStart(5)}  ${meaning}`);
	return [
		'Exit codes are stable: a number never changes its meaning.',
		'',
		...lines,
		'',
		'`serve` and `worker` exit with 0 when you stop them. With -o json or ndjson, an error is one line of JSON on',
		'stderr: {"error": {"code", "exit_code", "message", "http", "details", "hint", "retryable"}}. If "retryable" is',
		'true, run the same command again. "retryable" is true for "in_use" (exit code 2: another process is working on',
		'this job). It is never true after a send that ended with 12, 13 or 14.',
		'',
	].join('\n');
}

function environment(): string {
	const rows = environmentRows().map(([names, option]) => `  ${names.padEnd(46)}  ${option}`);
	return [
		'A flag wins over the environment, the environment over the profile, the profile over the default.',
		'mailctl config explain shows each value and its source.',
		'',
		...rows,
		`  ${'MAILCTL_KEY_FILE, MAILCTL_KEY'.padEnd(46)}  keys of the database's secrets: mailctl engine secrets --help`,
		`  ${'MAILCTL_LIST'.padEnd(46)}  -l, --list LIST`,
		`  ${'SOURCE_DATE_EPOCH'.padEnd(46)}  a fixed clock, for reproducible output`,
		`  ${'VISUAL, EDITOR'.padEnd(46)}  the editor in which you write texts (vi)`,
		`  ${'XDG_CONFIG_HOME'.padEnd(46)}  the folder of mailctl/config.json (~/.config)`,
		`  ${'XDG_DATA_HOME'.padEnd(46)}  the folder of the default database (~/.local/share)`,
		`  ${'XDG_STATE_HOME, XDG_CACHE_HOME'.padEnd(46)}  other folders, see mailctl config path (~/.local/state, ~/.cache)`,
		'',
		'The target is a database (--db), a service (--base-url) or a profile. Only the target of the highest',
		'level is used. Two targets on one level are an error. An empty variable counts as unset.',
		'',
		'mailctl login stores a token for one origin in a separate file. The token is sent to no other origin.',
		'',
	].join('\n');
}

const bounces = `
A mail server can refuse a message at once, or send it back later: a bounce.

  hard       an address code (5.1.1 and similar), or a plain 550 that says "no
             such user". The message is bounced. Its address is suppressed
             (HARDBOUNCED) and gets no mail. Its subscribers are inactive in
             all lists
  sender     the server refuses the sender: relaying, block lists,
             authentication. The message is deferred, and nothing counts
             against the address. Five in a row pause the queue
  soft       any other refusal. The message is failed, and the address stays
             active. Five messages in a row over a week or more suppress it for
             bulk mail (SOFTBOUNCED)
  complaint  an abuse report (ARF). The address is suppressed (COMPLAINED) and
             gets no mail

The same rules apply to replies and to returned mails. An address code is soft
if the text is about rate, volume, reputation, policy or size. It is also soft
if only the Message-ID matches, although return paths are signed. An address
that only the returned message names is ignored. To see the rule that applies
to a mail, run mailctl engine bounces explain FILE.

Each message gets a signed return path (VERP), bounces+TOKEN@example.com, so
that its bounce can be matched. Use a domain that gets no other mail:

  mailctl engine init --bounce-address bounces@example.com

There are three ways to ingest bounces.

1. SMTP. The MX of the domain, or your mail server, delivers to:

     mailctl serve --bounce-smtp 0.0.0.0:25

   It accepts signed return paths only. After ten refused recipients it ends a
   connection with 421. It logs refusals of one network once a minute.

   With Postfix in front, --bounce-smtp 127.0.0.1:2526 is enough. Set main.cf,
   and /etc/postfix/transport (then run postmap):

     relay_domains = example.com
     transport_maps = hash:/etc/postfix/transport

     example.com  smtp:[127.0.0.1]:2526

2. A pipe. Set main.cf as above, "example.com  bounces:" as the transport, and
   in main.cf and master.cf:

     recipient_delimiter = +
     bounces_destination_recipient_limit = 1

     bounces unix - n n - - pipe flags=DROX user=mailctl
       argv=/usr/bin/mailctl --db /var/lib/mailctl/mailctl.db
         engine bounces ingest -

   Exit code 75 means that the database failed: the mail server delivers the
   mail again.

3. Files: a Maildir, an mbox or a folder. In a Maildir, mails move from new to
   cur once they are read:

     mailctl engine bounces ingest ~/Maildir

Each bounce counts once. mailctl messages get ID shows the bounce reports of a
message, mailctl suppressions list shows the suppressed addresses, and mailctl
suppressions remove ADDRESS lifts a suppression.
`;

const notifications = `
A webhook is a URL that gets a call when an event happens to a message:

  mailctl webhooks create --url https://hooks.example.com/in --type HARDBOUNCED

The types are OPENED, REDIRECTED (a link was followed), UNSUBSCRIBED,
HARDBOUNCED and SOFTBOUNCED; a webhook has one type. A call is a POST of JSON:

  {"id", "type", "date", "test",
   "message": {"id", "to", "from", "subject", "tag", "campaign_unique_id"},
   "data": {"url", "ip", "user_agent", "machine", "smtp_code", "diagnostic"}}

Signature: the headers webhook-id, webhook-timestamp and webhook-signature
follow Standard Webhooks. One secret (whsec_…) signs the calls of all webhooks.
mailctl webhooks secret -o name prints it, and --rotate creates a new secret.
The old secret also signs for 24 hours, or until the next rotation. A call to a
webhook with a login has basic authentication.

Schedule: 2xx is success. After any other answer, including a redirect, the call
is retried after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 hours. An attempt
lasts up to 15 s. All attempts have the same webhook-id, so a receiver can
recognize repeats. 410 stops the webhook until you change or replay it.

mailctl serve and mailctl worker send the calls. The results are kept for 30
days, and you can replay calls:

  mailctl webhooks deliveries 3 --state failed
  mailctl webhooks replay 3 --failed

To test a webhook, run mailctl webhooks test 3. Addresses of this machine and of
private networks are refused, unless you run mailctl engine settings set
allow_private_webhooks true.

In CI, listen creates a temporary webhook, checks the signature, prints the
first notification and ends. It exits with 12 if no notification arrives:

  mailctl webhooks listen --register --type HARDBOUNCED --once --wait 2m -o json
`;

const states = `
mailctl messages list shows the state of each message. Bounced, failed,
uncertain and canceled are final. Sent is final unless a bounce arrives.

  staged     part of a campaign that is not released: mailctl campaigns resume
             NAME continues it, mailctl campaigns cancel NAME cancels it
  queued     waits for mailctl worker or mailctl serve; mailctl engine queue
             stats shows what delays it
  leased     a worker is sending it; if the worker dies, it returns to the queue
  deferred   the mail server answered 4xx, refused the sender, or was not
             reachable. A worker retries after 5 minutes, doubling to 4 hours,
             for 4 days; mailctl messages retry ID makes it due now
  sent       the next mail server accepted it; it may not be in the inbox yet
  bounced    the address is invalid (5.1.1 and similar). It is suppressed, and
             its subscribers are inactive
  failed     refused for another reason, deferred for 4 days, too large with its
             values, or a worker crashed three times while sending it. The
             address stays active: fix the cause and send the message again
  uncertain  the message was handed over, but the answer was lost. It may have
             arrived. Only mailctl messages retry ID sends it again, and it may
             then arrive twice
  canceled   not sent: canceled by a command, or its address was suppressed, or
             its subscriber was inactive or deleted

mailctl messages get ID shows every attempt, reported bounces and limits that
delay the message. LAST REPLY says why the message was not sent. mailctl
messages list --status deferred lists one state. mailctl messages cancel ID
cancels a staged, queued or deferred message.
`;

const texts: Readonly<Record<Exclude<Topic, 'options' | 'exit-codes' | 'environment'>, string>> = {
	states,
	bounces,
	notifications,
	output: `
stdout has data only. Progress, hints, prompts, warnings and errors go to stderr. With -o json or ndjson stderr
is JSON too, one object a line: {"error": {…}}, {"warning": "…"}, {"note": "…"}, {"hint": "…"}, {"progress": "…"},
and {"trace": "…"} with --debug. The "hint" of an error names the fix. -q prints errors and warnings only.

  table     the default on a terminal: 50 rows that fit the width, or cards on a narrow terminal
  wide      a table with all columns
  tsv       the default in a pipe: all rows, nothing shortened, no header
  csv       all columns with a header of keys, RFC 4180, exact
  json      one document, all pages, exactly the objects of the service
  ndjson    one object a line, streamed
  markdown  a table for a page or a ticket
  name      one name a line, for xargs

--fields a,b selects the columns and their order, or the keys of JSON. -q prints only the id after a create.
--exit-empty exits with 8 if a list is empty.

Characters that could move the cursor, or hide or reorder text, are escaped in table, wide, tsv, markdown and name
(\\x1b, \\u202e; tab and line breaks as \\t \\r \\n). csv, json and ndjson are exact.
`,
	sending: `
mailctl send --from news@example.com --to ann@example.com --subject Hello --text 'Hi #name#'
mailctl send --from news@example.com --list 12 --template Monthly
mailctl send --from news@example.com --csv people.csv --subject 'News for #city#' --text 'Hi #name#'
mailctl send --batch requests.ndjson

Variables. Write #name#, or #name|friend# with a default for a missing or blank value. Values come from --context, the
columns of a table, the subscriber, or mailctl (email, name, unsubscribe_url, view_url, email_reason). A name consists
of letters A to Z, digits and _: First Name is #first_name#, Имя is #imya#, and a column such as 名前 needs --map 名前=NAME.
A campaign is refused if a variable has no value, unless --no-strict-vars is given.

Preview. --preview text|html, --eml FILE and --dry-run show the finished message without sending it. It has no pixel
and no tracked links. https://deployment.invalid/… stands for each link that a server signs. Other services
compose messages themselves: --dry-run shows the request, and --preview and --eml are refused.

Attachments. --attach FILE attaches files, 20 MiB in all. <img src="cid:logo.png"> in the HTML shows that image.

Campaigns. --list, --csv and --batch stage and check all recipients, then release them at once. A terminal shows the
count and asks; a script gives --yes --expect-count N, and another count releases nothing. A bad row stops the campaign,
and the command lists such rows; --skip-invalid leaves them out. --list is bulk mail: it has unsubscribe links
(--transactional leaves them out) and skips suppressed addresses. --csv is bulk mail with --bulk. A line of --batch is a
send request in JSON. Nobody gets the same message twice in a campaign. --results FILE writes the outcome of each row.

A campaign has a name (--campaign, or subject and day) and a UUID. After a crash, mailctl campaigns resume continues; it
reads only rows that were not staged, from the same file, or with --source - from the same pipe. If the same mail to
the same rows is unfinished, or was released within 24 hours, a terminal asks and a script exits with 2: resume that
campaign, or give --again.

Delivery. On a local database the command sends and waits; --no-wait leaves the messages to mailctl worker. On a mailctl
server it waits for the server. Exit 13: the answer was lost, so the send may have happened. Exit 14: all messages are
accepted and queued: do not repeat the command. Deferred messages count as success; a worker retries. Exit 9: some
messages failed, bounced or were left out, or nobody gets mail. A crash repeats at most the messages in transit, with
the same Message-ID. A message handed over without an answer is uncertain: only mailctl messages retry sends it again.

Settings. mailctl engine dkim add --domain example.com signs the mail of a domain. Limits apply to all processes
together: mailctl engine settings set send_limit 100/m, sender_domain_limits example.com=100/h, recipient_domain_limits
'gmail.com=100/h, *=10/s'. Messages above a limit stay queued; mailctl engine queue stats names the limits.
`,
	importing: `
mailctl subscribers import people.csv --list 12

It reads CSV, TSV and NDJSON from a file, standard input (-) or a pipe. It detects encoding, delimiter and line ends;
options set them. A column of addresses is required ("email", "E-Mail-Adresse" and similar). The import knows "name",
"is_active" and all fields; --map 'Contact=email' maps other columns. --dry-run reads the whole file, shows what the
import would do, and exits with 0 even if rows would be rejected.

Map a column that says who may get mail (Status, Opted out, UNSUB_TIME …): --map Status=state reads it, and
--state-words 'blocked=unsubscribed,ok=active' explains other words. The states are active, unsubscribed, bounced,
complained and unconfirmed. A disable_reason makes a subscriber inactive; UNSUBSCRIBED, HARDBOUNCED and COMPLAINED also
suppress the address, with every --on-conflict.

  rows read = created + updated + unchanged + duplicate + rejected

The rejects file gets each rejected row with its line, a code and the reason, and each row that repeats an address (the
first row counts). Correct it and import it with the same --map: the import leaves out its duplicates and the columns
after _error. For rows that had too few or too many cells, also clear _code. A rejects file is never overwritten: the
next one is people.csv.rejects-2.csv.

An import keeps inactive subscribers inactive, unless --reactivate is given. An empty cell keeps the stored value.
After a crash or Ctrl-C, continue with the same command and --resume. The totals and --max-errors count all runs.
`,
};
