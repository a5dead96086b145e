import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scripts } from '../../src/cli/completion/scripts.js';
import { cli } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { makeProject, type Project } from '../support/project.js';
import { isInstalled } from '../support/run-program.js';

/** Without quotes, these names would run `touch ran` or become several words. */
const names = [
	'$(touch ran) § `touch ran` § "$(touch ran)" § \'$(touch ran)\' § ";touch ran;" § \';touch ran;\' § ;touch ran § &touch ran',
	'|touch ran § \\";touch ran;" § \\\';touch ran;\' § \\$(touch ran) § \\`touch ran` § \\\\$(touch ran) § $\\(touch ran)',
	'<(touch ran) § >(touch ran) § >ran § $HOME $PATH § $((1+1)) $[1+1] § $\'\\x41\' $"b" § !! !touch !$ § a!b"!c',
	"Ann's letters § \"quoted\" § 'quoted' § ends with \\ § ends with \" § ends with ' § ends with $ § ends with !",
	'two  blanks § ~ ~root =ls %1 § * ? [a] {b,c} § # no comment § a:b=c@d,e/f § ^a^b (c) <d> e&f|g',
	'‘touch ran’ ‚ ‛ “b” „ § Übergröße 中文 🎉 § 100 % + - _ . ~',
].flatMap((line) => line.split(' § '));
/** The number makes each name unique, so that a Tab after it completes the name. */
const numbered = names.map((name, at) => `${at + 10}${name}`);

const standIn = `#!/bin/sh
printf '%s\\0' "$#" "$@" >&3
while IFS= read -r line <&4 && [ -n "$line" ]; do printf '%s\\n' "$line"; done
`;

let project: Project;

/**
 * A shell on a terminal. This process answers for `mailctl`, because starting the program for each Tab would take
 * minutes.
 */
class Shell {
	readonly #calls: string[][] = [];
	readonly #env = {
		HOME: project.folder,
		MAILCTL_DB: project.db,
		PATH: `${join(project.folder, 'bin')}:${process.env['PATH']}`,
		TERM: 'xterm',
		LANG: 'C.UTF-8',
	};
	#read = '';
	readonly #script: ChildProcess;

	constructor(command: string) {
		this.#script = spawn('script', ['-qec', command, '/dev/null'], {
			stdio: ['pipe', 'ignore', 'ignore', 'pipe', 'pipe'],
			cwd: project.folder,
			env: this.#env,
		});
		for (const pipe of this.#script.stdio) pipe?.on('error', () => {}); // a killed shell resets its pipes
		this.#script.stdio[3]?.on('data', (bytes) => void this.#hear(bytes));
	}

	async #hear(bytes: Buffer): Promise<void> {
		this.#read += bytes;
		const [count = '', ...words] = this.#read.split('\0');
		if (words.length <= Number(count)) return;
		this.#read = '';
		const argv = words.slice(0, -1);
		const isTab = argv[0] === 'completion';
		if (!isTab) this.#calls.push(argv);
		const { stdout } = isTab ? await cli(argv, { env: this.#env }) : { stdout: '' };
		const answers = this.#script.stdio[4];
		if (answers instanceof Writable) answers.write(`${stdout}\n`);
	}

	type(keys: string): void {
		this.#script.stdin?.write(keys);
	}

	async line(keys: string): Promise<string[]> {
		this.type(`${keys}\r`);
		return eventually(() => this.#calls.shift() ?? expect.fail(`no call of: ${keys}`));
	}

	async end(): Promise<void> {
		this.#script.kill();
		await once(this.#script, 'close');
	}
}

beforeAll(async () => {
	project = await makeProject();
	await mkdir(join(project.folder, 'bin'));
	await writeFile(join(project.folder, 'bin/mailctl'), standIn, { mode: 0o755 });
	await project.file('people.csv', '');
	for (const shell of ['bash', 'zsh', 'fish'])
		await project.file(`script.${shell}`, (await cli(['completion', shell])).stdout);
	for (const name of [...numbered, '60 $(touch ran) 1', '60 $(touch ran) 2', 'Red \u001b[31m'])
		await project.json(['lists', 'create', '--name', name, '--email-reason', 'r']);
});

const shells: [string, string, string, string[]][] = [
	['bash', 'bash --norc --noprofile -i', 'source script.bash', ['', "'", '"', "$'", '$"', '"10"\b\b\b"']],
	['zsh', 'zsh -f -i', 'autoload -U compinit; compinit -u -D; source script.zsh', ['', "'", '"']],
	['fish', 'fish --no-config -i', 'source script.fish', ['', "'", '"']],
];
describe.skipIf(!isInstalled('script')).each(shells.filter(([program]) => isInstalled(program)))(
	'completion in %s',
	(_, command, loads, quotes) => {
		let shell: Shell;
		beforeAll(() => {
			shell = new Shell(command);
			shell.type(`${loads}\r`);
		});
		afterAll(() => shell.end());

		it.each([
			['li\tlis\t', ['lists', 'list']],
			['lists list --output=js\t', ['lists', 'list', '--output=json']],
			['send --list=33A\t', ['send', "--list=33Ann's letters"]],
			['send --list Red\t', ['send', '--list', 'Red']],
			['subscribers import peo\t', ['subscribers', 'import', 'people.csv']],
		])('if the user types %j, mailctl gets the arguments %j', async (keys, words) => {
			expect(await shell.line(`mailctl ${keys}`)).toEqual(words);
		});

		it.each(quotes)('after the user types %j, Tab inserts each list name as one word', async (quote) => {
			const found: string[][] = [];
			for (const name of numbered)
				found.push(await shell.line(`mailctl lists get ${quote}${name.slice(0, 2)}\t`));
			// The first Tab inserts the common beginning of two names.
			for (const end of ['1', '2']) found.push(await shell.line(`mailctl lists get ${quote}60\t${end}\t`));
			expect(found).toEqual(
				[...numbered, '60 $(touch ran) 1', '60 $(touch ran) 2'].map((name) => ['lists', 'get', name]),
			);
			expect(existsSync(join(project.folder, 'ran'))).toBe(false);
		});
	},
);

it('the completion script for PowerShell inserts each name as one word, even if the name contains quotes', () => {
	const { text } = scripts.powershell;
	const [, bare = '', quotes = ''] = /-match '(.+?)'.+ -replace '(.+?)', '\$0\$0'/.exec(text) ?? [];
	for (const name of [...names, "‚'‛’‘", '‘;touch ran;‘', '@HOME', 'a,b', '–x', '--%', '$x', '(1)', 'a`b']) {
		expect(name).not.toMatch(new RegExp(bare));
		// In PowerShell any of five marks ends a text in single quotes, and doubling a mark escapes it.
		const inserted = `'${name.replace(new RegExp(quotes, 'g'), '$&$&')}'`;
		const [, inside] = /^'((?:[^'‘-‛]|['‘-‛]['‘-‛])*)'$/.exec(inserted) ?? [];
		expect(inside?.replace(/['‘-‛](['‘-‛])/g, '$1')).toBe(name);
	}
	for (const word of ['lists', '--output=json', 'news@example.com', 'keep_events', 'Übergröße'])
		expect(word).toMatch(new RegExp(bare.replaceAll('\\w', '\\p{L}\\d_'), 'u'));
});
