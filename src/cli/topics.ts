/** The texts of `mailctl help <topic>`. */
import { exitMeanings } from './exit.js';
import { globalOptions } from './globals.js';
import type { Topic } from './topic-names.js';
import { bounces } from './topics/bounces.js';
import { notifications } from './topics/notifications.js';
import { states } from './topics/states.js';

/** The page, ending in a line break. */
export function topicText(topic: Topic): string {
	if (topic === 'exit-codes') return exitCodes();
	if (topic === 'environment') return environment();
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
		'stderr: {"error": {"code", "exit_code", "message", "http", "details", "hint", "retryable"}}.',
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

const texts: Readonly<Record<Exclude<Topic, 'exit-codes' | 'environment'>, string>> = {
	states,
	bounces,
	notifications,
	output: `
stdout is data and nothing else; progress, hints, prompts, warnings and errors go to stderr.

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

Variables are written #name#; --context name=value sets them, subscribers bring their own. --preview text|html,
--eml FILE and --dry-run show the finished message without sending it.

To many: the rows are staged and checked first, then released all at once. On a terminal the count and a sample are
shown and asked about; a script gives --yes --expect-count N, and nothing is released if the count is another.
Whatever is wrong with a row is listed with its line, and nothing is released; --skip-invalid leaves such rows out.

--csv takes a message a row, every column being a variable (an empty cell is an empty value), one of them the address.
--batch takes send requests, a line of JSON each, with content, context and copies of their own. Nobody gets the same
message twice in a job. --results FILE tells of every row: its line, its message, what became of it.

A job has a name (--job, else one is made up and printed). After a crash mailctl send resume JOB goes on; it reads
only what was not staged yet, from the same file. mailctl send status tells where a job stands, send cancel ends it.

On the embedded engine the command delivers the messages itself and waits; --no-wait leaves them to mailctl worker.
On a mailctl server it waits until the server has sent them; other services do not say what becomes of a message.
A send that nobody answered is exit 13: it may have happened.
A crash in between repeats at most what was being sent, with the same Message-ID. An answer lost after the message
was handed over leaves it uncertain: it is sent again only when somebody says so.

Mail of a domain that has a key is signed: mailctl engine dkim add --domain example.com --selector s1.
Limits are settings of the database: engine settings set send_limit 100/1m (everything), sender_domain_limits
example.com=100/1h, recipient_domain_limits 'gmail.com=100/1h, *=10/s'. They hold for all processes together, in any
time of that length; of several for one domain ('gmail.com=100/1h, gmail.com=3/s') all hold; copies (cc, bcc) do not
count. What a limit holds back stays queued, costs no attempt and holds up no other domain; engine queue stats names
the limits that hold messages back.
`,
	importing: `
mailctl subscribers import people.csv --list 12

CSV, TSV and NDJSON (an object a line), from a file or standard input (-). The encoding, the delimiter and the line
ends are found out or set by options. A column "email" is required; "name", "is_active" and the fields (by variable or
by name) are taken; --map 'E-Mail Address=email' names others. --dry-run reads the whole file and says what would be
created, updated, left unchanged, rejected, without writing anything.

  rows read = created + updated + unchanged + duplicate + rejected

always, and it is printed. A rejected row does not stop the others: it goes to the rejects file with its line, a code
and the reason. So does a row that repeats an address of the file: the first one counts. Mend the rejected rows there
and import that file as it is; its duplicates are left out, and so are its columns behind _error, which were left out
before. Rows that had too few or too many cells are taken when their _code is emptied, too. A rejects file is never
overwritten, but for one that lists duplicates alone.
An import never reactivates somebody who is inactive, and an empty cell keeps what is there.
An import that was stopped, even by a crash, goes on with the same command and --resume. Its totals and --max-errors
count all runs. Where nothing is to be gone on with, --resume begins at the first row.
`,
};
