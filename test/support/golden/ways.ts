/** Three ways to run the same commands: on a local database, on a mailctl server, and on another service. */
import { chmod, cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { startDjango } from '../drf.js';
import { serveDatabase } from '../serving.js';
import type { SmtpSink } from '../smtp-sink.js';
import { startFarEnds } from './far-ends.js';
import { moment, type Outcome, runCall } from './program.js';
import { blockOf } from './record.js';
import { readScript, type ScriptCall, type ScriptLine, type WayName } from './script.js';
import { createSettler } from './settled.js';

interface Target {
	words: readonly string[];
	env: Readonly<Record<string, string>>;
	names: Readonly<Record<string, string>>;
	rest(): Promise<void>;
	close(): Promise<void>;
}

const files = join(import.meta.dirname, '../../goldens/files');
const env = { TERM: 'xterm', LANG: 'C.UTF-8', SOURCE_DATE_EPOCH: moment };

export async function recordWay(name: WayName): Promise<string> {
	const folder = await mkdtemp('/tmp/mailctl-golden-');
	const before = process.cwd();
	process.chdir(folder);
	await cp(files, folder, { recursive: true });
	await chmod('mailctl.key', 0o644);
	const ends = await startFarEnds();
	const target = await openers[name](ends.values['smtp'] ?? '');
	const settle = createSettler({ folder, ...ends.names, ...target.names });
	const values: Record<string, string> = { ...ends.values, folder };
	const mails = mailsOf(ends.sink);
	const record: string[] = [];
	try {
		for (const line of readScript()) {
			if (line.kind === 'heading') record.push(`${line.text}\n`);
			else if (line.ways.includes(name)) {
				const outcome = await runLine(line, { values, target, mails });
				if (line.kind === 'call' && line.keepAs !== null)
					values[line.keepAs] = /\S*/.exec(outcome.stdout)?.[0] ?? '';
				record.push(settle(blockOf(line.line, outcome)));
				await target.rest();
			}
		}
		return record.join('\n');
	} finally {
		await target.close();
		await ends.close();
		process.chdir(before);
		await rm(folder, { recursive: true });
	}
}

interface Scene {
	values: Readonly<Record<string, string>>;
	target: Target;
	mails: () => string;
}

async function runLine(line: Exclude<ScriptLine, { kind: 'heading' }>, scene: Scene): Promise<Outcome> {
	if (line.kind === 'mails') return { code: 0, stdout: scene.mails(), stderr: '' };
	if (line.kind === 'call') return runScriptCall(line, scene);
	try {
		return { code: 0, stdout: await readFile(line.path, 'utf8'), stderr: '' };
	} catch {
		return { code: 1, stdout: '', stderr: 'there is no such file\n' };
	}
}

async function runScriptCall(line: ScriptCall, { values, target }: Scene): Promise<Outcome> {
	const fill = (word: string) => word.replace(/\{(\w+)\}/, (_, name) => named(values, name));
	const argv = line.argv.map(fill);
	const own = Object.fromEntries(Object.entries(line.env).map(([name, value]) => [name, fill(value)]));
	const isNamed = line.namesNoTarget || argv.some((word) => /^(--db|--base-url|--profile|-p)$/.test(word));
	const stdin = line.input === null ? line.text : await readFile(line.input);
	return runCall({
		argv: isNamed ? argv : [...wordsFor(argv, target), ...argv],
		env: { HOME: process.cwd(), ...env, ...(isNamed ? {} : target.env), ...own },
		...(stdin !== null && { stdin }),
		...(line.columns !== null && { columns: line.columns }),
		...(line.signal !== null && { signal: line.signal }),
	});
}

function wordsFor(argv: readonly string[], { words }: Target): readonly string[] {
	const at = argv.includes('--token-file') ? words.indexOf('--token-file') : -1;
	return at === -1 ? words : [...words.slice(0, at), ...words.slice(at + 2)];
}

function mailsOf(sink: SmtpSink): () => string {
	let seen = 0;
	return () => {
		const news = sink.received.slice(seen);
		seen = sink.received.length;
		const lines = news.map(({ to, raw }) => {
			const subject = /^Subject: (.*)$/im.exec(raw.toString('latin1'))?.[1]?.trim() ?? '';
			return `${to.join(', ')}\t${subject}\n`;
		});
		return lines.sort().join('');
	};
}

function named(values: Readonly<Record<string, string>>, name: string): string {
	const value = values[name];
	if (value === undefined) throw new Error(`no call gave {${name}}`);
	return value;
}

const here: Pick<Target, 'env' | 'names' | 'rest' | 'close'> = {
	env: {},
	names: {},
	rest: async () => {},
	close: async () => {},
};

const openers: Readonly<Record<WayName, (smtp: string) => Promise<Target>>> = {
	local: async (smtp) => {
		await initialize(smtp);
		return { ...here, words: ['--db', 'news.db'] };
	},
	served: async (smtp) => {
		await initialize(smtp);
		const { url, token, stop } = await serveDatabase('news.db', { env });
		return {
			...here,
			words: ['--base-url', url, '--token-file', 'news.db.token'],
			names: { deployment: new URL(url).host, 'the-token': token },
			rest: idle,
			close: async () => void (await stop()),
		};
	},
	foreign: async () => {
		const { baseUrl, token, stop } = await startDjango({ now: moment });
		return {
			...here,
			words: ['--base-url', baseUrl],
			env: { MAILCTL_TOKEN: token },
			names: { deployment: new URL(baseUrl).host },
			close: stop,
		};
	},
};

async function initialize(smtp: string): Promise<void> {
	const init = ['engine', 'init', '--sender', 'news@example.com', '--smtp', `smtp://${smtp}`];
	await onDatabase(...init, '--public-url', 'https://mail.example.com');
	await onDatabase('engine', 'settings', 'set', 'allow_private_webhooks', 'true');
}

async function onDatabase(...argv: string[]): Promise<string> {
	const call = { argv: ['--db', 'news.db', ...argv], env: { ...env, HOME: process.cwd() } };
	const { code, stdout, stderr } = await runCall(call);
	if (code !== 0) throw new Error(stderr);
	return stdout;
}

async function idle(): Promise<void> {
	for (;;) {
		const stats = JSON.parse(await onDatabase('engine', 'queue', 'stats', '-o', 'json'));
		const { due, paused, messages } = stats as {
			due: number;
			paused: object | null;
			messages: Record<string, number>;
		};
		if (paused !== null || (due === 0 && (messages['leased'] ?? 0) === 0)) return;
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
}
