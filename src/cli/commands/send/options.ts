import { flagOf, type OptionValues } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { isMachine } from '../../frame/globals.js';
import { paced } from '../../frame/values.js';
import { answer } from '../../render/columns.js';

export const sendOptions = {
	from: { kind: 'text', summary: 'a verified sender: news@example.com or "News <news@example.com>"' },
	to: { kind: 'list', placeholder: 'address', summary: 'a recipient' },
	list: {
		kind: 'list',
		placeholder: 'list',
		summary: 'every active subscriber of this list (id or exact name); of several, once each',
	},
	excludeList: {
		kind: 'list',
		placeholder: 'list',
		summary: 'with --list, no address that is in this list, active or not',
	},
	where: {
		kind: 'list',
		placeholder: 'CONDITION',
		summary:
			"with --list, only those that meet it: 'meta.city=Oslo', != is not, ~ contains, 'email~@example.com', 'created>2026-01-31'",
	},
	whereOpened: {
		kind: 'list',
		placeholder: 'NAME|UUID',
		summary: 'with --list, only those that opened the mail of this campaign; bots do not count',
	},
	whereNotOpened: {
		kind: 'list',
		placeholder: 'NAME|UUID',
		summary: 'with --list, only those that got the mail of this campaign and did not open it',
	},
	csv: {
		kind: 'path',
		summary: 'one message a row of this table, whose columns are its variables; - is stdin',
	},
	map: {
		kind: 'list',
		placeholder: 'COLUMN=NAME',
		summary:
			'with --csv, the variable of a column, or email; FIRST+LAST=name joins two, COLUMN=- leaves one out',
	},
	encoding: { kind: 'text', placeholder: 'NAME', summary: 'with --csv, what the table is written in (auto)' },
	batch: { kind: 'path', summary: 'send requests as they are, one a line of JSON; - is stdin' },
	cc: { kind: 'list', placeholder: 'address', summary: 'a copy' },
	bcc: { kind: 'list', placeholder: 'address', summary: 'a hidden copy' },
	ccEach: { kind: 'flag', summary: 'cc and bcc ride on the message to every --to' },
	replyTo: { kind: 'list', placeholder: 'address', summary: 'where answers go' },
	subject: { kind: 'text', summary: 'the subject' },
	text: { kind: 'text', summary: 'the text body' },
	textFile: { kind: 'file', summary: 'the text body from a file' },
	html: { kind: 'text', summary: 'the HTML body' },
	htmlFile: { kind: 'file', summary: 'the HTML body from a file' },
	markdownFile: {
		kind: 'file',
		summary: 'both bodies from a Markdown file; its first # heading is the subject unless one is given',
	},
	template: { kind: 'text', placeholder: 'UUID|NAME', summary: 'a template instead of subject and bodies' },
	attach: {
		kind: 'list',
		placeholder: 'FILE',
		summary: 'attach this file, 20 MiB in all; the HTML shows an image as cid:NAME',
	},
	context: { kind: 'pairs', summary: 'a variable and its value' },
	contextFile: { kind: 'file', summary: 'variables from a JSON object' },
	header: { kind: 'list', placeholder: "'NAME: VALUE'", summary: 'a further header' },
	tag: { kind: 'text', summary: 'a word to find the messages by' },
	bulk: { kind: 'flag', summary: 'bulk mail, as --list is: unsubscribe links, every suppression respected' },
	transactional: { kind: 'flag', summary: 'no bulk mail: a --list without unsubscribe links' },
	campaign: {
		kind: 'text',
		placeholder: 'NAME|UUID',
		summary:
			'the campaign: a new name for a new one, and the same name goes on with it; with --to one that is there',
	},
	again: {
		kind: 'flag',
		summary: 'send the same to the same recipients once more, within 24 h of the last time too',
	},
	disableInline: { kind: 'flag', summary: 'leave the CSS where it is' },
	track: {
		kind: 'choice',
		choices: ['on', 'off'],
		summary: 'off: no pixel and no rewritten links, so opens and clicks are not counted (on)',
	},
	strictVars: {
		kind: 'tri',
		summary: 'refuse variables without a value (on for bulk, --list, --csv and --batch)',
	},
	at: {
		kind: 'text',
		placeholder: 'TIME',
		summary: 'a campaign, not before: 2026-12-01 09:00, tomorrow 9:00, by the clock of the database',
	},
	in: { kind: 'duration', summary: 'a campaign, not before so long from now' },
	window: {
		kind: 'text',
		placeholder: 'HH:MM-HH:MM',
		summary: 'a campaign, only within these hours of each day, over midnight too',
	},
	expectCount: {
		kind: 'integer',
		min: 0,
		summary: 'how many recipients there must be, before suppression and without what is left out',
	},
	maxRecipients: { kind: 'integer', min: 1, summary: 'refuse more recipients than this' },
	skipInvalid: { kind: 'flag', summary: 'leave out recipients with findings (then exit 9)' },
	sample: { kind: 'integer', min: 0, summary: 'recipients to show before asking (3)' },
	testTo: {
		kind: 'text',
		placeholder: 'address',
		summary: 'send what the first would get to this address only',
	},
	rate: {
		kind: 'text',
		placeholder: 'N/s',
		summary:
			'at most so many messages a second (10/s), minute (600/m) or hour (100/h), shared with others on this database that have a rate; not on a mailctl server',
	},
	connections: { kind: 'integer', min: 1, max: 100, summary: 'connections to the mail server (5)' },
	wait: { kind: 'tri', summary: 'wait until each message is sent, failed or deferred (on)' },
	waitTimeout: { kind: 'duration', summary: 'give up waiting after so long without progress (10m)' },
	retryUnknown: {
		kind: 'flag',
		summary: 'send again what a foreign deployment may have sent: a recipient may get it twice',
	},
	results: {
		kind: 'path',
		summary: 'write what became of each message as CSV: a new file, or that of the campaign',
	},
	preview: {
		kind: 'choice',
		choices: ['text', 'html', 'browser'],
		summary: 'print the finished part, or open it in a browser, and send nothing',
	},
	previewAs: {
		kind: 'text',
		placeholder: 'address',
		summary:
			'look at the message of this recipient, not of the first (--preview text unless a look is given)',
	},
	eml: { kind: 'path', summary: 'write the finished message and send nothing; - is stdout' },
	idempotencyKey: {
		kind: 'text',
		placeholder: 'KEY',
		summary: 'the same key and request within 24 h is sent once',
	},
} as const;

export const sendOptionGroups = {
	'Sender and recipients': [
		...(['from', 'to', 'list', 'excludeList', 'where', 'whereOpened', 'whereNotOpened'] as const),
		...(['csv', 'map', 'encoding', 'batch', 'cc', 'bcc', 'ccEach', 'replyTo'] as const),
	],
	Message: [
		...(['subject', 'text', 'textFile', 'html', 'htmlFile', 'markdownFile', 'template', 'attach'] as const),
		...(['context', 'contextFile', 'strictVars', 'disableInline', 'header', 'tag', 'bulk'] as const),
		...(['transactional', 'track'] as const),
	],
	'Campaign and time': ['campaign', 'again', 'at', 'in', 'window', 'idempotencyKey'],
	'Before it leaves': [
		...(['preview', 'previewAs', 'eml', 'testTo', 'sample'] as const),
		...(['expectCount', 'maxRecipients', 'skipInvalid'] as const),
	],
	'Delivery and results': ['rate', 'connections', 'wait', 'waitTimeout', 'retryUnknown', 'results'],
} as const satisfies Record<string, readonly (keyof typeof sendOptions)[]>;

export const campaignAnswer = answer(
	...['name', 'id', 'state', 'recipients', 'staged', 'suppressed', 'rejected', 'left_out', 'messages'],
);

export type SendOptions = OptionValues<typeof sendOptions>;

/** The options with `bulk` and `preview` as they hold: a campaign to a list is bulk mail by default (api-decisions 24). */
export function settled(options: SendOptions, { dryRun }: { dryRun: boolean }): SendOptions {
	const { bulk, transactional, list, preview, previewAs, eml, testTo } = options;
	if (bulk && transactional)
		throw new UsageError('--bulk and --transactional contradict each other; give one');
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

const ofLists: readonly Key[] = ['excludeList', 'where', 'whereOpened', 'whereNotOpened'];
const ofTables: readonly Key[] = ['map', 'encoding'];
const ofCampaigns: readonly Key[] = [
	...(['at', 'in', 'window', 'again', 'expectCount', 'testTo'] as const),
	...(['skipInvalid', 'retryUnknown', 'sample'] as const),
];
const ofRequests: readonly Key[] = [
	...(['from', 'subject', 'text', 'textFile', 'html', 'htmlFile', 'markdownFile', 'template'] as const),
	...(['context', 'contextFile', 'tag', 'bulk', 'transactional', 'disableInline', 'header'] as const),
	'replyTo',
];

type Rule = readonly [isBroken: boolean, error: string, hint?: string];

export function assertRules(rules: readonly Rule[]): void {
	const broken = rules.find(([isBroken]) => isBroken);
	if (broken === undefined) return;
	const [, error, hint] = broken;
	throw new UsageError(error, hint === undefined ? {} : { hint });
}

export function assertOptions({ askedFormat }: CommandContext, options: SendOptions): void {
	const { to, cc, bcc, ccEach, list, csv, batch, testTo, eml, preview, at, in: wait } = options;
	const audience = Object.entries({ to: to[0], list: list[0], csv, batch }).filter(
		([, one]) => one !== undefined,
	);
	const [one, other] = audience.map(([name]) => `--${name}`);
	const given = (keys: readonly Key[]) => keys.find((key) => isGiven(options[key]));
	const only = (isThere: boolean, keys: readonly Key[], flags: string): Rule => {
		const key = isThere ? undefined : given(keys);
		return [key !== undefined, `${key && flagOf(key)} needs ${flags}`];
	};
	const isOfRows = isCampaign(options);
	const copies = cc.length + bcc.length;
	const said = batch === undefined ? undefined : given([...ofRequests, ...ofTables]);
	assertRules([
		[other !== undefined, `${one} and ${other} both name recipients; give one`],
		only(list.length > 0, ofLists, '--list'),
		only(csv !== undefined || batch !== undefined, ofTables, '--csv'),
		only(isOfRows, ofCampaigns, '--list, --csv or --batch'),
		[isOfRows && copies > 0, `--cc and --bcc do not go with ${one}`],
		[
			isOfRows && options.idempotencyKey !== undefined,
			`--idempotency-key does not go with ${one}; --campaign NAME plays that part`,
		],
		[
			said !== undefined,
			`${said && flagOf(said)} does not go with --batch: its requests say everything themselves`,
		],
		[ccEach && copies === 0, '--cc-each needs --cc or --bcc'],
		[
			copies > 0 && to.length > 1 && !ccEach,
			'--cc and --bcc would ride on the message to every --to',
			'add --cc-each if that is meant',
		],
		[at !== undefined && wait !== undefined, '--at and --in both name a time; give one'],
		[
			testTo !== undefined && wantsPreview(options),
			`--test-to sends and --${eml === undefined ? 'preview' : 'eml'} sends nothing; give one`,
		],
		[eml === '-' && preview !== undefined, '--eml - and --preview both print on standard output; give one'],
		[
			eml === '-' && isMachine(askedFormat),
			'--eml - prints a message and does not allow -o json; --eml FILE does',
		],
		...contentRules(options),
	]);
	assertWaits(options);
}

function contentRules(options: SendOptions): Rule[] {
	const { text, textFile, html, htmlFile, markdownFile, template, subject } = options;
	const both = (one: unknown, other: unknown, names: string): Rule => [
		one !== undefined && other !== undefined,
		`${names} both give the same part; give one`,
	];
	return [
		both(text, textFile, '--text and --text-file'),
		both(html, htmlFile, '--html and --html-file'),
		both(html ?? htmlFile, markdownFile, '--markdown-file and an HTML body'),
		[
			template !== undefined && subject !== undefined,
			'--subject does not go with --template: its name is the subject',
		],
		[template !== undefined && hasBody(options), 'a body does not go with --template; give one of them'],
	];
}

export function hasBody({ text, textFile, html, htmlFile, markdownFile }: SendOptions): boolean {
	return [text, textFile, html, htmlFile, markdownFile].some((body) => body !== undefined);
}

export function assertContent(options: SendOptions): void {
	if (options.template !== undefined) return;
	if (!hasBody(options))
		throw new UsageError(
			'nothing to say: give --text, --text-file, --html, --html-file, --markdown-file or --template',
		);
	if (options.subject === undefined && options.markdownFile === undefined)
		throw new UsageError('--subject is missing');
}

function isGiven(value: SendOptions[Key]): boolean {
	if (typeof value === 'object') return Object.keys(value).length > 0;
	return value !== undefined && value !== false;
}

export function assertWaits(
	options: Pick<SendOptions, 'wait' | 'waitTimeout' | 'rate' | 'connections'>,
): void {
	paced(options.rate);
	if (options.wait !== false) return;
	for (const key of ['waitTimeout', 'rate', 'connections'] as const)
		if (options[key] !== undefined)
			throw new UsageError(`${flagOf(key)} has no effect with --no-wait: another process sends the messages`);
}
