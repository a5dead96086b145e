import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { expect, it, type TestContext } from 'vitest';
import { parseDateTime } from '../../src/api/datetime.js';
import { cli, programPath } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { listenOn } from '../support/listen.js';
import { runProgram } from '../support/run-program.js';
import { messageIdIn, startSmtpSink } from '../support/smtp-sink.js';

const library = ['x86_64', 'aarch64']
	.map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`)
	.find((path) => existsSync(path));
if (library === undefined)
	process.stderr.write('libfaketime is not here (Debian package faketime): no clock is set\n');

const minute = 60;
const hour = 3_600;
const steps: [string, number][] = [
	['10 minutes forward', 10 * minute],
	['10 minutes back', -10 * minute],
	['8 hours forward', 8 * hour],
	['8 hours back', -8 * hour],
	['a day forward', 24 * hour],
	['a day back', -24 * hour],
];
const atOnce = 300;

/** Creates a database with a sender, a mail server that needs 40 ms per message, and a webhook for hard bounces. */
async function workplace(onTestFinished: TestContext['onTestFinished']) {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-steps-'));
	const clock = join(folder, 'clock');
	const setClock = (seconds: number) => writeFileSync(clock, `${seconds < 0 ? '' : '+'}${seconds}\n`);
	setClock(0);
	const sink = await startSmtpSink({
		onRcptTo: ({ address }, _session, callback) => {
			const gone = Object.assign(new Error('5.1.1 no such user'), { responseCode: 550 });
			setTimeout(() => callback(address.startsWith('gone') ? gone : null), 40);
		},
	});
	const called: number[] = [];
	const target = createServer((request, response) => {
		called.push(Number(request.headers['webhook-timestamp']));
		request.resume().on('end', () => response.writeHead(204).end());
	});
	const targetPort = await listenOn(target);
	onTestFinished(async () => {
		target.closeAllConnections();
		target.close();
		await sink.close();
	});
	const db = join(folder, 'news.db');
	const env = { PATH: process.env['PATH'] ?? '', HOME: folder, TERM: 'dumb', MAILCTL_DB: db };
	const faked = {
		...env,
		LD_PRELOAD: library ?? '',
		FAKETIME_TIMESTAMP_FILE: clock,
		FAKETIME_NO_CACHE: '1',
		FAKETIME_DONT_FAKE_MONOTONIC: '1',
		DONT_FAKE_MONOTONIC: '1',
	};
	const run = (...words: string[]) => {
		const { status, stdout, stderr } = runProgram(process.execPath, [programPath, ...words], { env: faked });
		return { status, stdout, stderr };
	};
	const done = async (...words: string[]) =>
		expect(await cli(words, { env: { HOME: folder, MAILCTL_DB: db } })).toMatchObject({ code: 0 });
	await done('engine', 'init', '--sender', 'news@example.com', '--smtp', `smtp://127.0.0.1:${sink.port}`);
	await done('engine', 'settings', 'set', 'allow_private_webhooks', 'true');
	const url = `http://127.0.0.1:${targetPort}/`;
	await done('webhooks', 'create', '--url', url, '--type', 'HARDBOUNCED');
	const start = (...words: string[]) => {
		const child = spawn(process.execPath, [programPath, ...words], {
			env: faked,
			cwd: folder,
			stdio: ['ignore', 'pipe', 'pipe'],
		});
		onTestFinished(() => void child.kill('SIGKILL'));
		return heard(child);
	};
	return { db, sink, called, setClock, run, start };
}

function heard(child: ChildProcess) {
	const said = { stdout: '', stderr: '' };
	child.stdout?.on('data', (chunk) => {
		said.stdout += String(chunk);
	});
	child.stderr?.on('data', (chunk) => {
		said.stderr += String(chunk);
	});
	const stop = async () => {
		child.kill('SIGTERM');
		if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
		return child.exitCode;
	};
	return { said, stop };
}

function isWorking(path: string): boolean {
	const db = new Database(path, { readonly: true });
	const found = db.prepare("SELECT count(*) FROM processes WHERE role = 'worker'").pluck().get();
	db.close();
	return found === 1;
}

const seconds = (at: string) => (parseDateTime(at) ?? 0) / 1_000_000;

it.skipIf(library === undefined).concurrent.for(steps)(
	'if the clock is set %s, nothing is sent twice or delayed, and the step is reported',
	async ([, step], { onTestFinished }) => {
		const { db, sink, called, setClock, run, start } = await workplace(onTestFinished);
		const serve = start('serve', '--port', '0');
		await eventually(() => expect(serve.said.stderr).toMatch(/listening on http/));
		const baseUrl = /listening on (\S+)/.exec(serve.said.stderr)?.[1] ?? '';
		const token = readFileSync(`${db}.token`, 'utf8').trim();
		const lines = () =>
			serve.said.stdout
				.split('\n')
				.slice(0, -1)
				.map((line) => JSON.parse(line));
		const toldSteps = () =>
			lines().flatMap(({ event, seconds: by }) => (event === 'clock_step' ? [Math.round(by / minute)] : []));
		let sent = 0;
		const send = async (count: number, name = 'r') => {
			const to = Array.from({ length: count }, (_, at) => `${name}${sent + at}@example.net`);
			sent += count;
			const response = await fetch(`${baseUrl}/message/send/`, {
				method: 'POST',
				headers: { 'X-Secure-Token': token, 'Content-Type': 'application/json' },
				body: JSON.stringify({
					from: 'news@example.com',
					to,
					subject: 'Hi',
					text_body: 'Hello',
					type: 'TRANSACTIONAL',
				}),
			});
			expect(response.status, await response.clone().text()).toBe(200);
			return to;
		};
		await send(atOnce);
		await sink.until(20);
		setClock(step);
		// The worker starts with the new clock, and finds leases of a process that started with the old one.
		const worker = start('worker');
		await sink.until(60);
		await send(10);
		await eventually(async () => expect(await toldSteps()).toEqual([step / minute]));
		await eventually(() => expect(isWorking(db)).toBe(true));
		setClock(0);
		await send(10);
		await sink.until(atOnce + 20);
		await eventually(async () => expect(await toldSteps()).toEqual([step / minute, -step / minute]));
		setClock(step);
		await send(1);
		await sink.until(atOnce + 21);
		await send(1, 'gone');
		await eventually(() => expect(called).toHaveLength(1));
		expect(Math.abs((called[0] ?? 0) - (Date.now() / 1_000 + step))).toBeLessThan(5 * minute);
		// After this time, the worker would have sent a second copy.
		await delay(1_500);
		const arrived = sink.received.map(({ raw }) => messageIdIn(raw));
		expect(arrived).toHaveLength(atOnce + 21);
		expect(new Set(arrived).size).toBe(atOnce + 21);
		expect(toldSteps()).toEqual([step, -step, step].map((by) => by / minute));
		const answered = lines().findLast(({ path }) => path === '/message/send/');
		expect(Math.abs(seconds(answered.time) - (Date.now() / 1_000 + step))).toBeLessThan(5 * minute);
		await eventually(() => expect(worker.said.stderr).toMatch(/clock of this machine was set/));
		const doctor = JSON.parse(run('doctor', '--only', 'database', '-o', 'json').stdout);
		const { level, message } = doctor.find(({ check }: { check: string }) => check === 'database.clock');
		const [wanted, says] =
			step < 0
				? ['problem', 'but the newest record is from']
				: step > hour
					? ['warning', 'ahead of the last time that this database recorded']
					: ['ok', "this machine's clock shows"];
		expect({ level, message }).toEqual({ level: wanted, message: expect.stringContaining(says) });
		expect([await serve.stop(), await worker.stop()]).toEqual([0, 0]);
		expect(JSON.parse(run('engine', 'status', '-o', 'json').stdout).messages).toEqual({
			sent: atOnce + 21,
			bounced: 1,
		});
	},
);
