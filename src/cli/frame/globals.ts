import { UsageError } from './errors.js';

export interface GlobalOption {
	flags: string;
	summary: string;
	environment?: string;
	hidden?: true;
	group: OptionGroup;
}

export const optionGroups = ['Target', 'Output', 'Consent', 'Time', 'Network'] as const;
type OptionGroup = (typeof optionGroups)[number];

export const globalOptions: readonly GlobalOption[] = [
	{
		flags: '-p, --profile <NAME>',
		group: 'Target',
		summary: 'a stored profile',
		environment: 'MAILCTL_PROFILE',
	},
	{
		flags: '--base-url <URL>',
		group: 'Target',
		summary: 'a deployment, for this call',
		environment: 'MAILCTL_BASE_URL',
	},
	{
		flags: '--db <PATH>',
		group: 'Target',
		summary: 'the embedded engine on this database',
		environment: 'MAILCTL_DB',
	},
	{
		flags: '--token-file <PATH>',
		group: 'Target',
		summary: 'read the API token from a file',
		environment: 'MAILCTL_TOKEN, MAILCTL_TOKEN_FILE',
	},
	{ flags: '--token-stdin', group: 'Target', summary: 'read the API token from standard input' },
	{
		flags: '-o, --output <FMT>',
		group: 'Output',
		summary: 'table, wide, tsv, csv, json, ndjson, markdown, name',
		environment: 'MAILCTL_OUTPUT',
	},
	{ flags: '--json', group: 'Output', summary: 'the same as --output json' },
	{ flags: '--fields <a,b>', group: 'Output', summary: 'columns, or the keys of json' },
	{
		flags: '--query <EXPR>',
		group: 'Output',
		summary: 'a JMESPath expression over what json prints, whatever a profile says; -o tsv: bare values',
	},
	{ flags: '--no-header', group: 'Output', summary: 'no header line' },
	{ flags: '--no-truncate', group: 'Output', summary: 'never shorten a cell' },
	{
		flags: '--no-pager',
		group: 'Output',
		summary: 'print what is longer than the screen as it is',
		environment: 'MAILCTL_PAGER, PAGER',
	},
	{
		flags: '--time-zone <ZONE>',
		group: 'Output',
		summary: 'of times shown and days given: Europe/Oslo',
		environment: 'MAILCTL_TIME_ZONE, TZ',
	},
	{
		flags: '--color <WHEN>',
		group: 'Output',
		summary: 'auto, always or never',
		environment: 'NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM',
	},
	{ flags: '--no-color', group: 'Output', summary: 'the same as --color never' },
	{ flags: '-q, --quiet', group: 'Output', summary: 'no progress, no hints; create prints the id alone' },
	{ flags: '-v, --verbose', group: 'Output', summary: 'timings' },
	{ flags: '--debug', group: 'Output', summary: 'HTTP and SMTP trace, stacks', environment: 'MAILCTL_DEBUG' },
	{ flags: '-y, --yes', group: 'Consent', summary: 'yes to mild questions' },
	{
		flags: '--confirm <NAME>',
		group: 'Consent',
		summary: 'consent to a severe change, by the name it asks for',
	},
	{ flags: '--no-input', group: 'Consent', summary: 'never prompt', environment: 'MAILCTL_NO_INPUT, CI' },
	{ flags: '-n, --dry-run', group: 'Consent', summary: 'show what would be done, change nothing' },
	{
		flags: '--timeout <DUR>',
		group: 'Time',
		summary: 'one request, overall (30s)',
		environment: 'MAILCTL_TIMEOUT',
	},
	{ flags: '--deadline <DUR>', group: 'Time', summary: 'the whole command (none)' },
	{
		flags: '--retries <N>',
		group: 'Time',
		summary: 'repeats of what was not processed (3)',
		environment: 'MAILCTL_RETRIES',
	},
	{ flags: '--ca-cert <FILE>', group: 'Network', summary: 'trust this certificate authority too' },
	{ flags: '--insecure', group: 'Network', summary: 'do not check the certificate' },
	{
		flags: '--proxy <URL>',
		group: 'Network',
		summary: 'go through this proxy',
		environment: 'HTTPS_PROXY, HTTP_PROXY, NO_PROXY',
	},
	{ flags: '--exit-empty', group: 'Output', summary: 'exit 8 when a list is empty' },
	{
		flags: '--now <TIME>',
		group: 'Time',
		summary: 'a fixed clock',
		environment: 'SOURCE_DATE_EPOCH',
		hidden: true,
	},
];

/** The result of commander for the table above; absent = not given. Negated ones are true unless given. */
export interface RawGlobals {
	profile?: string;
	baseUrl?: string;
	db?: string;
	tokenFile?: string;
	tokenStdin?: boolean;
	output?: string;
	json?: boolean;
	fields?: string;
	query?: string;
	header?: boolean;
	truncate?: boolean;
	pager?: boolean;
	timeZone?: string;
	color?: string | false;
	quiet?: boolean;
	verbose?: boolean;
	debug?: boolean;
	yes?: boolean;
	confirm?: string;
	input?: boolean;
	dryRun?: boolean;
	timeout?: string;
	deadline?: string;
	retries?: string;
	caCert?: string;
	insecure?: boolean;
	proxy?: string;
	exitEmpty?: boolean;
	now?: string;
}

export type Env = Readonly<Record<string, string | undefined>>;

export type ColorMode = 'auto' | 'always' | 'never';

export const formats = ['table', 'wide', 'tsv', 'csv', 'json', 'ndjson', 'markdown', 'name'] as const;
export type Format = (typeof formats)[number];

export function isFormat(text: string): text is Format {
	return (formats as readonly string[]).includes(text);
}

export function parseFormat(text: string): Format {
	if (isFormat(text)) return text;
	const isFile = /\/|\.\w+$/.test(text);
	const elsewhere = isFile ? '; "> FILE" writes the output to a file' : '';
	throw new UsageError(`"${text}" is not an output format`, {
		hint: `formats: ${formats.join(', ')}${elsewhere}`,
	});
}

export function isMachine(format: Format | null): boolean {
	return format === 'json' || format === 'ndjson';
}

export function isTable(format: Format): format is 'table' | 'wide' {
	return format === 'table' || format === 'wide';
}

/** A text may stand in place of the columns: a table is printed, and `--fields` picks none of them. */
export function isForPeople(cx: { out: { format: Format }; globals: RawGlobals }): boolean {
	return isTable(cx.out.format) && cx.globals.fields === undefined;
}

const valued = new Set(
	globalOptions.flatMap(({ flags }) => (flags.includes('<') ? (flags.match(/--?[a-z-]+/g) ?? []) : [])),
);

export const globalFlags: ReadonlySet<string> = new Set(
	globalOptions.flatMap(({ flags }) => flags.match(/--?[a-z][a-z-]*/g) ?? []),
);

/** The words of the command line that are no options, in order, as far as global options can tell. */
export function operands(argv: readonly string[]): string[] {
	const found: string[] = [];
	for (let at = 0; at < argv.length; at += 1) {
		const word = argv[at] ?? '';
		if (word === '--') return [...found, ...argv.slice(at + 1)];
		if (valued.has(word)) at += 1;
		else if (!word.startsWith('-') || word === '-') found.push(word);
	}
	return found;
}

/**
 * The settings of an error report before, or without, a successful parse: `-o json` counts beside a failing option too.
 * Tolerant: an unknown format counts as none.
 */
export function peek(
	argv: readonly string[],
	env: Readonly<Record<string, string | undefined>>,
): { format: Format | null; debug: boolean } {
	let text = env['MAILCTL_OUTPUT'] ?? '';
	let debug = isOn(env['MAILCTL_DEBUG']);
	const end = argv.indexOf('--');
	const words = end === -1 ? argv : argv.slice(0, end);
	words.forEach((word, at) => {
		const inline = /^(?:--output=|-[a-zA-Z]*o=?)(.+)$/.exec(word)?.[1];
		if (word === '-o' || word === '--output') text = words[at + 1] ?? '';
		else if (inline !== undefined && (word.startsWith('--output=') || /^-[qvyn]*o/.test(word))) text = inline;
		else if (word === '--json') text = 'json';
		else if (word === '--debug') debug = true;
	});
	return { format: isFormat(text) ? text : null, debug };
}

/** The variable that marks the child process of a command with `--deadline`. */
export const timedBy = 'MAILCTL_TIMED';

/** Time to clean up after a stop signal, in milliseconds; a second more than the worker gives deliveries in flight. */
export const graceMs = 10_000;

export function isOn(value: string | undefined): boolean {
	return value !== undefined && !/^(|0|false|no|off)$/i.test(value);
}
