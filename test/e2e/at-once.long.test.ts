// Eight processes run the same command at once. They agree on the result, or name the process that works on it.
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli, startProgram } from '../support/cli.js';
import { ended } from '../support/fault-points.js';
import { startServer } from '../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

const eight = [1, 2, 3, 4, 5, 6, 7, 8];
const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
	for (const end of endings.splice(0).reverse()) await end();
});

let home: string;
beforeEach(async () => {
	home = await mkdtemp(join(tmpdir(), 'mailctl-at-once-'));
});

type Call = (...words: string[]) => Promise<{ code: number | null; stdout: string; stderr: string }>;

/** `call` starts a process for each call, and `here` runs in this process. */
interface Calls {
	call: Call;
	here: Call;
}

function callsWith(env: Readonly<Record<string, string>>): Calls {
	return {
		call: (...words) => ended(startProgram(['--no-input', ...words], env)),
		here: (...words) => cli(['--no-input', ...words], { env }),
	};
}

async function embedded(): Promise<Calls & { clients: Call; sink: SmtpSink; db: string }> {
	const sink = await startSmtpSink();
	endings.push(sink.close);
	const db = join(home, 'news.db');
	const { call, here } = callsWith({ HOME: home, MAILCTL_DB: db });
	await here('engine', 'init', '--sender', 'news@example.com', '--smtp', `smtp://127.0.0.1:${sink.port}`);
	await here('lists', 'create', '--name', 'Readers', '--email-reason', 'r');
	return { call, here, clients: call, sink, db };
}

async function served(): Promise<Calls & { clients: Call; sink: SmtpSink }> {
	const { db, sink } = await embedded();
	const server = await startServer(db);
	endings.push(server.stop);
	const env = { HOME: home, MAILCTL_BASE_URL: server.baseUrl, MAILCTL_TOKEN: server.token };
	const calls = callsWith(env);
	return { ...calls, clients: calls.here, sink };
}

const places = [
	['the embedded engine', embedded],
	['a mailctl server', served],
] as const;

async function json(call: Call, ...words: string[]): Promise<unknown> {
	const { code, stdout, stderr } = await call(...words, '-o', 'json');
	expect({ words, code, stderr }).toMatchObject({ code: 0 });
	return JSON.parse(stdout);
}

const busy = new RegExp(`process \\d+ on ${hostname()} is working on `);

describe.each(places)('eight concurrent processes that use %s', (_, start) => {
	it('import the same file, but only one process stores the rows', async () => {
		const { call, here } = await start();
		const path = join(home, 'people.csv');
		const rows = Array.from({ length: 18_000 }, (_, at) =>
			at % 40 === 0 ? `nobody ${at},N` : `p${at}@example.com,P${at}`,
		);
		await writeFile(path, `email,name\n${rows.join('\n')}\n`);
		// A process that starts after another has ended is refused too, because the named rejects file exists.
		const rejects = ['--rejects', `${path}.rejects.csv`];
		const words = ['subscribers', 'import', path, '-l', '1', '--batch-size', '500', ...rejects];
		const all = await Promise.all(eight.map(() => call(...words)));
		const done = all.filter(({ code }) => code === 9);
		expect(done, JSON.stringify(all)).toHaveLength(1);
		for (const { code, stderr } of all.filter((one) => one !== done[0])) {
			expect(code, stderr).toBe(2);
			expect(stderr).toMatch(/is working on|the rejects file .* exists already/);
		}
		expect(all.some(({ stderr }) => busy.test(stderr))).toBe(true);
		expect(await json(here, 'lists', 'get', '1')).toMatchObject({ overall_subscribers_count: 17_550 });
		expect((await readFile(`${path}.rejects.csv`, 'utf8')).trim().split('\n')).toHaveLength(1 + 450);
	});

	it('send the same campaign, and each recipient gets one mail', async () => {
		const { call, here, sink } = await start();
		const path = join(home, 'people.csv');
		const rows = Array.from({ length: 400 }, (_, at) => `p${at}@example.com,P${at}`);
		await writeFile(path, `email,name\n${rows.join('\n')}\n`);
		const mail = ['--from', 'news@example.com', '--subject', 'Hi #name#', '--text', 'Hello'];
		const words = ['send', ...mail, '--csv', path, '--campaign', 'j', '--yes', '--expect-count', '400'];
		const all = await Promise.all(eight.map(() => call(...words)));
		for (const { code, stderr } of all) {
			expect([0, 2], stderr).toContain(code);
			if (code === 2) expect(stderr).toMatch(busy);
		}
		expect(all.map(({ code }) => code)).toContain(0);
		expect(await json(here, 'campaigns', 'resume', 'j')).toMatchObject({ recipients: 400 });
		const to = sink.received.flatMap((one) => one.to);
		expect([to.length, new Set(to).size]).toEqual([400, 400]);
	});

	it.each([
		'skip',
		'update',
	])('create the same subscriber with --if-exists %s, and all succeed', async (mode) => {
		const { clients, here } = await start();
		for (const round of [1, 2, 3]) {
			const words = ['subscribers', 'create', '-l', '1', '--email', `ann${round}@example.com`];
			const all = await Promise.all(
				eight.map((at) => clients(...words, '--name', `N${at}`, '--if-exists', mode)),
			);
			expect(all.map(({ code, stderr }) => [code, stderr.replace(/^.*plain http.*\n/m, '')])).toEqual(
				eight.map(() => [0, '']),
			);
		}
		expect(await json(here, 'lists', 'get', '1')).toMatchObject({ overall_subscribers_count: 3 });
	});
});
