// A database served for benches by the built program, in a folder that is removed afterwards.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/api/datetime.js';
import { type Keyring, keyringOf } from '../../src/delivery/tracking/tokens.js';
import type { Store } from '../../src/store/store.js';
import { freePort } from '../support/listen.js';
import { runProgram } from '../support/run-program.js';
import { program } from './bench.js';

export interface Place {
	folder: string;
	path: string;
	env: NodeJS.ProcessEnv;
	run(...words: string[]): void;
	remove(): void;
}

export function newPlace(): Place {
	if (!existsSync('dist')) throw new Error('dist/ is missing: npm run build');
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-bench-'));
	const path = join(folder, 'bench.db');
	const { PATH, NODE_OPTIONS } = process.env;
	const env = { PATH, NODE_OPTIONS, HOME: folder, MAILCTL_DB: path };
	const run = (...words: string[]) => {
		const { status, stderr } = runProgram(process.execPath, [program, ...words], { env });
		if (status !== 0) throw new Error(`mailctl ${words.join(' ')} ended with ${status}: ${stderr}`);
	};
	run('engine', 'init', '--sender', 'desk@example.org', '-q');
	run('lists', 'create', '--name', 'People', '--email-reason', 'asked', '-q');
	return { folder, path, env, run, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export function peopleFile(folder: string, name: string, count: number): string {
	const file = join(folder, `${name}.csv`);
	const number = (row: number) => (row * 7_919) % 10_000_019;
	const rows = Array.from({ length: count }, (_, row) => `${name}${number(row)}@example.org,Person ${row}`);
	writeFileSync(file, `email,name\n${rows.join('\n')}\n`);
	return file;
}

export interface Running {
	url: string;
	token: string;
	child: ChildProcess;
	stop(): Promise<void>;
}

export async function serve(place: Place, ...words: string[]): Promise<Running> {
	const port = await freePort();
	const child = spawn(process.execPath, [program, 'serve', '--port', String(port), '-q', ...words], {
		env: place.env,
		stdio: ['ignore', 'ignore', 'inherit'],
	});
	await listening(port);
	while (!existsSync(`${place.path}.token`)) await new Promise((resolve) => setTimeout(resolve, 20));
	const token = readFileSync(`${place.path}.token`, 'utf8').trim();
	return { url: `http://127.0.0.1:${port}`, token, child, stop: () => ended(child) };
}

/** Starts another Node process whose HTTP listener is the source text `answer`. */
export async function bareServer(answer: string): Promise<Omit<Running, 'token'>> {
	const port = await freePort();
	const text = `require('node:http').createServer(${answer}).listen(${port}, '127.0.0.1')`;
	const child = spawn(process.execPath, ['-e', text], { stdio: 'inherit' });
	await listening(port);
	return { url: `http://127.0.0.1:${port}`, child, stop: () => ended(child) };
}

export async function listening(port: number): Promise<void> {
	const until = performance.now() + 20_000;
	while (performance.now() < until) {
		const isOpen = await new Promise<boolean>((resolve) => {
			const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
			socket.on('close', () => undefined).unref();
			setTimeout(() => socket.destroy(), 50);
		});
		if (isOpen) return;
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
	throw new Error(`nothing listens on ${port}`);
}

async function ended(child: ChildProcess): Promise<void> {
	if (child.exitCode !== null) return;
	const exit = new Promise((resolve) => child.once('exit', resolve));
	child.kill('SIGTERM');
	await exit;
}

export async function trackingKeyring(store: Store): Promise<Keyring> {
	const now = systemClock.now();
	const fresh = { id: 1, secret: Buffer.alloc(32, 7).toString('base64url') };
	const keyring = keyringOf(
		await store.writes.ensureKey({ purpose: 'tracking', fresh, rotateAfter: now, now }),
	);
	if (keyring === null) throw new Error('no key');
	return keyring;
}
