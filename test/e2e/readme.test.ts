// Runs every example of the README, in its order, in one home with a mail sink where the README says it is.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Sink, startSink } from '../../src/cli/demo/sink.js';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);
let home: string;
let sink: Sink;
/** Where the README serves: 8080 there, a free one here. */
let port: number;

beforeAll(async () => {
	port = await freePort();
	home = await mkdtemp(join(tmpdir(), 'mailctl-readme-'));
	await mkdir(join(home, 'bin'));
	await symlink(join(root, 'bin/mailctl.js'), join(home, 'bin/mailctl'));
	sink = await startSink();
});
afterAll(async () => {
	const pid = Number(await readFile(join(home, 'serve.pid'), 'utf8'));
	process.kill(pid, 'SIGKILL');
	await sink.close();
	await rm(home, { recursive: true });
});

describe('the README', async () => {
	const text = await readFile(join(root, 'README.md'), 'utf8');
	const blocks = [...text.matchAll(/^```sh run\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '');

	it('has examples, and names the two commands that set it up', () => {
		expect(blocks.length).toBeGreaterThan(5);
		expect([...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1])).toEqual([
			'npm ci && npm run demo\n',
			'npm ci && npm test\n',
		]);
	});

	for (const [index, block] of blocks.entries()) {
		it(`runs its example ${index + 1}: ${block.split('\n')[0]}`, async () => {
			const script = block
				.replaceAll('127.0.0.1:2525', `127.0.0.1:${sink.port}`)
				.replaceAll('8080', String(port));
			const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', script], {
				cwd: home,
				env: { PATH: `${join(home, 'bin')}:${process.env['PATH']}`, HOME: home, LANG: 'C.UTF-8' },
			});
			expect(stdout).not.toBe('');
		});
	}

	it('sent what it says it sends', async () => {
		await vi.waitFor(() => expect(sink.mails).toHaveLength(7), 5_000);
		const subjects = sink.mails.map(({ raw }) => /^Subject: (.*)$/m.exec(raw.toString())?.[1]?.trim());
		expect(subjects.sort()).toEqual([
			'For Bergen',
			'For Oslo',
			'From afar',
			'News for Bergen',
			'News for Oslo',
			'Receipt',
			'Receipt 17',
		]);
	});

	it('names every group of commands that there is, and no other', async () => {
		const { stdout } = await run(process.execPath, [join(root, 'bin/mailctl.js'), '--help'], {
			encoding: 'utf8',
		});
		const section = /Commands:\n([\s\S]*?)\n\n/.exec(stdout)?.[1] ?? '';
		const groups = section.split('\n').map((line) => line.trim().split(' ')[0] ?? '');
		const table = /\| group \| verbs \|\n[\s\S]*?\n\n/.exec(text)?.[0] ?? '';
		const named = [...table.matchAll(/^\| ((?:`\w+` ?)+)/gm)].flatMap((row) =>
			[...(row[1] ?? '').matchAll(/`(\w+)`/g)].map((word) => word[1] ?? ''),
		);
		expect(named.sort()).toEqual(groups.sort());
	});
});

async function freePort(): Promise<number> {
	const server = createServer();
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	// A listening TCP server's address is never a pipe's string.
	const { port: free } = server.address() as AddressInfo;
	await new Promise((resolve) => server.close(resolve));
	return free;
}
