/** Each option rejects a bad value with exit 2, and prints its name, the value and the expected form. */
import { describe, expect, it } from 'vitest';
import { flagOf, type OptionSpec } from '../../src/cli/frame/command.js';
import type { RawGlobals } from '../../src/cli/frame/globals.js';
import { type CliResult, cli } from '../support/cli.js';
import { allCommands, changing, type Leaf } from '../support/command-tree.js';
import { makeProject, type Project } from '../support/project.js';

/** A bad value is rejected before the command connects. */
const connect = async () => {
	throw new Error('reached');
};

const wrong = 'no such thing';

const wanted: Partial<Record<OptionSpec['kind'], RegExp>> = {
	integer: /is not a whole number \(\d+ or more\)|is not a whole number \(\d+ to \d+\)/,
	choice: /hint: (?:one of: \w|did you mean)/,
	choices: /hint: (?:one of: \w|did you mean)/,
	duration: /hint: durations: 500ms 30s 5m 2h 7d/,
	date: /hint: dates: 2026-11-01, 01\.11\.2026, 7d, 2w, today, yesterday/,
	pairs: /is not KEY=VALUE/,
};

function completed({ path, command }: Leaf, flag: string): string[] {
	const options = Object.entries(command.options).flatMap(([key, spec]) =>
		spec.required === true && flagOf(key) !== flag ? [flagOf(key), fine(spec)] : [],
	);
	const args = command.args.map(({ choices }) => choices?.[0] ?? '1');
	return [...path.split(' '), ...args, ...options, ...changing(command)];
}

function fine(spec: OptionSpec): string {
	return spec.kind === 'choice' ? (spec.choices[0] ?? '') : '1';
}

const leaves = (await allCommands()).filter(({ command }) => command.hidden !== true);
const typed = leaves.flatMap((leaf) =>
	Object.entries(leaf.command.options).flatMap(([key, spec]) =>
		wanted[spec.kind] === undefined
			? []
			: [{ line: `${leaf.path} ${flagOf(key)}`, flag: flagOf(key), leaf, kind: spec.kind }],
	),
);

function refused({ code, stdout, stderr }: CliResult, flag: string, given: string): string {
	expect([code, stdout]).toEqual([2, '']);
	expect(stderr).toContain(`error: ${flag}`);
	expect(stderr).toContain(`"${given}"`);
	return stderr;
}

describe('a value of the wrong kind', () => {
	it.each(typed)('is rejected by mailctl $line', async ({ flag, leaf, kind }) => {
		const result = await cli([...completed(leaf, flag), flag, wrong], { connect });
		expect(refused(result, flag, wrong)).toMatch(wanted[kind] ?? /never/);
	});

	it.each([
		['integer', ['1.5', '-1', '1e3', '0x10', '99999999999999999999', ' ']],
		['duration', ['10', '-5s', '5 min', '25d', '1y']],
		['date', ['2026-02-30', '31.11.2026', '11/01/2026', '2026-1-1', '7 days']],
	] as const)('is rejected even if it is almost a valid %s', async (wanted, values) => {
		const found = typed.find(({ kind }) => kind === wanted);
		if (found === undefined) throw new Error(`no option is a ${wanted}`);
		const { leaf, flag } = found;
		for (const value of values)
			refused(await cli([...completed(leaf, flag), `${flag}=${value}`], { connect }), flag, value);
	});
});

describe('an empty value for a path, or for a text with a default', () => {
	const needed = leaves.flatMap((leaf) =>
		Object.entries(leaf.command.options).flatMap(([key, spec]) =>
			['file', 'path'].includes(spec.kind) || (spec.kind === 'text' && spec.default !== undefined)
				? [{ line: `${leaf.path} ${flagOf(key)}`, flag: flagOf(key), leaf }]
				: [],
		),
	);
	it.each(needed)('is rejected: mailctl $line', async ({ flag, leaf }) => {
		const { code, stdout, stderr } = await cli([...completed(leaf, flag), `${flag}=`], { connect });
		expect([code, stdout, stderr]).toEqual([2, '', `error: ${flag} is empty\n`]);
	});
});

describe('a path or host that the operating system rejects', () => {
	const long = `/tmp/${'n'.repeat(300)}`;
	it.each([
		[['demo', '--keep', '/etc/hostname'], '/etc/hostname: file already exists'],
		[['demo', '--keep', '/etc/hostname/demo'], '/etc/hostname/demo: not a directory'],
		[['sink', '--port', '0', '--dir', long], `cannot write to --dir ${long}: name too long`],
		[['sink', '--port', '0', '--host', 'n'.repeat(300)], 'is not an address of this machine'],
		[['suppressions', 'export', long], `${long} cannot be written: its name is too long`],
		[['templates', 'push', long], `${long}: name too long`],
		[['engine', 'backup', long], `${long} cannot be written: its name is too long`],
	])('makes mailctl print the reason and exit with 2: mailctl %j', async (words, reason) => {
		const { code, stdout, stderr } = await cli(words);
		expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(`${reason}\n`)]);
	});
});

describe('a global option of the wrong kind', () => {
	const globals: readonly (readonly [keyof RawGlobals, string, string, RegExp])[] = [
		['output', '--output', 'xml', /table, wide, tsv/],
		['color', '--color', 'red', /auto|always|never/],
		['timeout', '--timeout', '10', /durations: 500ms/],
		['deadline', '--deadline', 'soon', /durations: 500ms/],
		['retries', '--retries', 'many', /whole number/],
		['timeZone', '--time-zone', 'Osloo', /Europe\/Oslo/],
		['baseUrl', '--base-url', 'ftp://example.com', /http or https/],
		['proxy', '--proxy', 'ftp://proxy.example.com', /http:\/\/host:3128/],
		['fields', '--fields', 'nosuch', /id|name/],
		['query', '--query', 'a[', /JMESPath|expression/i],
		['now', '--now', 'noon', /2026-11-01T12:00:00Z/],
	];
	it.each(globals)('is rejected with its value and a hint: %s', async (_, flag, value, hint) => {
		const { code, stderr } = await cli(['lists', 'list', flag, value]);
		expect([code, stderr]).toEqual([2, expect.stringMatching(hint)]);
		expect(stderr).toContain(value);
	});
});

it('a proxy that is not a URL is shown without user and password', async () => {
	for (const proxy of ['ftp://ann:hidden@proxy', 'ann:hidden@', 'http://ann:hid@den@:3128']) {
		const { code, stderr } = await cli(['lists', 'list', '--proxy', proxy]);
		expect([code, stderr]).toEqual([2, expect.stringContaining('********@')]);
		expect(stderr).not.toMatch(/ann|hid|den/);
	}
});

describe('an invalid option value', () => {
	const send = 'send --from news@example.com --subject S --text T';
	const many = `${send} --list Readers --dry-run`;
	const texts: readonly (readonly [line: string, flag: string, value: string, hint: RegExp])[] = [
		[many, '--at', 'noonish', /2026-12-01|tomorrow/],
		[many, '--at', '2026-02-30 09:00', /2026-12-01|tomorrow/],
		[many, '--window', '9-17', /such as 09:00-18:00/],
		[many, '--window', '09:00-25:00', /such as 09:00-18:00/],
		[many, '--where', 'city', /meta\.city=Oslo|meta\.KEY=VALUE/],
		[many, '--rate', 'fast', /10\/s/],
		[`${many}`, '--exclude-list', 'Nobody', /lists list|did you mean|not found/],
		[`${send} --to ann@example.com --dry-run`, '--header', 'X-Id', /NAME: VALUE|X-Id: 1/i],
		['report', '--last', 'month', /14d|4w/],
		['report', '--fail-if', 'bounces', /hardbounced_percent>2/],
		['report', '--save', 'report.xls', /\.html|\.csv/],
		['lists list', '--sort', 'nosuch', /id|name/],
		['subscribers list -l Readers', '--where', 'city', /meta\.city=Oslo/],
		['suppressions add ann@example.com', '--expires', 'someday', /30d|tomorrow/],
		['doctor --offline', '--name-server', 'dns:port', /IP/],
		['serve', '--bounce-smtp', 'here', /HOST:PORT|127\.0\.0\.1:\d+/],
		['serve --port 0', '--host', `no.${'h'.repeat(70)}`, /is not an address of this machine/],
		['subscribers import people.csv -l Readers', '--max-errors', 'few', /such as 5%/],
		['subscribers import people.csv -l Readers', '--delimiter', 'abc', /auto, tab or a character/],
		['subscribers import people.csv -l Readers', '--encoding', 'ebcdic', /utf-8/],
		['subscribers import people.csv -l Readers', '--map', 'Email', /COLUMN=FIELD|=email/],
	];
	it.each(texts)('is rejected by mailctl %s %s %s', async (line, flag, value, hint) => {
		const project = await ready();
		const words = line
			.split(' ')
			.map((word) => (word === 'people.csv' ? `${project.folder}/people.csv` : word));
		const { code, stderr } = await project.run([...words, flag, value]);
		expect([code === 3 ? 2 : code, stderr]).toEqual([2, expect.stringMatching(hint)]);
		expect(stderr).toContain(value);
	});

	const files = leaves.flatMap((leaf) =>
		Object.entries(leaf.command.options).flatMap(([key, { kind }]) =>
			kind === 'file' ? [{ line: `${leaf.path} ${flagOf(key)}`, flag: flagOf(key), leaf }] : [],
		),
	);
	it.each(files)('is rejected if it names no existing file: mailctl $line', async ({ flag, leaf }) => {
		const project = await ready();
		const words = [
			...completed(leaf, flag).map((word) =>
				leaf.path === 'templates update' && word === '1' ? 'Welcome' : word,
			),
			...(beside[`${leaf.path} ${flag}`] ?? []),
			flag,
		];
		for (const [value, reason] of [
			['/nowhere/at/all', /no such file/],
			[project.folder, /is a directory/],
		] as const) {
			const { code, stderr } = await project.run([...words, value]);
			expect([code, stderr]).toEqual([2, expect.stringMatching(reason)]);
			expect(stderr).toContain(value);
		}
	});
});

const sending = ['--from', 'news@example.com', '--to', 'ann@example.com', '--subject', 'S'];

const beside: Readonly<Record<string, readonly string[]>> = {
	'send --text-file': sending,
	'send --html-file': sending,
	'send --markdown-file': sending,
	'send --context-file': [...sending, '--text', 'T'],
	'serve --tls-cert': ['--tls-key', '/etc/hostname'],
	'serve --tls-key': ['--tls-cert', '/etc/hostname'],
};

let made: Promise<Project> | null = null;

function ready(): Promise<Project> {
	made ??= (async () => {
		const project = await makeProject({ smtp: 9 });
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		await project.json([
			'templates',
			'create',
			'--name',
			'Welcome',
			'--text-file',
			await project.file('w.txt', 'Hi'),
		]);
		await project.file('people.csv', 'email\nann@example.com\n');
		return project;
	})();
	return made;
}
