import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { isRecord } from '../../api/json.js';
import { makeFolders } from '../../jobs/folders.js';
import type { SinkMail } from '../connect/mail-sink.js';
import { command } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, UsageError } from '../frame/errors.js';
import { type ExitCode, exits } from '../frame/exit.js';
import { shellWord } from '../frame/words.js';
import { cleanLines } from '../render/clean.js';
import { answers } from '../render/columns.js';
import { numberText } from '../render/units.js';
import { fitSentences, type Room } from '../render/wrapping.js';

const demo = command({
	name: 'demo',
	summary: 'try an import, a send and a report on a temporary database',
	description:
		'Creates a temporary database and a test mail server, imports 1,000 subscribers, sends them an HTML mail, and shows a ' +
		'received mail, the report and the commands. Leaves nothing behind.',
	options: {
		keep: { kind: 'path', placeholder: 'DIR', summary: 'keep the database, files and mails in this folder' },
	},
	reach: [],
	needsNoTarget: true,
	...answers(['delivered', 'seconds', 'report', 'commands', 'kept']),
	examples: ['mailctl demo', 'mailctl demo --keep ./mailctl-demo'],
	run: async (cx, { options: { keep } }): Promise<ExitCode> => {
		if (cx.dryRun) throw new UsageError('demo has no dry run: it works on a temporary database');
		const mails: SinkMail[] = [];
		const { startMailSink } = await import('../connect/mail-sink.js');
		const sink = await startMailSink({ take: (mail) => void mails.push(mail) });
		try {
			const isKept = keep !== undefined;
			const folder = isKept ? await emptyFolder(keep) : await mkdtemp(join(tmpdir(), 'mailctl-demo-'));
			try {
				return await new Demo(cx, { folder, isKept, port: sink.port, mails }).run();
			} finally {
				await rm(isKept ? join(folder, stateFolder) : folder, { recursive: true, force: true });
			}
		} finally {
			await sink.close();
		}
	},
});

export { demo as command };

const files: readonly string[] = ['people.csv', 'offer.html'];
/** The state folder of the commands. The demo removes it even with `--keep`, which keeps the other files. */
const stateFolder = '.state';

const looks = [['subscribers', 'list', '--list', 'Readers'], ['campaigns', 'list'], ['report']];

interface Place {
	folder: string;
	isKept: boolean;
	port: number;
	mails: readonly SinkMail[];
}

class Demo {
	readonly #cx: CommandContext;
	readonly #place: Place;
	readonly #database: string;
	readonly #commands: (readonly string[])[] = [];

	constructor(cx: CommandContext, place: Place) {
		this.#cx = cx;
		this.#place = place;
		this.#database = join(place.folder, 'demo.db');
	}

	async run(): Promise<ExitCode> {
		const began = performance.now();
		const { note } = this.#cx;
		const { folder, isKept, port, mails } = this.#place;
		for (const name of files) await copyFile(demoFile(name), join(folder, name));
		await note('a database, a sender, a mail sink on this machine');
		const smtp = `smtp://127.0.0.1:${port}`;
		await this.#json(['engine', 'init', '--sender', 'news@example.com', '--smtp', smtp]);
		await note('a list with two fields');
		const reason = ['--email-reason', 'You signed up for our newsletter.'];
		await this.#json(['lists', 'create', '--name', 'Readers', ...reason]);
		await this.#json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		await this.#json(['fields', 'create', '--variable', 'plan', '--name', 'Plan']);
		await note('subscribers from people.csv');
		const counts = await this.#json(['subscribers', 'import', 'people.csv', '--list', 'Readers']);
		const { created, read } = isRecord(counts) ? counts : {};
		await note(`  ${numberText(Number(created))} created of ${numberText(Number(read))} read`);
		await note('an HTML mail to all of them');
		const content = ['--subject', 'Good news for #city#', '--html-file', 'offer.html'];
		const words = ['--from', 'News <news@example.com>', '--list', 'Readers', ...content];
		await this.#json(['send', ...words, '--yes', '--expect-count', String(created)]);
		const report = await this.#json(['report']);
		if (mails.length !== created)
			throw new CliError(
				'demo',
				exits.bug,
				`${mails.length} of ${String(created)} mails arrived in the sink`,
			);
		if (isKept) await this.#keepMails();
		await this.#show(report, Math.round(performance.now() - began) / 1000);
		return exits.done;
	}

	async #show(report: unknown, seconds: number): Promise<void> {
		const { out, io } = this.#cx;
		const { folder, isKept, mails } = this.#place;
		const commands = this.#commands;
		if (out.format === 'json' || out.format === 'ndjson') {
			const shown = commands.map((words) => `mailctl ${words.map(shellWord).join(' ')}`);
			const kept = isKept ? folder : null;
			return out.document({ delivered: mails.length, seconds, report, commands: shown, kept });
		}
		const linesOf = (words: readonly string[]) => commandLines(words, io.stdout);
		const arrived = await Promise.all(mails.slice(0, 1).map(describeMail));
		const chart = await this.#text(['report', '--output', 'table']);
		const lines = [
			`One of the ${numberText(mails.length)} mails that arrived:`,
			...arrived.flat().map((line) => `  ${line}`),
			'',
			'The report:',
			...chart
				.trimEnd()
				.split('\n')
				.map((line) => `  ${line}`.trimEnd()),
			'',
			'The commands:',
			...commands.flatMap(linesOf),
			'',
			...(isKept
				? [
						`Kept in ${folder}: the database, the files and mails/. To explore the database:`,
						...looks.flatMap((words) => linesOf(['--db', this.#database, ...words])),
					]
				: ['The database and the mails were deleted; --keep DIR keeps them.']),
		];
		await out.raw(`${await fitSentences(lines.map(cleanLines).join('\n'), io.stdout)}\n`);
	}

	async #keepMails(): Promise<void> {
		const folder = join(this.#place.folder, 'mails');
		makeFolders(folder);
		for (const { to, raw } of this.#place.mails)
			await writeFile(join(folder, `${(to[0] ?? 'nobody').replace(/[^\w.@+-]/g, '_')}.eml`), raw);
	}

	async #json(words: readonly string[]): Promise<unknown> {
		this.#commands.push(words);
		return JSON.parse(await this.#text([...words, '--output', 'json']));
	}

	async #text(words: readonly string[]): Promise<string> {
		const { folder } = this.#place;
		const { io, signal, main } = this.#cx;
		const paths = words.map((word) => (files.includes(word) ? join(folder, word) : word));
		const [stdout, stderr] = [collector(io.stdout.columns), collector(80)];
		const state = join(folder, stateFolder);
		const none = { MAILCTL_DB: undefined, MAILCTL_BASE_URL: undefined, MAILCTL_PROFILE: undefined };
		const code = await main({
			interrupts: signal,
			argv: [...paths, '--db', this.#database, '--no-input'],
			env: { ...io.env, XDG_STATE_HOME: state, XDG_CACHE_HOME: state, ...none, MAILCTL_OUTPUT: undefined },
			stdout: stdout.stream,
			stderr: stderr.stream,
		});
		if (code === 0) return stdout.text();
		const said = `mailctl ${words.join(' ')} ended with ${code}: ${stderr.text()}`;
		throw new CliError('demo', exits.bug, said);
	}
}

/** On a terminal, breaks a long command with backslashes, so that it can still be copied. */
function commandLines(words: readonly string[], { isTTY, columns }: Room): string[] {
	const quoted = words.map(shellWord);
	const whole = `  mailctl ${quoted.join(' ')}`;
	if (!isTTY || whole.length < columns) return [whole];
	const lines: string[] = [];
	let line = '  mailctl';
	for (const word of quoted) {
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
	const { from, subject, text = '', html = '' } = await PostalMime.parse(raw);
	const lines = text.trim().split('\n');
	return [
		`From: ${from?.name ?? ''} <${from?.address ?? ''}>`,
		`To: ${to.join(', ')}`,
		`Subject: ${subject ?? ''}`,
		`Parts: text ${numberText(text.length)} characters, HTML ${numberText(html.length)} characters with its CSS inlined`,
		'',
		...lines.slice(0, 12),
		...(lines.length > 12 ? ['…'] : []),
	];
}

async function emptyFolder(path: string): Promise<string> {
	const folder = resolve(path);
	makeFolders(folder);
	if ((await readdir(folder)).length > 0) throw new UsageError(`--keep ${path}: the folder is not empty`);
	return folder;
}

function demoFile(name: string): string {
	// The build may put this module into any file of dist/ or a subfolder.
	const found = ['./demo/', '../demo/']
		.map((folder) => new URL(`${folder}${name}`, import.meta.url))
		.find((url) => existsSync(url));
	if (found === undefined) throw new Error(`the demonstration's ${name} is missing from this installation`);
	return fileURLToPath(found);
}
