import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import PostalMime from 'postal-mime';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { moment, runCall } from '../support/golden/program.js';
import { expectGolden } from '../support/golden/record.js';
import { createSettler } from '../support/golden/settled.js';
import { type WireRequest, wireRequests } from '../support/golden/wire-requests.js';
import { serveDatabase } from '../support/serving.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

type Server = Awaited<ReturnType<typeof serveDatabase>>;
let folder: string;
let sink: SmtpSink;
let server: Server;
const env = { TERM: 'dumb', SOURCE_DATE_EPOCH: moment };

beforeAll(async () => {
	folder = await mkdtemp('/tmp/mailctl-golden-');
	sink = await startSmtpSink();
	const smtp = `smtp://127.0.0.1:${sink.port}`;
	await run('engine', 'init', '--sender', 'news@example.com', '--smtp', smtp);
	for (const name of ['People', 'Gone'])
		await run('lists', 'create', '--name', name, '--email-reason', 'You signed up');
	await run('subscribers', 'create', '-l', '1', '--email', 'ann@example.com', '--name', 'Ann');
	server = await serveDatabase(join(folder, 'news.db'), { env });
});
afterAll(async () => {
	await server.stop();
	await sink.close();
	await rm(folder, { recursive: true });
});

it('the server’s HTTP answers match the golden', async () => {
	const send = (await run('engine', 'tokens', 'create', '--name', 'send', '--scope', 'send', '-q')).trim();
	const tokens = { admin: server.token, send, wrong: 'wrong' };
	const places = await placesOfAMail();
	const settle = createSettler({ deployment: new URL(server.url).host });
	const record: string[] = [];
	const ask = askAt(server);
	for (const request of wireRequests) {
		const line = request.line.replace(/\{(\w+)\}/, (_, name: string) => places[name] ?? '');
		const { token = 'admin', headers = [], body = '' } = request;
		const head = [
			`${line} HTTP/1.1`,
			`Host: ${new URL(server.url).host}`,
			'Connection: close',
			...(token === null ? [] : [`X-Secure-Token: ${tokens[token]}`]),
			...headers,
			...(body === '' || headers.some((one) => one.startsWith('Transfer-Encoding'))
				? []
				: [`Content-Length: ${Buffer.byteLength(body)}`]),
		];
		const answer = await ask(`${head.join('\r\n')}\r\n\r\n${body}`);
		record.push(settle(blockOf(request, answer)));
	}
	record.push(settle(await throttled()));
	await expectGolden('wire.txt', record.join('\n'));
});

it('the OpenAPI document matches the golden', async () => {
	const answer = await server.fetch('/openapi.json', { token: null });
	const document: { info: { version: string } } = JSON.parse(await answer.text());
	document.info.version = '<version>';
	await expectGolden('openapi.json', `${JSON.stringify(document, null, '\t')}\n`);
});

async function run(...argv: string[]): Promise<string> {
	const words = ['--db', join(folder, 'news.db'), ...argv];
	const { code, stdout, stderr } = await runCall({ argv: words, env: { ...env, HOME: folder } });
	expect({ argv, code, stderr: code === 0 ? '' : stderr }).toEqual({ argv, code: 0, stderr: '' });
	return stdout;
}

async function placesOfAMail(): Promise<Record<string, string>> {
	const html =
		'<p>Hi #name#</p><a href="https://example.com/?n=#name#">x</a> <a href="#view_url#">v</a> <a href="#unsubscribe_url#">u</a>';
	const token = join(folder, 'news.db.token');
	await runCall({
		argv: [
			...['--base-url', server.url, '--token-file', token, 'send', '--from', 'news@example.com'],
			...['--list', '1', '--subject', 'News', '--html', html, '--yes', '--expect-count', '1'],
		],
		env: { ...env, HOME: folder },
	});
	await sink.until(1);
	const mail = await PostalMime.parse(sink.received[0]?.raw ?? '');
	const place = (kind: string) =>
		new RegExp(`"${server.url}(/${kind}/[^"]*)"`).exec(mail.html ?? '')?.[1] ?? '';
	return { open: place('o'), click: place('c'), view: place('v'), leave: place('u') };
}

async function throttled(): Promise<string> {
	await run('engine', 'settings', 'set', 'requests_per_second', '1');
	const slow = await serveDatabase(join(folder, 'news.db'), { env });
	try {
		const ask = askAt(slow);
		const head = ['GET /sub/lists/ HTTP/1.1', `Host: ${new URL(slow.url).host}`, 'Connection: close'];
		const request = `${[...head, `X-Secure-Token: ${server.token}`].join('\r\n')}\r\n\r\n`;
		for (;;) {
			const answer = await ask(request);
			if (!answer.startsWith('HTTP/1.1 200')) return blockOf({ line: 'GET /sub/lists/' }, answer);
		}
	} finally {
		await slow.stop();
	}
}

/** Returns a function that sends a request and returns all bytes until the server closes. */
function askAt({ url }: Pick<Server, 'url'>): (request: string) => Promise<string> {
	return (request) =>
		new Promise((resolve, reject) => {
			const chunks: Buffer[] = [];
			const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(request));
			socket.on('data', (chunk: Buffer) => chunks.push(chunk));
			socket.on('error', reject);
			socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
		});
}

/** Formats `>` the request without headers that all requests share, `<` the head of the answer, `|` its body. */
function blockOf(request: WireRequest, answer: string): string {
	const end = answer.indexOf('\r\n\r\n');
	const head = end === -1 ? answer : answer.slice(0, end);
	const body = end === -1 ? '' : Buffer.from(answer.slice(end + 4), 'latin1').toString('utf8');
	const { token = 'admin', headers = [] } = request;
	return `${[
		`> ${shortened(request.line)}`,
		`> ${token === null ? 'no token' : `token: ${token}`}`,
		...headers.map((one) => `> ${shortened(one)}`),
		...(request.body === undefined ? [] : [`> ${JSON.stringify(request.body)}`]),
		...head
			.split('\r\n')
			.map(
				(line) => `< ${request.show === 'names' ? line.replace(/^(Content-Length): \d+/, '$1: <n>') : line}`,
			),
		...shown(body, request.show).map((line) => `| ${line}`.trimEnd()),
	].join('\n')}\n`;
}

function shown(body: string, show: WireRequest['show']): string[] {
	if (body === '' || show === 'head') return [];
	if (body.startsWith('GIF')) return [`a picture of ${body.length} characters`];
	const lines = body
		.replace(/\n$/, '')
		.replace(/<style>.*<\/style>/s, styleOnce)
		.split('\n');
	if (show !== 'names') return lines;
	return [...new Set(lines.map((line) => (line.startsWith('#') ? line : (/^\w+/.exec(line)?.[0] ?? ''))))];
}

const styles = new Set<string>();

/** All pages share a long style sheet, so only its first occurrence is recorded. */
function styleOnce(style: string): string {
	if (styles.has(style)) return '<style> as before </style>';
	styles.add(style);
	return style;
}

function shortened(text: string): string {
	return text.length <= 200 ? text : `${text.slice(0, 40)}… (${text.length} characters)`;
}
