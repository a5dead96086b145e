import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { main } from '../../../src/cli/main.js';
import { isLonger, pagerOf, showPaged } from '../../../src/cli/render/pager.js';

import { makeHome } from '../../support/cli.js';

const terminal = { isTTY: true };

describe('the pager', () => {
	it.each([
		[{}, 'less'],
		[{ PAGER: 'more' }, 'more'],
		[{ PAGER: 'more', MAILCTL_PAGER: 'less -S' }, 'less -S'],
		[{ PAGER: 'more', MAILCTL_PAGER: '' }, null],
		[{ PAGER: 'cat' }, null],
		[{ TERM: 'dumb' }, null],
		[{ CI: 'true' }, null],
		[{ CI: 'false' }, 'less'],
	])('for the environment %j is %s', (env, command) => expect(pagerOf(terminal, env)).toBe(command));

	it('is not used in a pipe', () => expect(pagerOf({ isTTY: false }, { PAGER: 'more' })).toBeNull());

	it.each([
		['a\n'.repeat(23), 24, false],
		['a\n'.repeat(24), 24, true],
		[`${'a'.repeat(80 * 24)}\n`, 24, true],
		[`${'\x1b[36ma\x1b[39m'.repeat(80)}\n`.repeat(23), 24, false],
		['a\n'.repeat(1000), 0, false],
		['a\n'.repeat(1000), undefined, false],
	])('is used only if the text is longer than the screen (%#)', (text, rows, expected) => {
		const raw = Object.assign(new PassThrough(), { rows });
		expect(isLonger({ isTTY: true, columns: 80, raw, write: async () => undefined }, text)).toBe(expected);
	});

	const shown = async (command: string, text: string) => {
		const printed: string[] = [];
		const write = async (piece: string | Uint8Array) => void printed.push(String(piece));
		const env = { PATH: process.env['PATH'] ?? '' };
		await showPaged({ isTTY: true, columns: 80, raw: new PassThrough(), write }, text, command, env);
		return printed.join('');
	};

	it('reads the text from stdin, and gets LESS=FRX in its environment', async () => {
		const file = join(await mkdtemp(join(tmpdir(), 'mailctl-pager-')), 'shown');
		expect(await shown(`{ cat; echo $LESS; } > '${file}'`, 'Ünïcode\n')).toBe('');
		expect(await readFile(file, 'utf8')).toBe('Ünïcode\nFRX\n');
	});

	it('may exit early or fail, and mailctl reports no error', async () => {
		const long = 'line\n'.repeat(1_000_000);
		expect(await shown('head -n 1 > /dev/null', long)).toBe('');
		expect(await shown('exit 3', long)).toBe('');
	});

	it('is not needed: without it mailctl prints the text itself', async () => {
		expect(await shown('mailctl-has-no-such-pager 2> /dev/null', 'text\n')).toBe('text\n');
	});
});

describe('the pager for long output', () => {
	async function atTerminal(argv: readonly string[]) {
		const home = await makeHome();
		const file = join(home, 'paged');
		await writeFile(file, '');
		const pieces: string[] = [];
		const stdout = new Writable({
			write(chunk: Buffer, _, done) {
				pieces.push(chunk.toString('utf8'));
				done();
			},
		});
		const code = await main({
			argv,
			env: { HOME: home, TERM: 'xterm', PATH: process.env['PATH'] ?? '', MAILCTL_PAGER: `cat > '${file}'` },
			stdin: new PassThrough(),
			stdout: Object.assign(stdout, { isTTY: true, columns: 80, rows: 5 }),
			stderr: new PassThrough(),
			interrupts: new AbortController().signal,
		});
		expect(code).toBe(0);
		return { printed: pieces.join(''), paged: await readFile(file, 'utf8') };
	}

	it.each([
		['help', ['report', '--help'], 'mailctl report: '],
		['the overview', ['--help'], 'mailctl: '],
		['the overview without words', [], 'mailctl: '],
		['a report', ['report', '--last', '7d'], '  sent          0'],
		['JSON', ['engine', 'status', '-o', 'json'], '"time_zone": "UTC"'],
	])('gets %s', async (_, argv, text) => {
		const { printed, paged } = await atTerminal(argv);
		expect({ printed, paged }).toEqual({ printed: '', paged: expect.stringContaining(text) });
		const plain = await atTerminal([...argv, '--no-pager']);
		expect(plain).toEqual({ printed: expect.stringContaining(text), paged: '' });
	});

	it('is not used for the result of --query', async () => {
		const argv = ['engine', 'status', '-o', 'json', '--query', 'time_zone'];
		expect(await atTerminal(argv)).toEqual({ printed: '"UTC"\n', paged: '' });
	});
});
