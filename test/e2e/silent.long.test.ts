import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cli, isBuilt, startProgram } from '../support/cli.js';
import { listenOn } from '../support/listen.js';
import { copyOf, onceFor } from '../support/model.js';

type Words = readonly string[];

const ends = ['timeout', 'deadline', 'SIGTERM'] as const;
const codes = { timeout: 6, deadline: 12, SIGTERM: 143 } as const;

const mail = ['--from', 'news@example.com', '--subject', 'S', '--text', 'T'];
const ann = 'ann@example.com';
const agreed = ['--yes', '--expect-count', '1'];

/** One command for each way to wait for a service: one page, all pages, import, export, apply, checks, raw calls. */
const remote: readonly Words[] = [
	['lists', 'list'],
	['subscribers', 'find', ann],
	['subscribers', 'import', 'people.csv', '-l', '1'],
	['subscribers', 'export', '-l', '1'],
	['send', ...mail, '--to', ann],
	['smoke'],
	['apply', '-f', 'mail.yaml'],
	['doctor', '--skip', 'dns'],
	['api', 'GET', '/sub/lists/'],
	['login', '--token-file', 'token', '--profile', 'far'],
];

/** Starts a listener that accepts connections and never answers. */
async function startSilence(): Promise<{ port: number; reached: Promise<void>; close(): void }> {
	const sockets = new Set<Socket>();
	let reach = () => {};
	const reached = new Promise<void>((resolve) => {
		reach = resolve;
	});
	const server = createServer((socket) => {
		sockets.add(socket.on('error', () => {}).resume());
		reach();
	});
	const port = await listenOn(server);
	const close = () => {
		server.close();
		for (const socket of sockets) socket.destroy();
	};
	return { port, reached, close };
}

interface Ended {
	/** Null if a signal ended it. */
	code: number | null;
	reached: boolean;
	/** True if it ended within eight seconds. Only work in flight may take nine seconds after a signal. */
	isPrompt: boolean;
	stderr: string;
}

/** Kills a command that does not end by itself. */
const patienceMs = 60_000;
const promptMs = 8_000;

/**
 * Tries again with a longer deadline if the machine is busy. The last one exceeds the five seconds that `doctor` waits
 * for a service.
 */
async function endingOf(run: (deadlineMs: number) => Promise<Ended>): Promise<Ended> {
	for (const deadlineMs of [1_000, 4_500]) {
		const ended = await run(deadlineMs);
		if (ended.reached && ended.isPrompt) return ended;
	}
	return run(9_000);
}

async function endingAt(
	end: keyof typeof codes,
	words: Words,
	{
		port,
		reached: silence,
		cwd,
		deadlineMs,
	}: { port: number; reached: Promise<void>; cwd: string; deadlineMs: number },
): Promise<Ended> {
	const limits = {
		timeout: ['--timeout', `${0.2 * deadlineMs}ms`],
		deadline: ['--deadline', `${deadlineMs}ms`],
		SIGTERM: [],
	};
	let overAt = performance.now() + (end === 'deadline' ? deadlineMs : 0);
	const child = startProgram([...limits[end], ...words], { HOME: cwd, MAILCTL_TOKEN: 't', CI: '1' }, cwd);
	let stderr = '';
	child.stderr.on('data', (chunk) => {
		stderr += String(chunk);
	});
	child.stdout.resume();
	let reached = false;
	// A try may end before it reaches the silent server.
	void silence.then(
		() => {
			reached = true;
			overAt = Math.max(overAt, performance.now());
			if (end === 'SIGTERM') setTimeout(() => child.kill('SIGTERM'), 100);
		},
		() => undefined,
	);
	const overdue = setTimeout(() => child.kill('SIGKILL'), patienceMs);
	const [code] = await once(child, 'close');
	clearTimeout(overdue);
	const isPrompt = performance.now() - overAt < promptMs;
	return { code, reached, isPrompt, stderr: stderr.replaceAll(String(port), 'PORT') };
}

function place(): string {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-silent-'));
	writeFileSync(join(folder, 'mail.yaml'), 'lists: [{name: New, email_reason: r}]\n');
	writeFileSync(join(folder, 'people.csv'), `email\n${ann}\n`);
	writeFileSync(join(folder, 'token'), 'a-token\n');
	return folder;
}

describe.skipIf(!isBuilt)('with a service that never answers', () => {
	const cases = remote.flatMap((words) => ends.map((end) => ({ line: words.join(' '), words, end })));
	it.concurrent.each(cases)('mailctl $line ends promptly on $end', async ({ words, end }) => {
		const ended = await endingAgainst(words, end);
		expect(ended).toMatchObject({ reached: true, isPrompt: true, code: codeAt(end, words) });
	});
});

function endingAgainst(words: Words, end: keyof typeof codes): Promise<Ended> {
	return endingOf(async (deadlineMs) => {
		const { port, reached, close } = await startSilence();
		const retries = end === 'timeout' ? ['--retries', '0'] : [];
		const target = ['--base-url', `http://127.0.0.1:${port}`, ...retries];
		const ended = await endingAt(end, [...target, ...words], { port, reached, cwd: place(), deadlineMs });
		close();
		return ended;
	});
}

function codeAt(end: keyof typeof codes, [command]: Words): number {
	return end === 'timeout' && command === 'doctor' ? 11 : codes[end];
}

const sending: readonly { words: Words; codes: { timeout?: number; deadline: number; SIGTERM: number } }[] = [
	{ words: ['engine', 'smtp-test'], codes: { timeout: 6, deadline: 12, SIGTERM: 143 } },
	{ words: ['send', ...mail, '--to', ann], codes: { deadline: 12, SIGTERM: 143 } },
	{ words: ['send', ...mail, '--list', '1', ...agreed], codes: { deadline: 12, SIGTERM: 143 } },
	{ words: ['worker'], codes: { deadline: 0, SIGTERM: 0 } },
	{ words: ['worker', '--drain'], codes: { deadline: 12, SIGTERM: 0 } },
	{ words: ['serve', '--port', '0'], codes: { deadline: 0, SIGTERM: 0 } },
	{ words: ['doctor', '--skip', 'dns'], codes: { timeout: 11, deadline: 12, SIGTERM: 143 } },
];

describe.skipIf(!isBuilt)('with a mail server that never answers', () => {
	const cases = sending.flatMap(({ words, codes }) =>
		ends.flatMap((end) => {
			const code = codes[end];
			return code === undefined ? [] : [{ line: words.join(' '), words, end, code }];
		}),
	);

	it.concurrent.each(cases)('mailctl $line ends promptly with $code on $end (case %#)', async ({
		words,
		end,
		code,
	}) => {
		const ended = await endingOf(async (deadlineMs) => {
			const { port, reached, close } = await startSilence();
			const cwd = await placeWithQueue(port);
			const all = ['--db', join(cwd, 'news.db'), ...words];
			const ended = await endingAt(end, all, { port, reached, cwd, deadlineMs });
			close();
			return ended;
		});
		expect(ended).toMatchObject({ reached: true, isPrompt: true, code });
	});
});

async function placeWithQueue(port: number): Promise<string> {
	const folder = copyOf(await queued());
	await made(folder, 'engine', 'settings', 'set', 'smtp_url', `smtp://127.0.0.1:${port}`);
	return folder;
}

const queued = onceFor(async () => {
	const folder = place();
	await made(folder, 'engine', 'init', '--sender', 'news@example.com', '--smtp', 'smtp://127.0.0.1:9');
	await made(folder, 'lists', 'create', '--name', 'N', '--email-reason', 'r');
	await made(folder, 'subscribers', 'create', '-l', '1', '--email', ann);
	await made(folder, 'send', ...mail, '--to', 'bob@example.com', '--no-wait');
	return folder;
});

async function made(folder: string, ...argv: string[]): Promise<void> {
	const env = { HOME: folder };
	expect(await cli(['--db', join(folder, 'news.db'), ...argv], { env })).toMatchObject({ code: 0 });
}
