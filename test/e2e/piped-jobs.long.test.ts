import { once } from 'node:events';
import { mkdtempSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { programPath, startProgram } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { runProgram } from '../support/run-program.js';

const home = mkdtempSync(join(tmpdir(), 'mailctl-piped-'));
const temporary = mkdtempSync(join(tmpdir(), 'mailctl-temporary-'));
const env = { HOME: home, TMPDIR: temporary, MAILCTL_DB: join(home, 'news.db') };

function run(words: readonly string[]) {
	return runProgram(process.execPath, [programPath, ...words], {
		env: { PATH: process.env['PATH'] ?? '', TERM: 'dumb', ...env },
	});
}

const mail = ['--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--no-wait'];

beforeAll(() => {
	expect(run(['engine', 'init', '-q', '--sender', 'news@example.com']).status).toBe(0);
});

/** Returns the deleted temporary files that the process has open. */
function unnamedOf(pid: number): string[] {
	const folder = `/proc/${pid}/fd`;
	return readdirSync(folder)
		.map((fd) => join(folder, fd))
		.filter((path) => readlinkSync(path).startsWith(`${temporary}/`));
}

describe.skipIf(process.platform !== 'linux')('a campaign from a pipe', () => {
	it('keeps its rows in a private, unlinked temporary file, and leaves no file behind after a kill', async () => {
		const job = startProgram(['send', ...mail, '--csv', '-', '--yes', '--expect-count', '2'], env);
		const ended = once(job, 'exit');
		job.stdin.write(`email\n${'ann@example.com\n'.repeat(50_000)}`);
		const { pid = 0 } = job;
		const file = await eventually(() => {
			const [one = ''] = unnamedOf(pid);
			expect(statSync(one).size).toBe('email\n'.length + 50_000 * 'ann@example.com\n'.length);
			return one;
		});
		expect({ mode: statSync(file).mode & 0o777, name: readlinkSync(file) }).toEqual({
			mode: 0o600,
			name: expect.stringMatching(/ \(deleted\)$/),
		});
		expect(readdirSync(temporary)).toEqual([]);
		job.kill('SIGKILL');
		await ended;
		expect(readdirSync(temporary)).toEqual([]);
		expect(JSON.parse(run(['campaigns', 'list', '-o', 'json']).stdout)).toEqual([]);
	});
});
