/** The global options: one table for the parser, the help and the search for the command's words. */
import { UsageError } from './errors.js';

export interface GlobalOption {
	/** As commander reads them: `-p, --profile <NAME>`. */
	flags: string;
	summary: string;
	environment?: string;
	hidden?: true;
}

export const globalOptions: readonly GlobalOption[] = [
	{ flags: '-p, --profile <NAME>', summary: 'a stored profile', environment: 'MAILCTL_PROFILE' },
	{ flags: '--base-url <URL>', summary: 'a deployment, for this call', environment: 'MAILCTL_BASE_URL' },
	{ flags: '--db <PATH>', summary: 'the embedded engine on this database', environment: 'MAILCTL_DB' },
	{
		flags: '--token-file <PATH>',
		summary: 'read the API token from a file',
		environment: 'MAILCTL_TOKEN, MAILCTL_TOKEN_FILE',
	},
	{ flags: '--token-stdin', summary: 'read the API token from standard input' },
	{
		flags: '-o, --output <FMT>',
		summary: 'table, wide, tsv, csv, json, ndjson, markdown, name',
		environment: 'MAILCTL_OUTPUT',
	},
	{ flags: '--json', summary: 'the same as --output json' },
	{ flags: '--fields <a,b>', summary: 'columns, or the keys of json' },
	{
		flags: '--query <EXPR>',
		summary: 'a JMESPath expression over what json prints; -o tsv for bare values',
	},
	{ flags: '--no-header', summary: 'no header line' },
	{ flags: '--no-truncate', summary: 'never shorten a cell' },
	{
		flags: '--time-zone <ZONE>',
		summary: 'of times shown and days given: Europe/Oslo',
		environment: 'MAILCTL_TIME_ZONE, TZ',
	},
	{
		flags: '--color <WHEN>',
		summary: 'auto, always or never',
		environment: 'NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM',
	},
	{ flags: '--no-color', summary: 'the same as --color never' },
	{ flags: '-q, --quiet', summary: 'no progress, no hints; create prints the id alone' },
	{ flags: '-v, --verbose', summary: 'timings' },
	{ flags: '--debug', summary: 'HTTP and SMTP trace, stacks', environment: 'MAILCTL_DEBUG' },
	{ flags: '-y, --yes', summary: 'yes to mild questions' },
	{ flags: '--confirm <NAME>', summary: 'consent to a severe change, by the name it asks for' },
	{ flags: '--no-input', summary: 'never prompt', environment: 'MAILCTL_NO_INPUT, CI' },
	{ flags: '-n, --dry-run', summary: 'show what would be done, change nothing' },
	{ flags: '--timeout <DUR>', summary: 'one request, overall (30s)', environment: 'MAILCTL_TIMEOUT' },
	{ flags: '--deadline <DUR>', summary: 'the whole command (none)' },
	{
		flags: '--retries <N>',
		summary: 'repeats of what was not processed (3)',
		environment: 'MAILCTL_RETRIES',
	},
	{ flags: '--ca-cert <FILE>', summary: 'trust this certificate authority too' },
	{ flags: '--insecure', summary: 'do not check the certificate' },
	{
		flags: '--proxy <URL>',
		summary: 'go through this proxy',
		environment: 'HTTPS_PROXY, HTTP_PROXY, NO_PROXY',
	},
	{ flags: '--exit-empty', summary: 'exit 8 when a list is empty' },
	{ flags: '--now <TIME>', summary: 'a fixed clock', environment: 'SOURCE_DATE_EPOCH', hidden: true },
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
	timeZone?: string;
	/** False: `--no-color`. */
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

export const formats = ['table', 'wide', 'tsv', 'csv', 'json', 'ndjson', 'markdown', 'name'] as const;
export type Format = (typeof formats)[number];

/** Spelled as in `formats`; case counts. */
export function isFormat(text: string): text is Format {
	return (formats as readonly string[]).includes(text);
}

/** Throws `UsageError`, which names the formats. */
export function parseFormat(text: string): Format {
	if (isFormat(text)) return text;
	throw new UsageError(`"${text}" is no output format`, { hint: `formats: ${formats.join(', ')}` });
}

/** JSON, which programs read: there are no prompts then. `null` (unsettled) is no such format. */
export function isMachine(format: Format | null): boolean {
	return format === 'json' || format === 'ndjson';
}

const valued = new Set(
	globalOptions.flatMap(({ flags }) => (flags.includes('<') ? (flags.match(/--?[a-z-]+/g) ?? []) : [])),
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

/** `0`, `false`, `no` and nothing are off. */
export function isOn(value: string | undefined): boolean {
	return value !== undefined && !/^(|0|false|no|off)$/i.test(value);
}
