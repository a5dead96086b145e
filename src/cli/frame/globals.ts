import { colorModes } from '../render/terminal.js';
import { namesOf, type OptionSpec, type OptionSpecs, takesValue } from './command.js';
import { UsageError } from './errors.js';
import { isOn } from './words.js';

export const formats = ['table', 'wide', 'tsv', 'csv', 'json', 'ndjson', 'markdown', 'name'] as const;
export type Format = (typeof formats)[number];

type More = Pick<OptionSpec, 'short' | 'env' | 'of' | 'hidden'>;

const flag = (summary: string, more: More = {}) => ({ kind: 'flag' as const, summary, ...more });

const text = (placeholder: string, summary: string, more: More = {}) => ({
	...{ kind: 'text' as const, placeholder, summary },
	...more,
});

const path = (placeholder: string, summary: string, more: More = {}) => ({
	...{ kind: 'path' as const, placeholder, summary },
	...more,
});

const target = {
	profile: text('NAME', 'use a stored profile', { short: 'p', env: 'MAILCTL_PROFILE', of: 'profile' }),
	baseUrl: text('URL', 'use the service at this URL', { env: 'MAILCTL_BASE_URL' }),
	db: path('PATH', 'use this local database', { env: 'MAILCTL_DB' }),
	tokenFile: path('PATH', 'read the API token from a file', { env: 'MAILCTL_TOKEN, MAILCTL_TOKEN_FILE' }),
	tokenStdin: flag('read the API token from standard input'),
};

const output = {
	output: {
		...{ kind: 'choice' as const, choices: formats, short: 'o', placeholder: 'FMT' },
		...{ summary: 'print in this format', env: 'MAILCTL_OUTPUT' },
	},
	json: flag('same as --output json'),
	fields: text('A,B', 'show only these columns, or these keys in JSON'),
	query: text('EXPR', 'filter JSON with a JMESPath expression; -o tsv prints bare values'),
	noHeader: flag('omit the header line'),
	noTruncate: flag('do not shorten cells'),
	noPager: flag('do not use a pager', { env: 'MAILCTL_PAGER, PAGER' }),
	timeZone: text('ZONE', 'show and read times in this zone', { env: 'MAILCTL_TIME_ZONE, TZ' }),
	color: {
		...{ kind: 'choice' as const, choices: colorModes, placeholder: 'WHEN' },
		...{ summary: 'use colors', env: 'NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM' },
	},
	noColor: flag('same as --color never'),
	quiet: flag('hide progress and hints; create prints only the id', { short: 'q' }),
	verbose: flag('print timings', { short: 'v' }),
	debug: flag('trace HTTP and SMTP, and print stacks', { env: 'MAILCTL_DEBUG' }),
	exitEmpty: flag('exit with 8 if there are no results'),
};

const consent = {
	yes: flag('answer yes to simple questions', { short: 'y' }),
	confirm: text('NAME', 'confirm a dangerous change with the name that the error shows'),
	noInput: flag('never prompt', { env: 'MAILCTL_NO_INPUT, CI' }),
	dryRun: flag('show what would change, and change nothing', { short: 'n' }),
};

const time = {
	timeout: text('DUR', 'limit one request (30s)', { env: 'MAILCTL_TIMEOUT' }),
	deadline: text('DUR', 'limit the time of the whole command (default: no limit)'),
	retries: text('N', 'retry a failed request up to N times, if this is safe (3)', { env: 'MAILCTL_RETRIES' }),
	now: text('TIME', 'fix the clock', { env: 'SOURCE_DATE_EPOCH', hidden: true }),
};

const network = {
	caCert: path('FILE', 'trust this certificate authority too'),
	insecure: flag('do not verify the TLS certificate'),
	proxy: text('URL', 'use this proxy', { env: 'HTTPS_PROXY, HTTP_PROXY, NO_PROXY' }),
};

const specs = { ...target, ...output, ...consent, ...time, ...network };

export const globalOptions: OptionSpecs = specs;

export const globalGroups: Readonly<Record<string, readonly string[]>> = {
	Target: Object.keys(target),
	Output: Object.keys(output),
	Confirmation: Object.keys(consent),
	Time: Object.keys(time),
	Network: Object.keys(network),
};

export type RawGlobals = {
	[K in keyof typeof specs]?: (typeof specs)[K] extends { kind: 'flag' } ? boolean : string;
};

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

export function isForPeople(cx: { out: { format: Format }; globals: RawGlobals }): boolean {
	return isTable(cx.out.format) && cx.globals.fields === undefined;
}

const names = (specs: readonly [string, OptionSpec][]) =>
	new Set(specs.flatMap(([key, spec]) => namesOf(key, spec)));

export const globalFlags: ReadonlySet<string> = names(Object.entries(globalOptions));

const valued = names(Object.entries(globalOptions).filter(([, spec]) => takesValue(spec)));

/** Returns the operands in order. Knows only global options, so values of a command's options count as operands. */
export function operands(argv: readonly string[]): { word: string; at: number }[] {
	const found: { word: string; at: number }[] = [];
	const end = argv.indexOf('--');
	for (let at = 0; at < argv.length; at += 1) {
		const word = argv[at] ?? '';
		if (at === end) continue;
		const isBehindDashes = end !== -1 && at > end;
		if (!isBehindDashes && valued.has(word)) at += 1;
		else if (isBehindDashes || !word.startsWith('-') || word === '-') found.push({ word, at });
	}
	return found;
}

/** Finds the format and `--debug` without parsing, because mailctl also needs them to report a parse error. */
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

/** The parent sets this variable for the child process that runs a command with `--deadline`. */
export const timedBy = 'MAILCTL_TIMED';

/** Time to clean up after a signal: one second more than a worker waits for messages in flight. */
export const graceMs = 10_000;
