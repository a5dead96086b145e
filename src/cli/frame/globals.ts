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
	option('Target', '-p, --profile <NAME>', 'use a stored profile', 'MAILCTL_PROFILE'),
	option('Target', '--base-url <URL>', 'use the service at this URL', 'MAILCTL_BASE_URL'),
	option('Target', '--db <PATH>', 'use this local database', 'MAILCTL_DB'),
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
	option('Output', '--json', 'same as --output json'),
	option('Output', '--fields <a,b>', 'show only these columns, or keys of JSON'),
	option('Output', '--query <EXPR>', 'filter JSON with a JMESPath expression; -o tsv prints bare values'),
	option('Output', '--no-header', 'omit the header line'),
	option('Output', '--no-truncate', 'do not shorten cells'),
	option('Output', '--no-pager', 'do not use a pager', 'MAILCTL_PAGER, PAGER'),
	option('Output', '--time-zone <ZONE>', 'show and read times in this zone', 'MAILCTL_TIME_ZONE, TZ'),
	option('Output', '--color <WHEN>', 'auto, always or never', 'NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM'),
	option('Output', '--no-color', 'same as --color never'),
	option('Output', '-q, --quiet', 'hide progress and hints; create prints only the id'),
	option('Output', '-v, --verbose', 'print timings'),
	option('Output', '--debug', 'trace HTTP and SMTP, and print stacks', 'MAILCTL_DEBUG'),
	option('Consent', '-y, --yes', 'answer yes to simple questions'),
	option('Consent', '--confirm <NAME>', 'confirm a severe change by the name it asks for'),
	option('Consent', '--no-input', 'never prompt', 'MAILCTL_NO_INPUT, CI'),
	option('Consent', '-n, --dry-run', 'show what would change, and change nothing'),
	option('Time', '--timeout <DUR>', 'limit one request (30s)', 'MAILCTL_TIMEOUT'),
	option('Time', '--deadline <DUR>', 'limit the whole command (no limit)'),
	option('Time', '--retries <N>', 'retry requests that were not processed (3)', 'MAILCTL_RETRIES'),
	option('Network', '--ca-cert <FILE>', 'trust this certificate authority too'),
	option('Network', '--insecure', 'do not verify the TLS certificate'),
	option('Network', '--proxy <URL>', 'use this proxy', 'HTTPS_PROXY, HTTP_PROXY, NO_PROXY'),
	option('Output', '--exit-empty', 'exit with 8 if there are no results'),
	{ ...option('Time', '--now <TIME>', 'fix the clock', 'SOURCE_DATE_EPOCH'), hidden: true },
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
	throw new UsageError(`unknown output format "${text}"`, {
		hint: `formats: ${formats.join(', ')}${elsewhere}`,
	});
}

export function isMachine(format: Format | null): boolean {
	return format === 'json' || format === 'ndjson';
}

export function isTable(format: Format): format is 'table' | 'wide' {
	return format === 'table' || format === 'wide';
}

/** True if prose may replace columns: the format is a table, and `--fields` is not given. */
export function isForPeople(cx: { out: { format: Format }; globals: RawGlobals }): boolean {
	return isTable(cx.out.format) && cx.globals.fields === undefined;
}

const valued = new Set(
	globalOptions.flatMap(({ flags }) => (flags.includes('<') ? (flags.match(/--?[a-z-]+/g) ?? []) : [])),
);

export const globalFlags: ReadonlySet<string> = new Set(
	globalOptions.flatMap(({ flags }) => flags.match(/--?[a-z][a-z-]*/g) ?? []),
);

/** Returns the operands of the command line in order. Knows only global options. */
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

/** Returns how to report an error of parsing itself. An unknown format counts as none. */
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

/** This variable marks the child process of a command with `--deadline`. */
export const timedBy = 'MAILCTL_TIMED';

/** Milliseconds to clean up after a stop signal; one second more than a worker gives deliveries in flight. */
export const graceMs = 10_000;

export function isOn(value: string | undefined): boolean {
	return value !== undefined && !/^(|0|false|no|off)$/i.test(value);
}
