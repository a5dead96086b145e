/** The steps of `mailctl demo`. Each is a command as a person would type it, and runs in this process. */

import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { makeFolders } from '../../jobs/folders.js';
import type { SinkMail } from '../connect/mail-sink.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { shellWord } from '../frame/words.js';
import { cleanLines } from '../render/clean.js';
import { numberText } from '../render/units.js';
import { fitSentences, type Room } from '../render/wrapping.js';

const files: readonly string[] = ['people.csv', 'offer.html'];
const stateFolder = '.state';

const looks = [['subscribers', 'list', '--list', 'Readers'], ['campaigns', 'list'], ['report']];

/** The exit code is 0 if every subscriber of the file got a mail. Removes its files unless `keep` names a folder. */
export async function runDemo(cx: CommandContext, keep: string | null): Promise<ExitCode> {
	const mails: SinkMail[] = [];
	const { startMailSink } = await import('../connect/mail-sink.js');
	const sink = await startMailSink({ take: (mail) => void mails.push(mail) });
	try {
		const arrived = { port: sink.port, mails };
		return await inFolder(keep, (folder) => new Demo(cx, folder, arrived, keep !== null).run());
	} finally {
		await sink.close();
	}
}

/** Removes a temporary folder afterwards, or only the commands' state from a kept folder. */
async function inFolder<T>(keep: string | null, work: (folder: string) => Promise<T>): Promise<T> {
	const folder = keep === null ? await mkdtemp(join(tmpdir(), 'mailctl-demo-')) : await emptyFolder(keep);
	try {
		return await work(folder);
	} finally {
		await rm(keep === null ? folder : join(folder, stateFolder), { recursive: true, force: true });
	}
}

interface Arrived {
	port: number;
	mails: readonly SinkMail[];
}

class Demo {
	readonly #cx: CommandContext;
	readonly #folder: string;
	readonly #sink: Arrived;
	readonly #isKept: boolean;
	readonly #commands: (readonly string[])[] = [];

	constructor(cx: CommandContext, folder: string, sink: Arrived, isKept: boolean) {
		this.#cx = cx;
		this.#folder = folder;
		this.#sink = sink;
		this.#isKept = isKept;
	}

	get #database(): string {
		return join(this.#folder, 'demo.db');
	}

	async run(): Promise<ExitCode> {
		const began = performance.now();
		for (const name of files) await copyFile(demoFile(name), join(this.#folder, name));
		await this.#prepare();
		const subscribers = await this.#import();
		await this.#send(subscribers);
		const report = await this.#json(['report']);
		const { mails } = this.#sink;
		if (mails.length !== subscribers) {
			throw new CliError('demo', exits.bug, `${mails.length} of ${subscribers} mails arrived in the sink`);
		}
		if (this.#isKept) await this.#keepMails(mails);
		await this.#show(mails, report, Math.round(performance.now() - began) / 1000);
		return exits.done;
	}

	async #prepare(): Promise<void> {
		await this.#say('a database, a sender, a mail sink on this machine');
		const smtp = `smtp://127.0.0.1:${this.#sink.port}`;
		await this.#json(['engine', 'init', '--sender', 'news@example.com', '--smtp', smtp]);
		await this.#say('a list with two fields');
		const reason = ['--email-reason', 'You signed up for our letter.'];
		await this.#json(['lists', 'create', '--name', 'Readers', ...reason]);
		await this.#json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		await this.#json(['fields', 'create', '--variable', 'plan', '--name', 'Plan']);
	}

	async #import(): Promise<number> {
		await this.#say('subscribers from people.csv');
		const counts = await this.#json(['subscribers', 'import', 'people.csv', '--list', 'Readers']);
		const [created, read] = [numberOf(counts, 'created'), numberOf(counts, 'read')];
		await this.#say(`  ${numberText(created)} created of ${numberText(read)} read`);
		return created;
	}

	async #send(subscribers: number): Promise<void> {
		await this.#say('an HTML mail to all of them');
		const content = ['--subject', 'Good news for #city#', '--html-file', 'offer.html'];
		const words = ['--from', 'News <news@example.com>', '--list', 'Readers', ...content];
		await this.#json(['send', ...words, '--yes', '--expect-count', String(subscribers)]);
	}

	async #show(mails: readonly SinkMail[], report: unknown, seconds: number): Promise<void> {
		const { out } = this.#cx;
		const commands = this.#commands;
		const room = this.#cx.io.stdout;
		if (out.format === 'json' || out.format === 'ndjson') {
			await out.document({
				delivered: mails.length,
				seconds,
				report,
				commands: commands.map(commandLine),
				kept: this.#isKept ? this.#folder : null,
			});
			return;
		}
		const [first] = mails;
		const arrived = first === undefined ? [] : await describeMail(first);
		const chart = await this.#text(['report', '--output', 'table']);
		const lines = [
			`One of the ${numberText(mails.length)} mails that arrived:`,
			...arrived.map((line) => `  ${line}`),
			'',
			'The report:',
			...linesIn(chart).map((line) => `  ${line}`.trimEnd()),
			'',
			'The commands:',
			...commands.flatMap((words) => linesOf(words, room)),
			'',
			...(this.#isKept
				? [
						`Kept in ${this.#folder}: the database, the files and mails/. To look at it:`,
						...looks.flatMap((words) => linesOf(['--db', this.#database, ...words], room)),
					]
				: ['The database and the mails are gone again; --keep DIR keeps them.']),
		];
		await out.raw(`${await fitSentences(lines.map(cleanLines).join('\n'), room)}\n`);
	}

	async #keepMails(mails: readonly SinkMail[]): Promise<void> {
		const folder = join(this.#folder, 'mails');
		makeFolders(folder);
		for (const { to, raw } of mails)
			await writeFile(join(folder, `${(to[0] ?? 'nobody').replace(/[^\w.@+-]/g, '_')}.eml`), raw);
	}

	#say(text: string): Promise<void> {
		return this.#cx.note(text);
	}

	async #json(words: readonly string[]): Promise<unknown> {
		this.#commands.push(words);
		return JSON.parse(await this.#text([...words, '--output', 'json']));
	}

	async #text(words: readonly string[]): Promise<string> {
		const paths = words.map((word) => (files.includes(word) ? join(this.#folder, word) : word));
		const [stdout, stderr] = [collector(this.#cx.io.stdout.columns), collector(80)];
		const code = await this.#cx.main({
			interrupts: this.#cx.signal,
			argv: [...paths, '--db', this.#database, '--no-input'],
			env: {
				...this.#cx.io.env,
				...{
					XDG_STATE_HOME: join(this.#folder, stateFolder),
					XDG_CACHE_HOME: join(this.#folder, stateFolder),
				},
				...{ MAILCTL_DB: undefined, MAILCTL_BASE_URL: undefined },
				...{ MAILCTL_PROFILE: undefined, MAILCTL_OUTPUT: undefined },
			},
			stdout: stdout.stream,
			stderr: stderr.stream,
		});
		const said = `mailctl ${words.join(' ')} ended with ${code}: ${stderr.text()}`;
		if (code !== 0) throw new CliError('demo', exits.bug, said);
		return stdout.text();
	}
}

function linesIn(text: string): string[] {
	return text.trimEnd().split('\n');
}

function commandLine(words: readonly string[]): string {
	return `mailctl ${words.map(shellWord).join(' ')}`;
}

/** On a terminal, breaks a long command with backslashes, so that it can still be copied. */
function linesOf(words: readonly string[], { isTTY, columns }: Room): string[] {
	const whole = `  ${commandLine(words)}`;
	if (!isTTY || whole.length < columns) return [whole];
	const lines: string[] = [];
	let line = '  mailctl';
	for (const word of words.map(shellWord)) {
		if (line.length + 1 + word.length + 3 <= columns) line += ` ${word}`;
		else {
			lines.push(`${line} \\`);
			line = `    ${word}`;
		}
	}
	return [...lines, line];
}

function collector(columns: number) {
	const chunks: Buffer[] = [];
	const stream = Object.assign(new PassThrough(), { columns: columns - 2 });
	stream.on('data', (chunk: Buffer) => chunks.push(chunk));
	return { stream, text: () => Buffer.concat(chunks).toString('utf8') };
}

async function describeMail({ raw, to }: SinkMail): Promise<string[]> {
	const { default: PostalMime } = await import('postal-mime');
	const mail = await PostalMime.parse(raw);
	const text = (mail.text ?? '').trim().split('\n');
	return [
		`From: ${mail.from?.name ?? ''} <${mail.from?.address ?? ''}>`,
		`To: ${to.join(', ')}`,
		`Subject: ${mail.subject ?? ''}`,
		`Parts: text ${numberText((mail.text ?? '').length)} characters, HTML ${numberText((mail.html ?? '').length)} characters with its CSS inlined`,
		'',
		...text.slice(0, 12),
		...(text.length > 12 ? ['…'] : []),
	];
}

function numberOf(document: unknown, key: string): number {
	return typeof document === 'object' && document !== null
		? Number(Object.getOwnPropertyDescriptor(document, key)?.value)
		: Number.NaN;
}

async function emptyFolder(path: string): Promise<string> {
	const folder = resolve(path);
	makeFolders(folder);
	if ((await readdir(folder)).length > 0) throw new UsageError(`--keep ${path}: the folder is not empty`);
	return folder;
}

function demoFile(name: string): string {
	// The build may put this module into any file of dist/ or a subfolder.
	const found = ['./', './demo/', '../demo/']
		.map((folder) => new URL(`${folder}${name}`, import.meta.url))
		.find((url) => existsSync(url));
	if (found === undefined) throw new Error(`the demonstration's ${name} is missing from this installation`);
	return fileURLToPath(found);
}
