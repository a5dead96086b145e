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
	option('Target', '-p, --profile <NAME>', 'a stored profile', 'MAILCTL_PROFILE'),
	option('Target', '--base-url <URL>', 'a deployment, for this call', 'MAILCTL_BASE_URL'),
	option('Target', '--db <PATH>', 'the embedded engine on this database', 'MAILCTL_DB'),
	option(
		'Target',
		'--token-file <PATH>',
		'read the API token from a file',
		'MAILCTL_TOKEN, MAILCTL_TOKEN_FILE',
	),
	option('Target', '--token-stdin', 'read the API token from standard input'),
	option(
		'Output',
		'-o, --output <FMT>',
		'table, wide, tsv, csv, json, ndjson, markdown, name',
		'MAILCTL_OUTPUT',
	),
	option('Output', '--json', 'the same as --output json'),
	option('Output', '--fields <a,b>', 'columns, or the keys of json'),
	option(
		'Output',
		'--query <EXPR>',
		'a JMESPath expression over what json prints, whatever a profile says; -o tsv: bare values',
	),
	option('Output', '--no-header', 'no header line'),
	option('Output', '--no-truncate', 'never shorten a cell'),
	option('Output', '--no-pager', 'print what is longer than the screen as it is', 'MAILCTL_PAGER, PAGER'),
	option(
		'Output',
		'--time-zone <ZONE>',
		'of times shown and days given: Europe/Oslo',
		'MAILCTL_TIME_ZONE, TZ',
	),
	option('Output', '--color <WHEN>', 'auto, always or never', 'NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM'),
	option('Output', '--no-color', 'the same as --color never'),
	option('Output', '-q, --quiet', 'no progress, no hints; create prints the id alone'),
	option('Output', '-v, --verbose', 'timings'),
	option('Output', '--debug', 'HTTP and SMTP trace, stacks', 'MAILCTL_DEBUG'),
	option('Consent', '-y, --yes', 'yes to mild questions'),
	option('Consent', '--confirm <NAME>', 'consent to a severe change, by the name it asks for'),
	option('Consent', '--no-input', 'never prompt', 'MAILCTL_NO_INPUT, CI'),
	option('Consent', '-n, --dry-run', 'show what would be done, change nothing'),
	option('Time', '--timeout <DUR>', 'one request, overall (30s)', 'MAILCTL_TIMEOUT'),
	option('Time', '--deadline <DUR>', 'the whole command (none)'),
	option('Time', '--retries <N>', 'repeats of what was not processed (3)', 'MAILCTL_RETRIES'),
	option('Network', '--ca-cert <FILE>', 'trust this certificate authority too'),
	option('Network', '--insecure', 'do not check the certificate'),
	option('Network', '--proxy <URL>', 'go through this proxy', 'HTTPS_PROXY, HTTP_PROXY, NO_PROXY'),
	option('Output', '--exit-empty', 'exit 8 when a list is empty'),
	{ ...option('Time', '--now <TIME>', 'a fixed clock', 'SOURCE_DATE_EPOCH'), hidden: true },
];

function option(group: OptionGroup, flags: string, summary: string, environment?: string): GlobalOption {
	return { group, flags, summary, ...(environment !== undefined && { environment }) };
}

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

/** The operands of the command line, in order, as far as global options can tell. */
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
