/** What `send` may be told: the document's parameters, ours, and how to go about it. */
import type { OptionValues } from '../../command.js';

export const sendOptions = {
	from: {
		kind: 'text',
		summary: 'a verified sender: news@example.com or "News <news@example.com>"',
	},
	to: { kind: 'list', placeholder: 'address', summary: 'a recipient' },
	list: {
		kind: 'text',
		placeholder: 'list',
		summary: 'every active subscriber of this list (id or exact name)',
	},
	csv: {
		kind: 'text',
		placeholder: 'FILE',
		summary: 'one message a row of this table, whose columns are its variables; - is stdin',
	},
	map: {
		kind: 'list',
		placeholder: 'COLUMN=NAME',
		summary: 'with --csv, the variable of a column, or email; COLUMN=- leaves it out',
	},
	batch: {
		kind: 'text',
		placeholder: 'FILE',
		summary: 'send requests as they are, one a line of JSON; - is stdin',
	},
	cc: { kind: 'list', placeholder: 'address', summary: 'a copy' },
	bcc: { kind: 'list', placeholder: 'address', summary: 'a hidden copy' },
	ccEach: { kind: 'flag', summary: 'cc and bcc ride on the message to every --to' },
	replyTo: { kind: 'list', placeholder: 'address', summary: 'where answers go' },
	subject: { kind: 'text', summary: 'the subject' },
	text: { kind: 'text', summary: 'the text body' },
	textFile: { kind: 'file', summary: 'the text body from a file' },
	html: { kind: 'text', summary: 'the HTML body' },
	htmlFile: { kind: 'file', summary: 'the HTML body from a file' },
	template: { kind: 'text', placeholder: 'UUID|NAME', summary: 'a template instead of subject and bodies' },
	context: { kind: 'pairs', summary: 'a variable and its value' },
	contextFile: { kind: 'file', summary: 'variables from a JSON object' },
	header: { kind: 'list', placeholder: "'NAME: VALUE'", summary: 'a further header' },
	tag: { kind: 'text', summary: 'a word to find the messages by' },
	bulk: { kind: 'flag', summary: 'bulk mail: unsubscribe links, every suppression respected' },
	campaign: { kind: 'text', placeholder: 'UUID', summary: 'the mailing these messages belong to' },
	disableInline: { kind: 'flag', summary: 'leave the CSS where it is' },
	strictVars: { kind: 'tri', summary: 'refuse variables without a value (on for bulk, --csv and --batch)' },
	job: {
		kind: 'text',
		placeholder: 'NAME',
		summary: 'the name of a job: the same name goes on with it',
	},
	expectCount: {
		kind: 'integer',
		min: 0,
		summary: 'how many recipients there must be, before suppression and without what is left out',
	},
	maxRecipients: { kind: 'integer', min: 1, summary: 'refuse more recipients than this' },
	skipInvalid: { kind: 'flag', summary: 'leave out recipients with findings (then exit 9)' },
	sample: { kind: 'integer', min: 0, default: 3, summary: 'recipients to show before asking' },
	testTo: {
		kind: 'text',
		placeholder: 'address',
		summary: 'send what the first would get to this address only',
	},
	rate: {
		kind: 'text',
		placeholder: 'N/s',
		summary:
			'at most so many messages a second (10/s), minute (600/m) or hour (100/h), together with others on this database that have a rate; not with a mailctl server, which sends by itself',
	},
	connections: { kind: 'integer', min: 1, max: 100, summary: 'connections to the mail server (5)' },
	wait: { kind: 'tri', summary: 'wait until each message is sent, failed or deferred (on)' },
	waitTimeout: {
		kind: 'duration',
		default: 600_000,
		summary: 'give up waiting after so long without progress (10m)',
	},
	retryUnknown: {
		kind: 'flag',
		summary: 'send again what a deployment of others may have sent: somebody may get it twice',
	},
	results: {
		kind: 'text',
		placeholder: 'FILE',
		summary: 'write what became of each message as CSV: a new file, or the one of the same job',
	},
	preview: { kind: 'choice', choices: ['text', 'html'], summary: 'print the finished part and send nothing' },
	eml: {
		kind: 'text',
		placeholder: 'FILE',
		summary: 'write the finished message and send nothing; - is stdout',
	},
	idempotencyKey: {
		kind: 'text',
		placeholder: 'KEY',
		summary: 'the same key and request within 24 h is sent once',
	},
} as const;

export type SendOptions = OptionValues<typeof sendOptions>;
