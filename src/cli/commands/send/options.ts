import { flagOf, type OptionValues } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { isMachine } from '../../frame/globals.js';
import { paced } from '../../frame/values.js';
import { answer } from '../../render/columns.js';

function valued<K extends 'text' | 'list'>(kind: K, placeholder: string, summary: string) {
	return { kind, placeholder, summary };
}

const recipientOptions = {
	from: { kind: 'text', summary: 'send from a verified sender: "News <news@example.com>"' },
	to: valued('list', 'ADDRESS', 'send to this address'),
	list: valued('list', 'LIST', 'send to the active subscribers of this list (ID or name)'),
	excludeList: valued('list', 'LIST', 'leave out every address in this list, active or not'),
	where: valued('list', 'CONDITION', "send to subscribers who match: 'meta.city=Oslo', 'email~@example.com'"),
	whereOpened: valued('list', 'NAME|UUID', 'send to subscribers who opened this campaign; bots do not count'),
	whereNotOpened: valued(
		'list',
		'NAME|UUID',
		'send to subscribers who got this campaign and did not open it',
	),
	csv: { kind: 'path', summary: 'send one message per row; columns are variables; - reads stdin' },
	map: valued(
		'list',
		'COLUMN=NAME',
		'map a column to a variable or email; A+B=NAME joins two, COLUMN=- leaves one out',
	),
	encoding: valued('text', 'NAME', 'read the table in this encoding (default: detected)'),
	batch: { kind: 'path', summary: 'send each line of JSON as a send request; - reads stdin' },
	cc: valued('list', 'ADDRESS', 'send a copy to this address'),
	bcc: valued('list', 'ADDRESS', 'send a hidden copy to this address'),
	ccEach: { kind: 'flag', summary: 'with several --to, send every message to --cc and --bcc' },
	replyTo: valued('list', 'ADDRESS', 'ask for replies to this address'),
} as const;

const messageOptions = {
	subject: { kind: 'text', summary: 'set the subject' },
	text: { kind: 'text', summary: 'set the text body' },
	textFile: { kind: 'file', summary: 'read the text body from a file' },
	html: { kind: 'text', summary: 'set the HTML body' },
	htmlFile: { kind: 'file', summary: 'read the HTML body from a file' },
	markdownFile: {
		kind: 'file',
		summary: 'make both bodies from Markdown; the first # heading is the subject',
	},
	template: valued('text', 'UUID|NAME', 'use a template instead of subject and bodies'),
	attach: valued('list', 'FILE', 'attach a file, at most 20 MiB in all; HTML shows an image as cid:NAME'),
	context: { kind: 'pairs', summary: 'set a variable' },
	contextFile: { kind: 'file', summary: 'read variables from a JSON object' },
	strictVars: { kind: 'tri', summary: 'refuse variables without a value (default for bulk and campaigns)' },
	disableInline: { kind: 'flag', summary: 'do not inline CSS' },
	header: valued('list', "'NAME: VALUE'", 'add a header'),
	tag: { kind: 'text', summary: 'tag the messages, to find them later' },
	bulk: { kind: 'flag', summary: 'send bulk mail, with unsubscribe links (default for --list)' },
	transactional: { kind: 'flag', summary: 'send to a --list without unsubscribe links' },
	track: { kind: 'choice', choices: ['on', 'off'], summary: 'count opens and clicks (default: on)' },
} as const;

const campaignOptions = {
	campaign: valued('text', 'NAME|UUID', 'name a new campaign, or continue the one with this name or UUID'),
	again: { kind: 'flag', summary: 'send even if these recipients got this mail in the last 24 hours' },
	at: valued('text', 'TIME', 'start at a time: "2026-12-01 09:00", "tomorrow 9:00"'),
	in: { kind: 'duration', summary: 'start after this delay' },
	window: valued('text', 'HH:MM-HH:MM', 'send only during these hours of each day'),
	idempotencyKey: valued('text', 'KEY', 'send once: a repeat with this key within 24 hours sends nothing'),
} as const;

const previews = ['text', 'html', 'browser'] as const;

const checkOptions = {
	preview: { kind: 'choice', choices: previews, summary: 'show the finished message and send nothing' },
	previewAs: valued('text', 'ADDRESS', 'preview the message to this recipient instead of the first'),
	eml: { kind: 'path', summary: 'write the finished message and send nothing; - is stdout' },
	testTo: valued('text', 'ADDRESS', 'send only the first message, as a test to this address'),
	sample: { kind: 'integer', min: 0, summary: 'show this many recipients before you confirm (default: 3)' },
	expectCount: {
		kind: 'integer',
		min: 0,
		summary: 'require this number of recipients, including suppressed addresses of a file',
	},
	maxRecipients: { kind: 'integer', min: 1, summary: 'refuse more recipients than this' },
	skipInvalid: { kind: 'flag', summary: 'leave out recipients with errors, then exit with 9' },
} as const;

const deliveryOptions = {
	rate: valued('text', 'N/s', 'limit this command and all others that have --rate: 10/s, 600/m or 100/h'),
	connections: { kind: 'integer', min: 1, max: 100, summary: 'use this many connections (default: 5)' },
	wait: { kind: 'tri', summary: 'wait until each message is sent, failed or deferred (default)' },
	waitTimeout: { kind: 'duration', summary: 'stop waiting after this time without progress (default: 10m)' },
	retryUnknown: { kind: 'flag', summary: 'resend messages of unknown outcome; some may arrive twice' },
	results: { kind: 'path', summary: 'write the outcome of each message to a CSV file' },
} as const;

export const sendOptions = {
	...recipientOptions,
	...messageOptions,
	...campaignOptions,
	...checkOptions,
	...deliveryOptions,
};

export const sendOptionGroups = {
	'Sender and recipients': Object.keys(recipientOptions),
	Message: Object.keys(messageOptions),
	'Campaign and time': Object.keys(campaignOptions),
	'Checks before sending': Object.keys(checkOptions),
	'Delivery and results': Object.keys(deliveryOptions),
};

export const campaignAnswer = answer(
	...['name', 'id', 'state', 'recipients', 'staged', 'suppressed', 'rejected', 'left_out', 'messages'],
);

export type SendOptions = OptionValues<typeof sendOptions>;

/** The options that `send` shares with `campaigns resume`. */
export type RunOptions = OptionValues<typeof deliveryOptions> &
	Pick<SendOptions, 'expectCount' | 'maxRecipients' | 'skipInvalid' | 'sample'>;

/** Mail to a list is bulk mail by default (api-decisions 24). */
export function settled(options: SendOptions, { dryRun }: { dryRun: boolean }): SendOptions {
	const { bulk, transactional, list, preview, previewAs, eml, testTo } = options;
	if (bulk && transactional) throw useOne('--bulk', '--transactional');
	const isShown = previewAs !== undefined && eml === undefined && testTo === undefined && !dryRun;
	const looks = preview ?? (isShown ? 'text' : undefined);
	return {
		...options,
		bulk: bulk || (list.length > 0 && !transactional),
		...(looks !== undefined && { preview: looks }),
	};
}

export function wantsPreview({ preview, eml }: Pick<SendOptions, 'preview' | 'eml'>): boolean {
	return preview !== undefined || eml !== undefined;
}

export function isCampaign({ list, csv, batch }: Pick<SendOptions, 'list' | 'csv' | 'batch'>): boolean {
	return list.length > 0 || csv !== undefined || batch !== undefined;
}

type Key = keyof SendOptions;
type Rules = readonly (readonly [keys: readonly Key[], others: readonly Key[]])[];

const bodies = ['text', 'textFile', 'html', 'htmlFile', 'markdownFile'] as const satisfies readonly Key[];

const exclusive: Rules = [
	[
		['to', 'cc', 'bcc', 'idempotencyKey'],
		['list', 'csv', 'batch'],
	],
	[['list'], ['csv', 'batch']],
	[['csv'], ['batch']],
	// Each request of a batch has its own content.
	[
		['from', 'subject', 'template', 'context', 'contextFile', 'header', 'tag', 'replyTo', ...bodies],
		['batch'],
	],
	[['bulk', 'transactional', 'disableInline', 'map', 'encoding'], ['batch']],
	[['text'], ['textFile']],
	[['html'], ['htmlFile', 'markdownFile']],
	[['htmlFile'], ['markdownFile']],
	[['subject', ...bodies], ['template']],
	[['at'], ['in']],
	[['testTo'], ['preview', 'eml']],
];

const dependent: Rules = [
	[['excludeList', 'where', 'whereOpened', 'whereNotOpened'], ['list']],
	[['map', 'encoding'], ['csv']],
	[
		['at', 'in', 'window', 'again', 'expectCount', 'testTo', 'skipInvalid', 'retryUnknown', 'sample'],
		['list', 'csv', 'batch'],
	],
	[['ccEach'], ['cc', 'bcc']],
];

export function assertOptions({ askedFormat }: CommandContext, options: SendOptions): void {
	const given = (keys: readonly Key[]) => keys.find((key) => isGiven(options[key]));
	for (const [keys, others] of exclusive) {
		const [one, other] = [given(keys), given(others)];
		if (one !== undefined && other !== undefined) throw useOne(flagOf(one), flagOf(other));
	}
	for (const [keys, others] of dependent) {
		const one = given(keys);
		if (one === undefined || given(others) !== undefined) continue;
		const flags = others.map(flagOf).join(', ');
		throw new UsageError(`${flagOf(one)} needs ${flags.replace(/, ([^,]*)$/, ' or $1')}`);
	}
	const { to, cc, bcc, ccEach, eml, preview } = options;
	if (cc.length + bcc.length > 0 && to.length > 1 && !ccEach)
		throw new UsageError('each --cc and --bcc address would get one copy for each --to', {
			hint: 'to send all the copies, add --cc-each',
		});
	if (eml === '-' && preview !== undefined) throw useOne('--eml -', '--preview');
	if (eml === '-' && isMachine(askedFormat)) throw useOne('--eml -', '-o json');
	assertWaits(options);
}

function useOne(one: string, other: string): UsageError {
	return new UsageError(`use either ${one} or ${other}, not both`);
}

export function hasBody(options: SendOptions): boolean {
	return bodies.some((key) => options[key] !== undefined);
}

export function assertContent(options: SendOptions): void {
	if (options.template !== undefined) return;
	if (!hasBody(options))
		throw new UsageError('no content: give --text, --html, --markdown-file or --template');
	if (options.subject === undefined && options.markdownFile === undefined)
		throw new UsageError('missing --subject');
}

function isGiven(value: SendOptions[Key]): boolean {
	if (typeof value === 'object') return Object.keys(value).length > 0;
	return value !== undefined && value !== false;
}

export function assertWaits(options: RunOptions): void {
	paced(options.rate);
	if (options.wait !== false) return;
	for (const key of ['waitTimeout', 'rate', 'connections'] as const)
		if (options[key] !== undefined)
			throw new UsageError(`${flagOf(key)} has no effect with --no-wait: another process sends the messages`);
}
