import { once } from 'node:events';
import { codeOf } from '../../api/errors.js';
import { command } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { LocalEngine, RunningServer } from '../frame/connection.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, UsageError } from '../frame/errors.js';
import { exits } from '../frame/exit.js';
import type { OutStream } from '../frame/io.js';
import { given, parseRate } from '../frame/values.js';
import { cannotListen, portOption } from '../verbs/inbox.js';
import { workOptions } from './worker.js';

const serve = command({
	name: 'serve',
	summary: 'serve the API, and send due messages',
	description:
		'Also serves tracking pixels, links and unsubscribe pages. API requests need a token: the first start ' +
		'writes one to a file, and `engine tokens create` creates more. Logs a line of JSON for each request. On Ctrl-C or ' +
		'SIGTERM, the server finishes its work within 10 s.',
	options: {
		host: { kind: 'text', default: '127.0.0.1', summary: 'listen on this address (0.0.0.0 for all)' },
		port: { ...portOption, default: 8080, summary: 'listen on this port (0 for a free one)' },
		tlsCert: { kind: 'file', summary: 'use this certificate with its chain (PEM)' },
		tlsKey: { kind: 'file', summary: 'use this private key (PEM)' },
		worker: { kind: 'tri', summary: 'send due messages (default), or leave that to `worker`' },
		bounceSmtp: {
			kind: 'text',
			placeholder: 'HOST:PORT',
			summary: 'accept bounces by SMTP on this address, for the domain of bounce_address',
		},
		trustProxy: { kind: 'flag', summary: 'take the client address from a proxy (X-Forwarded-For)' },
		...workOptions,
	},
	writes: true,
	role: ({ worker }) => (worker === false ? 'serve --no-worker' : 'serve'),
	exits: [74],
	examples: [
		'mailctl serve --port 8080',
		'mailctl serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem',
		'mailctl serve --port 8080 --bounce-smtp 127.0.0.1:2526',
	],
	run: async (cx, { options }) => {
		const { tlsCert, tlsKey } = options;
		if ((tlsCert === undefined) !== (tlsKey === undefined))
			throw new UsageError('--tls-cert and --tls-key need each other');
		const tls = tlsCert && tlsKey ? { cert: await tlsCert.text(), key: await tlsKey.text() } : null;
		const bounceSmtp = parseHostPort(options.bounceSmtp);
		const { rate, connections } = options;
		const sending = given({ rate: rate === undefined ? rate : parseRate(rate), connections });
		const engine = await cx.local();
		// The bounce server accepts mail only for the domain of this address.
		if (bounceSmtp !== null && (await engine.settings.get())['bounce_address'] === undefined)
			throw new UsageError('--bounce-smtp needs the setting bounce_address', {
				hint: mailctl('engine', 'settings', 'set', 'bounce_address', 'ADDRESS'),
			});
		const { host, port, trustProxy } = options;
		const address = { host, port };
		if (cx.dryRun) return cx.wouldDo(`listen on ${host}:${port}`, { serve: engine.path, with: address });
		const how = { ...address, tls, bounceSmtp, trustProxy, log: logTo(cx) };
		const server = await engine
			.serve({ ...how, sending: options.worker === false ? null : sending })
			.catch((error: unknown) => Promise.reject(cannotServe(error, address)));
		await warnOfSilence(cx, engine);
		await greet(cx, server);
		const stopped = cx.signal.aborted ? null : once(cx.signal, 'abort').then(() => null);
		const failure = await Promise.race([stopped, server.failed]);
		await server.close();
		if (failure !== null) throw failure;
		return exits.done;
	},
});

function parseHostPort(text: string | undefined): { host: string; port: number } | null {
	if (text === undefined) return null;
	const [, inBrackets, plain, digits] = /^(?:\[([\da-f:]+)\]|([^\s:[\]]+)):(\d{1,5})$/i.exec(text) ?? [];
	const host = inBrackets ?? plain;
	const port = Number(digits);
	if (host !== undefined && port <= 65_535) return { host, port };
	const hint = '--bounce-smtp 127.0.0.1:2526';
	throw new UsageError(`--bounce-smtp: "${text}" is not HOST:PORT`, { hint });
}

async function warnOfSilence(cx: CommandContext, { settings }: LocalEngine): Promise<void> {
	if ((await settings.get())['smtp_url'] === undefined)
		return cx.warn('no mail server is configured, so messages wait', mailctl('engine', 'init'));
	const { senders } = await cx.api();
	const { count } = await senders.page({ page_size: 1 }, { signal: cx.signal });
	if (count === 0)
		await cx.warn('no messages are accepted until you add a sender', mailctl('senders', 'add', 'ADDRESS'));
}

async function greet(cx: CommandContext, server: RunningServer): Promise<void> {
	const { newTokenFile, url, publicUrl } = server;
	if (newTokenFile !== null) {
		await cx.note(`wrote an API token with all rights to ${newTokenFile}`);
		await cx.hint(mailctl('login', url, '--token-file', newTokenFile));
	}
	const set = mailctl('engine', 'settings', 'set', 'public_url', 'https://mail.example.com');
	if (publicUrl === null)
		await cx.warn(`links in mails point to ${url}: set a URL that recipients can reach`, set);
	if (server.bounceSmtp !== null) await cx.note(`accepting bounces at ${server.bounceSmtp}`);
	await cx.note(`listening on ${url}`);
}

/** The most log text in memory while nobody reads stdout. Further lines are dropped, and their number is logged. */
const mostWaitingBytes = 1024 * 1024;
/** A failing disk fails each request, so limit errors on stderr to one line a second. */
const sayEveryMs = 1_000;

function logTo({ io, quiet, warn }: CommandContext): (line: object) => void {
	const write = quiet ? () => {} : lineWriter(io.stdout);
	let saidAt = Number.NEGATIVE_INFINITY;
	return (line) => {
		if ('event' in line && performance.now() - saidAt > sayEveryMs) {
			saidAt = performance.now();
			void warn(sentenceOf(line));
		}
		write(line);
	};
}

/** Joins the lines of one turn of the event loop, because one large write costs as much as one small write. */
function lineWriter(stdout: OutStream): (line: object) => void {
	let waiting = '';
	let lost = 0;
	const flush = () => {
		stdout.write(waiting).catch(() => undefined);
		waiting = '';
	};
	return (line) => {
		if (stdout.raw.writableLength + waiting.length > mostWaitingBytes) {
			lost += 1;
			return;
		}
		if (waiting === '') setImmediate(flush);
		waiting += `${JSON.stringify(lost === 0 ? line : { ...line, lost_lines: lost })}\n`;
		lost = 0;
	};
}

/** Formats a log line for the operator on stderr: `sending paused: connect: no answer`. */
function sentenceOf(line: { event: unknown; reason?: unknown; error?: unknown }): string {
	const why = line.reason ?? line.error;
	return `${String(line.event).replaceAll('_', ' ')}${why === undefined ? '' : `: ${String(why)}`}`;
}

function cannotServe(error: unknown, address: { host: string; port: number }): unknown {
	const code = codeOf(error);
	if (code.startsWith('ERR_OSSL') || code.startsWith('ERR_TLS'))
		return new CliError('tls', exits.usage, '--tls-cert and --tls-key: OpenSSL refuses them', {
			cause: error,
		});
	return cannotListen(error, address);
}

export { serve as command };
