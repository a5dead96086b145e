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
A mail may be refused at once, in the talk with the mail server, or come back
later as a mail of its own: a bounce.

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

One table judges replies and mails that came back. Words about rate, volume,
reputation, policy or size make an address code soft, and so does a report
that is known by its Message-ID alone, where bounces come back to signed
return paths. An address that only the returned message names is noted and
changes nothing. mailctl engine bounces explain FILE says what a
mail means, and by which rule.

For bounces to find their message, each gets a signed return path of its own
(VERP), bounces+TOKEN@example.com. Where that domain has other mail too, give
bounces one of their own.

  mailctl engine init --bounce-address bounces@example.com

Then they are taken in by one of three ways:

1. By SMTP, where the MX of that domain, or your mail server, hands them on:

     mailctl serve --bounce-smtp 0.0.0.0:25

   It takes signed return paths only: behind ten refused recipients it ends
   a connection with 421, and logs refusals of one network once a minute.

   With Postfix in front --bounce-smtp 127.0.0.1:2526 is enough. main.cf, and
   /etc/postfix/transport (then postmap):

     relay_domains = example.com
     transport_maps = hash:/etc/postfix/transport

     example.com  smtp:[127.0.0.1]:2526

2. By a pipe. With Postfix main.cf as above, "example.com  bounces:" as the
transport, and (main.cf, master.cf):

     recipient_delimiter = +
     bounces_destination_recipient_limit = 1

     bounces unix - n n - - pipe flags=DROX user=mailctl
       argv=/usr/bin/mailctl --db /var/lib/mailctl/mailctl.db
         engine bounces ingest -

   Exit 75 is for trouble with the database: the mail server then brings the
   mail again.

3. From files, a Maildir, an mbox or a folder; what was read of a Maildir goes
from new to cur:

     mailctl engine bounces ingest ~/Maildir

A mail is counted once, by whichever way it comes. mailctl messages get ID
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

mailctl serve and mailctl worker send them. What became of each, for 30 days,
and once more:

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
  bounced    the address is no good (5.1.1 and its like): it is suppressed, and
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
stdout is data and nothing else; progress, hints, prompts, warnings and errors go to stderr. With -o json or ndjson
stderr is JSON as well, an object a line: {"error": {…}}, {"warning": "…"}, {"note": "…"}, {"hint": "…"},
{"progress": "…"}, and {"trace": "…"} with --debug. What to do about an error or a warning is the "hint" of its own
object. -q leaves errors and warnings alone.

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

What could move the cursor, hide or reorder text is spelled out in table, wide, tsv, markdown and name (\\x1b, \\u202e;
tab and line breaks as \\t \\r \\n). csv, json and ndjson are exact.
`,
	sending: `
mailctl send --from news@example.com --to ann@example.com --subject Hello --text 'Hi #name#'
mailctl send --from news@example.com --list 12 --template Monthly
mailctl send --from news@example.com --csv people.csv --subject 'News for #city#' --text 'Hi #name#'
mailctl send --batch requests.ndjson

Variables are written #name#, or #name|friend# with a default; --context name=value sets them, subscribers bring their
own. --preview text|html, --eml FILE and --dry-run show the finished message without sending it, as the subscriber with
that address gets it. No pixel is in it, and links are not tracked. On a server https://deployment.invalid/… stands for
the links that the server signs, such as #unsubscribe_url#. Other services make their messages by themselves: there
--dry-run shows the request, and --preview and --eml are refused, as is a default.

--attach FILE sends a file with it, 20 MiB in all; <img src="cid:logo.png"> in the HTML shows the one of that name.

To many: the rows are staged and checked first, then released all at once. On a terminal the count and a sample are
shown and asked about; a script gives --yes --expect-count N, and nothing is released if the count is another.
Whatever is wrong with a row is listed with its line, and nothing is released; --skip-invalid leaves such rows out.
A variable without a value is wrong, too, unless --no-strict-vars is given. --list is bulk mail: it carries unsubscribe
links and leaves out suppressed addresses; --transactional sends it without. --csv is bulk mail with --bulk.

--csv takes a message a row, every column being a variable (an empty cell is an empty value), one of them the address.
--batch takes send requests, a line of JSON each, with content, context and copies of their own. No recipient gets
the same message twice in a campaign. --results FILE tells of every row: its line, its message, what became of it.

A campaign has a name (--campaign, else one made of its subject and the day, which is printed) and a UUID; each is
taken wherever one is. After a crash mailctl campaigns resume goes on; it reads only what was not staged yet, from the
same file, or with --source - from the same pipe. The same mail to the same list or rows, from a file or a pipe and
whatever its tag or name, is asked about on a terminal and refused in a script (exit 2) while it is unfinished, and
for 24 hours after its release: resume it, or give --again. mailctl campaigns get shows where a campaign stands,
campaigns cancel ends it.

On the embedded engine the command delivers the messages itself and waits; --no-wait leaves them to mailctl worker.
On a mailctl server it waits until the server has sent them; other services do not say what becomes of a message.
A send without an answer that can be read, or with a 408 or most of 5xx, is exit 13: it may have happened. Exit 14 says
that the messages are accepted and queued and not sent yet: do not repeat the send. Both are never "retryable" in JSON
errors. A message that the mail server puts off is deferred: the exit code is 0, and mailctl worker tries it again.
Exit 9 where no recipient gets the mail: all are suppressed or canceled.
A crash in between repeats at most what was being sent, with the same Message-ID. An answer lost after the message
was handed over leaves it uncertain: only an explicit retry sends it again.

Mail of a domain that has a key is signed: mailctl engine dkim add --domain example.com --selector s1.
Limits are settings of the database: engine settings set send_limit 100/m (everything), sender_domain_limits
example.com=100/h, recipient_domain_limits 'gmail.com=100/h, *=10/s'. They hold for all processes together, in any
time of that length; of several for one domain ('gmail.com=100/h, gmail.com=3/s') all hold; copies (cc, bcc) do not
count. What a limit holds back stays queued, costs no attempt and holds up no other domain; engine queue stats names
the limits that hold messages back.
`,
	importing: `
mailctl subscribers import people.csv --list 12

CSV, TSV and NDJSON (an object a line), from a file, standard input (-) or a pipe. The encoding, the delimiter and the
line ends are found out or set by options. A column of addresses is required ("email", "E-Mail-Adresse" and the like
are found); "name", "is_active" and the fields (by variable or by name) are taken; --map 'Contact=email' names others.
--dry-run reads the whole file and says what would be created, updated, left unchanged, rejected, without writing
anything.

  rows read = created + updated + unchanged + duplicate + rejected

always, and it is printed. A rejected row does not stop the others: it goes to the rejects file with its line, a code
and the reason. So does a row that repeats an address of the file: the first one counts. Mend the rejected rows there
and import that file as it is, with the same --map; its duplicates are left out, and so are its columns behind _error,
which were left out before. Rows that had too few or too many cells are taken when their _code is emptied, too. A
rejects file is never overwritten, but for one that lists duplicates alone: where people.csv.rejects.csv is there, and
for the rejects of that file, the next one is people.csv.rejects-2.csv.
Without --reactivate an import leaves inactive subscribers inactive, and an empty cell keeps what is there.
An import that was stopped, even by a crash, goes on with the same command and --resume. Its totals and --max-errors
count all runs. Where nothing is to be gone on with, --resume begins at the first row.
`,
};
