// The same command lines on an embedded database and on a server over an identical one: the same output, byte for byte.
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliOptions, type CliResult, cli } from '../support/cli.js';
import { allCommands } from '../support/command-tree.js';
import { type RunningServer, startServer } from '../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';
import { exempt, type Line, script } from './parity.script.js';

/** One way to the engine, and a folder of its own. */
interface Side {
	folder: string;
	/** The flags that name the database or the server; hints repeat them. */
	target: readonly string[];
	run(argv: Line, options?: CliOptions): Promise<CliResult>;
	/** Lines of the server's log about failures of its own: more than the client was told. */
	failures(): string[];
	close(): Promise<void>;
}

let sink: SmtpSink;
let hook: { url: string; close(): void };

beforeAll(async () => {
	sink = await startSmtpSink({
		onRcptTo: ({ address }, _session, callback) => {
			const refusal = Object.assign(new Error('5.1.1 no such user'), { responseCode: 550 });
			callback(address.startsWith('refused@') ? refusal : null);
		},
	});
	hook = await startHook();
});
afterAll(async () => {
	hook.close();
	await sink.close();
});

describe('on a database and on a server over one', () => {
	it('every command is tried, or exempt for a reason', async () => {
		const paths = (await allCommands()).map(({ path }) => path);
		const tried = new Set(script.map((line) => paths.filter((path) => startsWith(line, path)).at(-1)));
		expect(paths.filter((path) => !tried.has(path) && exempt[path] === undefined)).toEqual([]);
		expect(Object.keys(exempt).filter((path) => !paths.includes(path) || tried.has(path))).toEqual([]);
	});

	it.each([
		['tsv', {}],
		['json', {}],
		['table', { columns: 100 }],
	] as const)('all commands print the same, as %s', async (format, options) => {
		const local = await localSide();
		const remote = await remoteSide();
		try {
			const here: object[] = [];
			const there: object[] = [];
			for (const line of script) {
				here.push(await shown(local, [...line, '-o', format], options));
				there.push(await shown(remote, [...line, '-o', format], options));
			}
			expect(remote.failures()).toEqual([]);
			expect(there).toEqual(here);
		} finally {
			await Promise.all([local.close(), remote.close()]);
		}
	});
});

/** What must be equal: the line itself, so that a difference names it, the exit code, standard output, the failure. */
async function shown(side: Side, line: Line, options: CliOptions) {
	const { code, stdout, stderr } = await side.run(await filled(side, line), options);
	return {
		line: line.join(' '),
		code,
		stdout: settled(stdout, side),
		error: settled(failureOf(stderr), side),
	};
}

/** The error without progress, notes and hints; as JSON without `http`, which only a deployment has. */
function failureOf(stderr: string): string {
	const text = /^\S*error:.*$/m.exec(stderr)?.[0];
	const json = /^\{"error":.*\}$/m.exec(stderr)?.[0];
	if (json === undefined) return text ?? '';
	return JSON.stringify(JSON.parse(json), (key, value: unknown) => (key === 'http' ? undefined : value));
}

/**
 * Replaces what two runs cannot have in common, and nothing else: ids that are made at random, moments, durations,
 * the port that a server happened to get, the folder of a side, the target in hints. Widths stay as they are, so tables must still line up.
 */
function settled(text: string, { folder, target }: Side): string {
	return (
		text
			.replace(/"raw_base64": ?"([^"]*)"/g, (_, raw: string) => Buffer.from(raw, 'base64').toString('latin1'))
			.replaceAll(`mailctl ${target.join(' ')} `, 'mailctl {target} ')
			// A hint on a database of this machine alone: a server has workers of its own.
			.replace(/"notifications are sent while [^;"]* on this database(?:; (?=[^"])|(?="))/g, '"')
			.replace(/("hint":)""/g, '$1null')
			.replaceAll(folder, '{folder}')
			// Signed where the keys are; filled in by the deployment elsewhere.
			.replace(/List-Unsubscribe: <[^<>]*>/g, 'List-Unsubscribe: <{link}>')
			// The duration of a webhook's test, the last of its columns.
			.replace(/^((?:true|false)\t\d*\t[^\t\n]*\t)\d+$/gm, '$1{ms}')
			.replace(/(?!11111111-)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '{uuid}')
			.replace(/whsec_[A-Za-z0-9+/]{43}=/g, 'whsec_{secret}')
			// The name of a job that was given none.
			.replace(/\bsend-[0-9a-f]{12}\b/g, 'send-{job}')
			// How long ago something was, and the room that its column takes.
			.replace(/\b(?:now|\d+ (?:s|min) ago|in \d+ (?:s|min)|START|CREATED|DUE)\b */g, '{ago} ')
			// The same column in the bold of a terminal.
			.replace(/(?<=\x1b\[1m)(?:START|CREATED|DUE) */g, '{ago}')
			.replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?/g, '{time}')
			.replace(/[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, '{date}')
			.replace(/("duration_ms": ?)\d+/g, '$1{ms}')
			.replace(/\b\d+ ms\b/g, '{ms} ms')
			.replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:{port}')
			// What `api --include` shows of the socket: an embedded database has none.
			.replace(/^(?:content-length|x-request-id|date|connection|keep-alive): .*\r?\n/gm, '')
	);
}

/** `{name}` in a line, as this side has it. */
async function filled(side: Side, line: Line): Promise<string[]> {
	const argv: string[] = [];
	for (const word of line) {
		const name = /^\{(\w+)\}$/.exec(word)?.[1];
		argv.push(name === undefined ? word : await fill(side, name));
	}
	return argv;
}

async function fill(side: Side, name: string): Promise<string> {
	const ask = async (...argv: string[]) => {
		const { stdout } = await side.run([...argv, '-o', 'json']);
		return JSON.parse(stdout) as Record<string, unknown>[]; // the commands asked print arrays
	};
	if (name === 'hook') return hook.url;
	if (name === 'active')
		return String((await ask('subscribers', 'list', '-l', '1', '--active', '--all')).length);
	if (name === 'message')
		return String((await ask('messages', 'list', '--to', 'zoe@example.com'))[0]?.['id']);
	return join(side.folder, name);
}

async function makeFolder(): Promise<string> {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-parity-'));
	const rows = Array.from(
		{ length: 250 },
		(_, at) => `p${at}@example.com,P${at},${at % 3 ? 'Oslo' : 'Rome'}`,
	);
	const files: Record<string, string> = {
		people: ['email,name,city', ...rows, 'nobody,N,', 'P3@example.com,Twice,', 'a,b,c,d', ''].join('\n'),
		password: 'secret\n',
		suppressed:
			'email,reason,date_created\na@example.com,Hard-bounced,2025-01-01T00:00:00\nb@example.com,,\nB@example.com,,\nnobody,,\n',
		requests: [
			{
				from: 'news@example.com',
				to: ['zoe@example.com'],
				subject: 'One',
				text_body: 'Hi #x#',
				context: { x: '1' },
			},
			{ from: 'news@example.com', to: ['p1@example.com'], subject: 'Two', html_body: '<p>Hi</p>', tag: 't' },
		]
			.map((request) => `${JSON.stringify(request)}\n`)
			.join(''),
		html: '<p style="color: red">Welcome, #name# of <a href="https://example.com/#city#">#city#</a></p>',
		text: 'Welcome, #name#',
	};
	for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
	const init = ['engine', 'init', '--sender', 'news@example.com', '--smtp', `smtp://127.0.0.1:${sink.port}`];
	const env = { HOME: folder, MAILCTL_DB: join(folder, 'news.db') };
	for (const argv of [
		[...init, '--public-url', 'https://mail.example.com'],
		['engine', 'settings', 'set', 'allow_private_webhooks', 'true'],
	]) {
		const { code, stderr } = await cli(argv, { env });
		if (code !== 0) throw new Error(stderr);
	}
	return folder;
}

async function localSide(): Promise<Side> {
	const folder = await makeFolder();
	const target = ['--db', join(folder, 'news.db')];
	return {
		folder,
		target,
		run: (argv, options) => cli([...target, '--no-input', ...argv], { ...options, env: { HOME: folder } }),
		failures: () => [],
		close: async () => {},
	};
}

async function remoteSide(): Promise<Side> {
	const folder = await makeFolder();
	const server: RunningServer = await startServer(join(folder, 'news.db'));
	const target = ['--base-url', server.baseUrl, '--token-file', server.tokenFile];
	return {
		folder,
		target,
		run: (argv, options) => cli([...target, '--no-input', ...argv], { ...options, env: { HOME: folder } }),
		failures: () => server.log().match(/^.*"status":5\d\d.*$/gm) ?? [],
		close: async () => {
			expect(await server.stop()).toBe(0);
		},
	};
}

/** A target of webhooks that likes everything. */
async function startHook(): Promise<{ url: string; close(): void }> {
	const server = createServer((request, response) => {
		request.resume();
		request.on('end', () => response.end('ok'));
	});
	await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
	const address = server.address();
	if (address === null || typeof address === 'string') throw new Error('the hook has no port');
	return { url: `http://127.0.0.1:${address.port}/in`, close: () => server.close() };
}

function startsWith(line: Line, path: string): boolean {
	return path.split(' ').every((word, at) => line[at] === word);
}
