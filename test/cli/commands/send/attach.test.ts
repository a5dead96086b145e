// `send --attach`: each way of sending attaches the files, previews show them, and a bad file stops the send.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import Database from 'better-sqlite3';
import PostalMime from 'postal-mime';
import { afterEach, describe, expect, it } from 'vitest';
import { mediaTypeOf } from '../../../../src/cli/commands/send/request.js';
import { pageOf } from '../../../../src/cli/render/browser.js';
import { type CliOptions, cli, isBuilt, startProgram } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';
import { startServer } from '../../../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

const opened: { close(): unknown }[] = [];
afterEach(async () => {
	for (const one of opened.splice(0).reverse()) await one.close();
});

const png = Buffer.from('89504e470d0a1a0a', 'hex');
const mail = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T'];
const html = ['--html', '<p>x<img src="cid:logo.png" alt=""></p>'];

interface Place {
	project: Project;
	sink: SmtpSink;
	baseUrl?: string;
	run(argv: readonly string[], options?: CliOptions): ReturnType<Project['run']>;
}

async function local(): Promise<Place> {
	const sink = await startSmtpSink({ size: 30_000_000 });
	opened.push(sink);
	const project = await makeProject({ smtp: sink.port });
	await project.file('logo.png', png);
	await project.file('Bericht für Ann.pdf', 'pdf');
	await project.file('people.csv', 'email\nann@example.com\nbob@example.com\n');
	return { project, sink, run: project.run };
}

async function served(): Promise<Place> {
	const place = await local();
	const { baseUrl, token, stop } = await startServer(place.project.db);
	opened.push({ close: stop });
	const { folder } = place.project;
	const env = { MAILCTL_TOKEN: token, HOME: folder };
	return {
		...place,
		baseUrl,
		run: (argv, options) => cli(['--base-url', baseUrl, ...argv], { ...options, env }),
	};
}

const both = ({ project: { folder } }: Place) => [
	...['--attach', join(folder, 'logo.png')],
	...['--attach', join(folder, 'Bericht für Ann.pdf')],
];

async function arrived({ sink }: Place) {
	const files = [];
	for (const { raw, to } of sink.received)
		for (const { filename, mimeType, content, related } of (await PostalMime.parse(raw)).attachments)
			files.push([
				to.join(),
				filename,
				mimeType,
				Buffer.from(content as ArrayBuffer).toString('latin1'),
				related,
			]);
	return files.sort();
}

const logo = ['logo.png', 'image/png', png.toString('latin1')];
const pdf = ['Bericht für Ann.pdf', 'application/pdf', 'pdf', undefined];
const toEach = (...people: string[]) =>
	people.flatMap((name) => [
		[`${name}@example.com`, ...pdf],
		[`${name}@example.com`, ...logo, true],
	]);

describe.each([
	['the embedded engine', local],
	['a mailctl server', served],
])('send --attach on %s', (_, start) => {
	it('attaches files to one message, and `messages get` lists the files', async () => {
		const place = await start();
		const sent = await place.run([...mail, ...html, '--to', 'ann@example.com', ...both(place), '-o', 'json']);
		expect(sent).toMatchObject({ code: 0 });
		expect(await arrived(place)).toEqual(toEach('ann'));
		const { id } = JSON.parse(sent.stdout).messages[0];
		const shown = JSON.parse((await place.run(['messages', 'get', id, '-o', 'json'])).stdout);
		expect(shown.attachments).toMatchObject([
			{ name: 'logo.png', type: 'image/png', size: 8 },
			{ name: 'Bericht für Ann.pdf', type: 'application/pdf', size: 3 },
		]);
		const { stdout } = await place.run(['messages', 'raw', id]);
		expect((await PostalMime.parse(stdout)).attachments).toHaveLength(2);
	});

	it('attaches files to campaigns from a list and from a table', async () => {
		const place = await start();
		await place.project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		await place.project.json(['subscribers', 'create', '-l', 'L', '--email', 'cy@example.com']);
		const toList = ['--list', 'L', '--transactional', '--yes', '--expect-count', '1', '--campaign', 'one'];
		expect(await place.run([...mail, ...html, ...toList, ...both(place)])).toMatchObject({ code: 0 });
		const table = join(place.project.folder, 'people.csv');
		const toTable = ['--csv', table, '--yes', '--expect-count', '2'];
		expect(await place.run([...mail, ...html, ...toTable, ...both(place)])).toMatchObject({ code: 0 });
		expect(await arrived(place)).toEqual(toEach('ann', 'bob', 'cy'));
		const { stdout } = await place.run(['campaigns', 'get', 'one', '-o', 'table'], { columns: 120 });
		expect(stripVTControlCharacters(stdout)).toMatch(
			/ATTACHED +logo\.png {2}image\/png {2}8 bytes\n +Bericht für Ann\.pdf/,
		);
	});

	it('attaches files to each request of a batch, after the request’s own files', async () => {
		const place = await start();
		const request = (to: string, more: object) =>
			JSON.stringify({ from: 'news@example.com', to: [to], subject: 'S', ...more });
		const batch = await place.project.file(
			'b.ndjson',
			[
				request('ann@example.com', { text_body: 'T', html_body: html[1] }),
				request('bob@example.com', { html_body: html[1] }),
			].join('\n'),
		);
		const words = ['send', '--batch', batch, '--yes', '--expect-count', '2', ...both(place)];
		expect(await place.run([...words, '--dry-run'])).toMatchObject({ code: 0 });
		expect(await place.run(words)).toMatchObject({ code: 0 });
		expect(await arrived(place)).toEqual(toEach('ann', 'bob'));
	});

	it('shows files in a preview but does not upload them', async () => {
		const place = await start();
		const words = [...mail, ...html, '--to', 'ann@example.com', ...both(place)];
		const text = await place.run([...words, '--preview', 'text']);
		expect(text.stdout).toBe(
			'T\n\nlogo.png  image/png  8 bytes\nBericht für Ann.pdf  application/pdf  3 bytes\n',
		);
		const eml = join(place.project.folder, 'm.eml');
		expect(await place.run([...words, '--eml', eml])).toMatchObject({ code: 0 });
		expect((await PostalMime.parse(await readFile(eml))).attachments).toHaveLength(2);
		expect((await place.run([...words, '--dry-run', '-o', 'table'])).stdout).toContain('logo.png  image/png');
		const table = join(place.project.folder, 'people.csv');
		const campaign = ['--csv', table, '--yes', '--expect-count', '2', '--dry-run'];
		expect(await place.run([...mail, ...html, ...campaign, ...both(place)])).toMatchObject({ code: 0 });
		expect(uploadsIn(place.project.db)).toBe(0);
	});

	it('lists files in a dry run, without their content', async () => {
		const place = await start();
		const big = await place.project.file('big.bin', Buffer.alloc(2_000_000, 7));
		const words = [...mail, '--attach', big, '--dry-run', '-o', 'json'];
		const table = join(place.project.folder, 'people.csv');
		const who = [
			['--to', 'ann@example.com'],
			['--csv', table, '--yes', '--expect-count', '2'],
		];
		for (const to of who) {
			const { code, stdout } = await place.run([...words, ...to]);
			expect({ code, isShort: stdout.length < 5_000 }).toEqual({ code: 0, isShort: true });
			expect(JSON.parse(stdout)).toMatchObject({
				message: expect.stringMatching(/name="?big\.bin"?[\s\S]*\r\n\r\n\r\n--/),
				attachments: [
					{
						name: 'big.bin',
						type: 'application/octet-stream',
						size: 2_000_000,
						sha256: createHash('sha256').update(Buffer.alloc(2_000_000, 7)).digest('hex'),
					},
				],
			});
		}
	});
});

function uploadsIn(path: string): number {
	const db = new Database(path, { readonly: true });
	try {
		return Number(db.prepare('SELECT count(*) FROM attachments').pluck().get());
	} finally {
		db.close();
	}
}

it('send rejects a repeated campaign unless its attachments differ', async () => {
	const place = await local();
	const table = join(place.project.folder, 'people.csv');
	const words = [...mail, '--csv', table, '--yes', '--expect-count', '2'];
	const [flag = '', file = ''] = both(place);
	expect(await place.run([...words, flag, file])).toMatchObject({ code: 0 });
	expect(await place.run([...words, flag, file])).toMatchObject({ code: 2 });
	expect(await place.run([...words, ...both(place)])).toMatchObject({ code: 0 });
});

it('a repeated idempotency key is accepted only with the same files', async () => {
	const place = await local();
	const words = [...mail, '--to', 'ann@example.com', '--idempotency-key', 'k'];
	const [flag = '', file = ''] = both(place);
	expect(await place.run([...words, flag, file])).toMatchObject({ code: 0 });
	expect(await place.run([...words, flag, file])).toMatchObject({ code: 0 });
	expect(await place.run(words)).toMatchObject({ code: 5 });
	expect(place.sink.received).toHaveLength(1);
});

it.skipIf(!isBuilt)('a repeated command completes a send that was killed after the upload', async () => {
	const place = await local();
	const { db, folder } = place.project;
	const words = [
		...[...mail, ...html, '--csv', join(folder, 'people.csv'), '--campaign', 'c'],
		...['--yes', '--expect-count', '2', ...both(place)],
	];
	const child = startProgram(['--db', db, ...words, '--no-wait'], { HOME: folder });
	const gone = once(child, 'exit');
	while (child.exitCode === null && uploadsIn(db) === 0) await new Promise(setImmediate);
	child.kill('SIGKILL');
	await gone;
	// The same command completes the send, whatever was recorded before the kill.
	expect(await place.run(words)).toMatchObject({ code: 0 });
	expect(await arrived(place)).toEqual(toEach('ann', 'bob'));
});

describe('send rejects a bad attachment with exit code 2, and sends nothing', () => {
	const start = async () => {
		const place = await local();
		const { folder } = place.project;
		await place.project.file('huge.bin', Buffer.alloc(20 * 1024 * 1024 + 1));
		await place.project.file('a\rb.txt', 'x');
		await mkdir(join(folder, 'more'));
		await place.project.file('more/logo.png', 'other');
		return {
			place,
			attach: (...names: string[]) => names.flatMap((name) => ['--attach', join(folder, name)]),
		};
	};

	it.each<[what: string, names: string[], says: RegExp]>([
		['a file that is not there', ['nothing.pdf'], /nothing\.pdf: no such file/],
		['a folder', ['more'], /more is a directory/],
		['a name with a line break', ['a\rb.txt'], /a\\rb\.txt": A file name may not contain control characters/],
		['too much', ['huge.bin', 'logo.png'], /huge\.bin, .*logo\.png: larger than 20 MiB together/],
		[
			'one name twice in the HTML',
			['logo.png', 'more/logo.png'],
			/the HTML shows cid:logo\.png; only one file may have this name/,
		],
		['too many', Array.from({ length: 101 }, () => 'logo.png'), /101 files are more than 100/],
	])('%s', async (_, names, says) => {
		const { place, attach } = await start();
		const refused = await place.run([...mail, ...html, '--to', 'ann@example.com', ...attach(...names)]);
		expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(says) });
		expect(place.sink.received).toHaveLength(0);
	});
});

it('the web page of a mail shows the attached images that its HTML uses', async () => {
	const place = await served();
	const words = [...mail.slice(0, -1), 'see #view_url#', ...html, '--to', 'ann@example.com', ...both(place)];
	expect(await place.run(words)).toMatchObject({ code: 0 });
	const { text = '' } = await PostalMime.parse(place.sink.received[0]?.raw ?? '');
	const { pathname } = new URL(/https?:\S+/.exec(text)?.[0] ?? '');
	const page = await (await fetch(new URL(pathname, place.baseUrl))).text();
	expect(page).toContain(`<img src="data:image/png;base64,${png.toString('base64')}"`);
});

it('the preview in a browser shows the attached images that the HTML uses', () => {
	const file = { name: 'logo.png', type: 'image/png', sha256: 'x', bytes: png };
	const page = pageOf({ subject: 'S', text: 'T', html: html[1] ?? '', files: [file] });
	expect(page).toContain(`src=&quot;data:image/png;base64,${png.toString('base64')}&quot;`);
	expect(page).toContain('<li>logo.png  image/png  8 bytes</li>');
});

it.each([
	['a.PDF', 'application/pdf'],
	['a.tar.gz', 'application/x-gzip'],
	['photo.jpeg', 'image/jpeg'],
	['table.xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
	['mail.eml', 'application/octet-stream'],
	['README', 'application/octet-stream'],
])('a file named %s has the media type %s', async (name, type) => {
	expect(await mediaTypeOf(name)).toBe(type);
});
