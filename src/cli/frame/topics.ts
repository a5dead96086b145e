import { exitMeanings } from './exit.js';
import { globalOptions } from './globals.js';
import type { Topic } from './help.js';
import { globalHelp } from './help.js';

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
		'serve and worker end with 0 when they are told to stop. With -o json or ndjson an error is one JSON line on',
		'stderr: {"error": {"code", "exit_code", "message", "http", "details", "hint", "retryable"}}. Where "retryable" is',
		'true the same command may be run again as it is: after "in_use" (2: another process works on the same job), and',
		'never after a send that ended with 12, 13 or 14.',
		'',
	].join('\n');
}

function environment(): string {
	const rows = globalOptions
		.filter(({ environment: names, hidden }) => names !== undefined && hidden !== true)
		.map(({ flags, environment: names = '' }) => `  ${names.padEnd(46)}  ${flags}`);
	return [
		'A flag wins over the environment, the environment over the profile, the profile over the default.',
		'mailctl config explain shows each value with where it comes from.',
		'',
		...rows,
		`  ${'MAILCTL_KEY_FILE, MAILCTL_KEY'.padEnd(46)}  keys of the database’s secrets: mailctl engine secrets --help`,
		`  ${'MAILCTL_LIST'.padEnd(46)}  -l, --list <list>`,
		`  ${'SOURCE_DATE_EPOCH'.padEnd(46)}  a fixed clock, for reproducible output`,
		`  ${'XDG_CONFIG_HOME'.padEnd(46)}  the folder of mailctl/config.json (~/.config)`,
		`  ${'XDG_DATA_HOME'.padEnd(46)}  the folder of the default database (~/.local/share)`,
		'',
		'A target is a database (--db), a deployment (--base-url) or a profile. The one on the highest level wins as a',
		'whole; two on one level are refused. An empty variable counts as unset.',
		'',
		'mailctl login keeps a token for one origin, apart from the configuration. It is never sent to another one.',
		'',
	].join('\n');
}

const bounces = `
The mail server may refuse a message at once, or accept it and return it later
in another mail: a bounce.

  hard       an address code, 5.1.1 and its like; at once also a plain 550 that
             says "no such user": the message is bounced, its address is
             suppressed (HARDBOUNCED) and gets no mail at all, and its
             subscribers are inactive in all lists
  sender     a refusal of the sender: relaying, block lists, authentication.
             The message is deferred, nothing is counted, and five in a row
             pause the queue
  soft       any other refusal: the message is failed, the address stays. Five
             messages in a row over a week or more suppress it for bulk mail
             (SOFTBOUNCED)
  complaint  a report of abuse (ARF): the address is suppressed (COMPLAINED)
             and gets no mail at all

One table judges replies and bounces. An address code counts as soft if its
text speaks of rate, volume, reputation, policy or size. So does a report that
only its Message-ID identifies, while bounces have signed return paths. An
address that only the returned message names changes nothing. mailctl engine
bounces explain FILE says what a mail means, and by which rule.

Each message gets a signed return path (VERP), bounces+TOKEN@example.com, which
identifies its bounce. If that domain has other mail too, use a separate domain
for bounces.

  mailctl engine init --bounce-address bounces@example.com

Bounces then reach mailctl in one of three ways:

1. SMTP: the MX of that domain, or your mail server, forwards them:

     mailctl serve --bounce-smtp 0.0.0.0:25

   It takes signed return paths only: behind ten refused recipients it ends
   a connection with 421, and logs refusals of one network once a minute.

   With Postfix in front --bounce-smtp 127.0.0.1:2526 is enough. main.cf, and
   /etc/postfix/transport (then postmap):

     relay_domains = example.com
     transport_maps = hash:/etc/postfix/transport

     example.com  smtp:[127.0.0.1]:2526

2. A pipe: with Postfix main.cf as above, "example.com  bounces:" as the
transport, and (main.cf, master.cf):

     recipient_delimiter = +
     bounces_destination_recipient_limit = 1

     bounces unix - n n - - pipe flags=DROX user=mailctl
       argv=/usr/bin/mailctl --db /var/lib/mailctl/mailctl.db
         engine bounces ingest -

   Exit 75 is for trouble with the database: the mail server then brings the
   mail again.

3. Files: a Maildir, an mbox or a folder. Mails read from a Maildir move from
new to cur:

     mailctl engine bounces ingest ~/Maildir

A mail counts once, however it arrives. mailctl messages get ID
shows what was reported of a message, mailctl suppressions list who gets no
mail; mailctl suppressions remove ADDRESS lifts it.
`;

const notifications = `
A webhook is a URL that is called when something happens to a message:

  mailctl webhooks create --url https://hooks.example.com/in --type HARDBOUNCED

The types are OPENED, REDIRECTED (a link was followed), UNSUBSCRIBED,
HARDBOUNCED and SOFTBOUNCED; one webhook is for one of them. A call is a POST
of JSON:

  {"id", "type", "date", "test",
   "message": {"id", "to", "from", "subject", "tag", "campaign_unique_id"},
   "data": {"url", "ip", "user_agent", "machine", "smtp_code", "diagnostic"}}

Signature: headers webhook-id, webhook-timestamp and webhook-signature, as
Standard Webhooks has them. One secret (whsec_…) signs for the whole database:
mailctl webhooks secret -o name prints it, --rotate makes a new one; the old
one signs too for 24 hours more, unless another new one is made meanwhile.
Basic auth is sent as well where the webhook has it.

Schedule: 2xx is success. Anything else, a redirect too, is tried again: at
once, after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 hours, each within 15
s, always with the same webhook-id, by which a receiver knows a repetition. 410
stops the webhook until it is changed or replayed.

mailctl serve and mailctl worker send them. Show the results of 30 days, and
send failed ones again:

  mailctl webhooks deliveries 3 --state failed
  mailctl webhooks replay 3 --failed

To try a target: mailctl webhooks test 3. Addresses of this machine and of
private networks are refused unless mailctl engine settings set
allow_private_webhooks true.

In CI, listen makes a temporary webhook, checks the signature, prints the first
notification and ends; 12 when none came:

  mailctl webhooks listen --register --type HARDBOUNCED --once --wait 2m -o json
`;

const states = `
The states of a message, as mailctl messages list shows them. Final are
bounced, failed, uncertain and canceled, and sent, as long as no bounce comes
back for it.

  staged     of a campaign that is not released: mailctl campaigns resume NAME
             goes on, mailctl campaigns cancel NAME drops it
  queued     waits to be sent, by mailctl worker or mailctl serve; mailctl
             engine queue stats says what holds it up
  leased     in a worker's hands at the moment; comes back by itself when that
             worker dies
  deferred   the mail server answered 4xx, refused the sender, or could not be
             reached. A worker retries after 5 minutes, doubling to 4 hours, for
             4 days; mailctl messages retry ID makes it due now
  sent       the next mail server has taken it; that is not the inbox of
             the recipient yet
  bounced    the address does not exist (such as 5.1.1): it is suppressed, and
             its subscribers are inactive
  failed     refused for another reason, deferred for 4 days, or not to be
             composed: too large with its values, or a worker ended three times
             on it; the address stays: fix the cause and send it again
  uncertain  handed over, but the answer was lost: it may have arrived. It is
             sent again only when you say so, and may then arrive twice:
             mailctl messages retry ID
  canceled   not sent: by messages cancel or campaigns cancel, or because
             its address was suppressed or its subscriber inactive or deleted by
             then

mailctl messages get ID shows every attempt, what a bounce reported, what holds
it back, and as LAST REPLY why it was not sent. mailctl messages list --status
deferred lists one state. Staged, queued and deferred ones can be canceled.
`;

const texts: Readonly<Record<Exclude<Topic, 'options' | 'exit-codes' | 'environment'>, string>> = {
	states,
	bounces,
	notifications,
	output: `
stdout is data only; progress, hints, prompts, warnings and errors go to stderr. With -o json or ndjson
stderr is JSON as well, an object a line: {"error": {…}}, {"warning": "…"}, {"note": "…"}, {"hint": "…"},
{"progress": "…"}, and {"trace": "…"} with --debug. The "hint" of an error says what to do. -q
prints errors and warnings only.

  table     the default on a terminal: 50 rows, shortened to its width; cards where it is too narrow
  wide      the same with all columns
  tsv       the default in a pipe: all rows, nothing shortened, no header
  csv       all columns with a header of keys, RFC 4180, exact
  json      one document, all pages, exactly the objects of the service
  ndjson    one object a line, streamed
  markdown  a table for a page or a ticket
  name      one name a line, for xargs

--fields a,b chooses the columns and their order (of json: the keys); --no-header, --no-truncate and --all do what
they say. -q prints the id alone after a create. --exit-empty ends with 8 when a list is empty.

Characters that could move the cursor, hide or reorder text are escaped in table, wide, tsv, markdown and name (\\x1b, \\u202e;
tab and line breaks as \\t \\r \\n). csv, json and ndjson are exact.
`,
	sending: `
mailctl send --from news@example.com --to ann@example.com --subject Hello --text 'Hi #name#'
mailctl send --from news@example.com --list 12 --template Monthly
mailctl send --from news@example.com --csv people.csv --subject 'News for #city#' --text 'Hi #name#'
mailctl send --batch requests.ndjson

Variables. Write #name#, or #name|friend# with a default for a missing or blank value. Values come from --context, the
columns of a table, the subscriber, or mailctl (email, name, unsubscribe_url, view_url, email_reason). A name consists
of letters A to Z, digits and _: the column First Name is #first_name#, and a column such as Имя needs --map Имя=NAME.
A campaign is refused if a variable has no value, unless --no-strict-vars is given.

Preview. --preview text|html, --eml FILE and --dry-run show the finished message without sending it. It has no pixel
and no tracked links. On a server https://deployment.invalid/… replaces links that the server signs. Other services
make their messages themselves: --dry-run shows the request, and --preview and --eml are refused.

Attachments. --attach FILE attaches files, 20 MiB in all. <img src="cid:logo.png"> in the HTML shows that image.

Campaigns. --list, --csv and --batch stage and check all recipients, then release them at once. A terminal shows the
count and asks; a script gives --yes --expect-count N, and another count releases nothing. Findings are listed by line
and release nothing; --skip-invalid leaves those rows out. --list is bulk mail: it has unsubscribe links and skips
suppressed addresses (--transactional sends it without). --csv is bulk mail with --bulk. A line of --batch is a send
request in JSON. Nobody gets the same message twice in a campaign. --results FILE writes the outcome of each row.

A campaign has a name (--campaign, or subject and day) and a UUID. After a crash, mailctl campaigns resume continues; it
reads only rows that were not staged, from the same file, or with --source - from the same pipe. The same mail to the
same rows is asked about, or refused in a script (exit 2), while it is unfinished and for 24 hours after its release:
resume it, or give --again.

Delivery. On a local database the command sends and waits; --no-wait leaves the messages to mailctl worker. On a mailctl
server it waits for the server. Exit 13: no clear answer came, so the send may have happened. Exit 14: all is accepted
and queued, do not repeat it. A message that the mail server defers is exit 0, and a worker retries it. Exit 9: nobody
gets the mail, because all are suppressed or canceled. A crash repeats at most the messages being sent, with the same
Message-ID. A message handed over without an answer is uncertain: only mailctl messages retry sends it again.

Settings. mailctl engine dkim add --domain example.com signs the mail of a domain. Limits apply to all processes
together: mailctl engine settings set send_limit 100/m, sender_domain_limits example.com=100/h, recipient_domain_limits
'gmail.com=100/h, *=10/s'. Messages above a limit stay queued; mailctl engine queue stats names the limits.
`,
	importing: `
mailctl subscribers import people.csv --list 12

It reads CSV, TSV and NDJSON from a file, standard input (-) or a pipe. It finds the encoding, the delimiter and the
line ends, or options set them. A column of addresses is required ("email", "E-Mail-Adresse" and the like). The columns
"name" and "is_active" and all fields are known; --map 'Contact=email' names others. --dry-run reads the whole file,
shows what the import would do, and ends with 0 even if rows would be rejected.

A column that says who may get mail (Status, Opted out, UNSUB_TIME …) must be mapped: --map Status=state reads it, and
--state-words 'blocked=unsubscribed,ok=active' names words that mailctl does not know. The states are active, unsubscribed,
bounced, complained and unconfirmed. A disable_reason makes a subscriber inactive; UNSUBSCRIBED, HARDBOUNCED and
COMPLAINED also suppress the address, with every --on-conflict.

  rows read = created + updated + unchanged + duplicate + rejected

A rejected row goes to the rejects file with its line, a code and the reason. So does a row that repeats an address: the
first one counts. Correct the rejects file and import it as it is, with the same --map: its duplicates and columns after
_error are left out. For rows that had too few or too many cells, empty _code as well. A rejects file is not
overwritten, unless it lists duplicates only: the next one is people.csv.rejects-2.csv.

An import keeps inactive subscribers inactive, unless --reactivate is given. An empty cell keeps the stored value.
An import that stopped, even by a crash, continues with the same command and --resume. Its totals and --max-errors count
all runs.
`,
};
