import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type MailSink, type SinkMail, startMailSink } from '../../src/cli/connect/mail-sink.js';
import { exitMeanings } from '../../src/cli/frame/exit.js';
import { eventually } from '../support/eventually.js';
import { moment } from '../support/golden/program.js';
import { blockOf, expectGolden } from '../support/golden/record.js';
import { createSettler } from '../support/golden/settled.js';
import { freePort } from '../support/listen.js';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);
let home: string;
let sink: MailSink;
const mails: SinkMail[] = [];
let port: number;

/** The pages in the order of the README's table; examples depend on those of earlier pages. */
const pages = [
	'README.md',
	...[
		'getting-started',
		'importing',
		'sending',
		'campaigns-and-reports',
		'bounces-and-suppressions',
		'deploying',
		'scripting-and-ci',
		'http-api',
	].map((name) => `docs/${name}.md`),
];

beforeAll(async () => {
	port = await freePort();
	home = await mkdtemp(join(tmpdir(), 'mailctl-readme-'));
	await mkdir(join(home, 'bin'));
	await symlink(join(root, 'bin/mailctl.js'), join(home, 'bin/mailctl'));
	sink = await startMailSink({ take: (mail) => void mails.push(mail) });
});
afterAll(async () => {
	const pid = Number(await readFile(join(home, 'serve.pid'), 'utf8'));
	process.kill(pid, 'SIGKILL');
	await sink.close();
	await rm(home, { recursive: true });
});

describe('the README and the docs', async () => {
	const texts = await Promise.all(pages.map((page) => readFile(join(root, page), 'utf8')));
	const text = texts[0] ?? '';
	const blocks = texts.flatMap((page) =>
		[...page.matchAll(/^```sh run\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? ''),
	);

	it('contain examples, and the README shows "npm run demo" and "npm test"', () => {
		expect(blocks.length).toBeGreaterThan(5);
		expect([...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1])).toEqual([
			'npm ci && npm run demo\n',
			'npm ci && npm test\n',
		]);
	});

	const record: string[] = [];

	for (const [index, block] of blocks.entries()) {
		it(`contain working examples (number ${index + 1}): ${block.split('\n')[0]}`, async () => {
			const script = block
				.replaceAll('127.0.0.1:2525', `127.0.0.1:${sink.port}`)
				.replaceAll('8080', String(port));
			const { stdout, stderr } = await run('bash', ['-euo', 'pipefail', '-c', announced(script)], {
				cwd: home,
				env: {
					PATH: `${join(home, 'bin')}:${process.env['PATH']}`,
					HOME: home,
					LANG: 'C.UTF-8',
					SOURCE_DATE_EPOCH: moment,
				},
			});
			record.push(...blocksOf(block, { stdout, stderr }));
			expect(stdout).not.toBe('');
		});
	}

	it('have examples that send exactly the expected mails', async () => {
		await eventually(() => expect(mails).toHaveLength(10));
		const subjects = mails.map(({ raw }) => /^Subject: (.*)$/m.exec(raw.toString())?.[1]?.trim());
		expect(subjects.sort()).toEqual([
			'For Bergen',
			'For Oslo',
			'From afar',
			'News for Bergen',
			'News for Bergen',
			'News for Oslo',
			'News for Oslo',
			'News for Oslo',
			'Receipt',
			'Receipt 17',
		]);
	});

	it('have examples that print the recorded output', async () => {
		const settle = createSettler({ folder: home, smtp: `127.0.0.1:${sink.port}` });
		await expectGolden('readme.txt', settle(record.join('\n')));
	});

	it('contain no broken links, and link to every page of the docs', async () => {
		const found = await readdir(join(root, 'docs'), { recursive: true });
		const names = found.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`);
		const files = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...names];
		const missing: string[] = [];
		for (const file of files) {
			const links = (await readFile(join(root, file), 'utf8')).matchAll(/\]\((?!https?:)([^)#]+)\)/g);
			for (const [, link = ''] of links)
				if (!existsSync(join(root, dirname(file), link))) missing.push(`${file} → ${link}`);
		}
		expect(missing).toEqual([]);
		const index = await readFile(join(root, 'docs/decisions/README.md'), 'utf8');
		const isNamed = (name: string) =>
			text.includes(`](${name})`) || index.includes(`](${name.replace('docs/decisions/', '')})`);
		expect(names.filter((name) => !isNamed(name))).toEqual([]);
	});

	it('limit the README to 131 lines', () => {
		expect(text.split('\n').length).toBeLessThanOrEqual(131);
	});

	it('explain each exit code with the words of the help', async () => {
		const page = await readFile(join(root, 'docs/exit-codes.md'), 'utf8');
		const rows = [...page.matchAll(/^\| (\d+) \| (.*) \|$/gm)].map(([, code, meaning]) => [code, meaning]);
		expect(Object.fromEntries(rows)).toEqual(exitMeanings);
	});
});

/** A script prints this mark to both streams before the output of each line. */
const mark = '\x1e';

/** The server sends queued messages later. The script waits for them, so that the next line always prints the same. */
const untilSent = ['queued', 'leased']
	.map((state) => `while mailctl messages list --status ${state} --exit-empty; do :; done > /dev/null 2>&1`)
	.join('\n');

function announced(script: string): string {
	const lines = script.trimEnd().split('\n');
	return lines
		.map((line) => `printf '${mark}'; printf '${mark}' >&2\n${line}`)
		.map((line) => (line.includes('/message/send/') ? `${line}\n${untilSent}` : line))
		.join('\n');
}

function blocksOf(block: string, { stdout, stderr }: { stdout: string; stderr: string }): string[] {
	const [printed, said] = [stdout, stderr].map((text) => text.split(mark).slice(1));
	return block
		.trimEnd()
		.split('\n')
		.map((line, at) => blockOf(line, { code: 0, stdout: printed?.[at] ?? '', stderr: said?.[at] ?? '' }));
}
