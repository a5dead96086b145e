import { existsSync } from 'node:fs';
import { appendFile, readFile, truncate, writeFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Imports } from '../../../../../src/api/capabilities.js';
import { ApiError } from '../../../../../src/api/errors.js';
import { batchRowsAt, pacedImports } from '../../../../../src/cli/commands/subscribers/import/run.js';
import { connect } from '../../../../../src/cli/connect.js';
import type { Connect } from '../../../../../src/cli/frame/connection.js';
import { Interrupted } from '../../../../../src/cli/frame/errors.js';
import { errorOf, makeProject, type Project, said } from '../../../../support/project.js';

let project: Project;

beforeEach(async () => {
	project = await makeProject();
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
});

const words = (path: string, ...more: string[]) => ['subscribers', 'import', path, '-l', '1', ...more];

/** Every third row is bad, so each batch of three has one reject. */
function people(count: number, domain = 'example.com'): string {
	const rows = Array.from({ length: count }, (_, n) => (n % 3 === 2 ? `bad${n}\n` : `p${n}@${domain}\n`));
	return `email\n${rows.join('')}`;
}

async function count(): Promise<unknown> {
	const list = (await project.json(['lists', 'get', '1'])) as { active_subscribers_count: number };
	return list.active_subscribers_count;
}

/**
 * Connects to the engine and calls `happens` after `batches` acknowledged batches. Puts one batch at a time, because
 * the engine acknowledges parallel batches in any order.
 */
function afterBatches(batches: number, happens: () => Promise<void> | void): Connect {
	let put = 0;
	return async (target, dependencies) => {
		const connection = await connect(target, dependencies);
		const { ext, ...rest } = await connection.api.capabilities();
		const { imports } = ext;
		if (imports === undefined) throw new Error('the engine does not support imports');
		const { putChecked: _, ...plain } = imports;
		const watched: Imports = {
			...plain,
			put: async (...args) => {
				if (batches === 0) await happens();
				const ack = await imports.put(...args);
				put += 1;
				if (put === batches) await happens();
				return ack;
			},
		};
		const api = {
			...connection.api,
			capabilities: async () => ({ ...rest, ext: { ...ext, imports: watched } }),
		};
		return { ...connection, api };
	};
}

describe('an interrupted import', () => {
	async function stopAfterTwoBatches(path: string) {
		const stop = new AbortController();
		return project.run([...words(path, '--batch-size', '3'), '-o', 'json'], {
			interrupts: stop.signal,
			connect: afterBatches(2, () => stop.abort(new Interrupted('SIGINT'))),
		});
	}

	it.each([
		[2, [], 'imported rows stay; run the same command with --resume to go on'],
		[2, ['--resume'], 'imported rows stay; run the same command with --resume to go on'],
	] as const)('prints how to continue if the server’s disk is full (batch %i, options %j)', async (at, more, hint) => {
		const path = await project.file('people.csv', people(12));
		if (more.length > 0) await stopAfterTwoBatches(path);
		const full = new ApiError('storage_full', 'The service answered 507: The disk of the service is full.', {
			http: { status: 507, method: 'PUT', path: '/' },
		});
		const stopped = await project.run([...words(path, '--batch-size', '3'), ...more], {
			connect: afterBatches(at, () => Promise.reject(full)),
		});
		expect(stopped).toMatchObject({ code: 7, stderr: expect.stringMatching(/\nerror: .* is full\.\n$/) });
		expect(stopped.stderr).toContain(`hint: ${hint}\n`);
		expect(await project.json(words(path, '--resume'), { code: 9 })).toMatchObject({ read: 12 });
	});

	it('suggests a new import if it read standard input without --job', async () => {
		const stop = new AbortController();
		const stopped = await project.run(
			words('-', '--rejects', `${project.folder}/r.csv`, '--batch-size', '3'),
			{
				stdin: people(12),
				interrupts: stop.signal,
				connect: afterBatches(2, () => stop.abort(new Interrupted('SIGINT'))),
			},
		);
		expect(stopped).toMatchObject({
			code: 130,
			stderr: expect.stringContaining(
				'imported rows stay; import everything again (--resume needs a file or --job NAME)\n',
			),
		});
	});

	it('finishes the current batch after Ctrl-C, and prints how to continue', async () => {
		const path = await project.file('people.csv', people(12));
		const stopped = await stopAfterTwoBatches(path);
		expect({ code: stopped.code, document: JSON.parse(stopped.stdout) }).toEqual({
			code: 130,
			document: { read: 6, created: 4, updated: 0, unchanged: 0, duplicate: 0, rejected: 2 },
		});
		expect(said(stopped)).toHaveLength(1);
		expect(errorOf(stopped)).toMatchObject({
			code: 'interrupted',
			hint: `2 rejected rows are in ${path}.rejects.csv; correct them and import that file; imported rows stay; run the same command with --resume to go on`,
		});
		expect(await count()).toBe(4);
		expect(await project.json(words(path, '--batch-size', '3', '--resume'), { code: 9 })).toEqual({
			read: 12,
			created: 8,
			updated: 0,
			unchanged: 0,
			duplicate: 0,
			rejected: 4,
		});
		const rejects = await readFile(`${path}.rejects.csv`, 'utf8');
		expect(rejects.match(/^bad\d+,\d+/gm)).toEqual(['bad2,4', 'bad5,7', 'bad8,10', 'bad11,13']);
	});

	it.each([
		['a row cut in its middle', (text: string) => text.length - 20],
		['no row', () => 3],
		['its last row missing', (text: string) => text.lastIndexOf('bad')],
	])('continues even if a crash left a rejects file with %s', async (_, cut) => {
		const path = await project.file('people.csv', people(12));
		await stopAfterTwoBatches(path);
		const rejectsPath = `${path}.rejects.csv`;
		await truncate(rejectsPath, cut(await readFile(rejectsPath, 'utf8')));
		await project.json(words(path, '--batch-size', '3', '--resume'), { code: 9 });
		const lines = [...(await readFile(rejectsPath, 'utf8')).matchAll(/^bad\d+,(\d+)/gm)].map(
			([, line]) => line,
		);
		expect(lines.join()).toBe('4,7,10,13');
	});

	it('does not continue if the file has changed', async () => {
		const path = await project.file('people.csv', people(12));
		await stopAfterTwoBatches(path);
		const rejects = await readFile(`${path}.rejects.csv`, 'utf8');
		await appendFile(path, 'late@example.com\n');
		const result = await project.run([...words(path, '--batch-size', '3', '--resume'), '-o', 'json']);
		expect({ code: result.code, stdout: result.stdout, error: errorOf(result) }).toMatchObject({
			code: 2,
			stdout: '',
			error: { code: 'file_changed', message: `${path} has changed since the import stopped` },
		});
		expect(await count()).toBe(4);
		expect(await readFile(`${path}.rejects.csv`, 'utf8')).toBe(rejects);
	});

	it('does not continue with different options', async () => {
		const path = await project.file('people.csv', people(12));
		await stopAfterTwoBatches(path);
		const result = await project.run([...words(path, '--on-conflict', 'skip', '--resume'), '-o', 'json']);
		expect({ code: result.code, error: errorOf(result)['code'] }).toEqual({
			code: 2,
			error: 'other_options',
		});
	});

	it('from standard input continues if --job gives it a name', async () => {
		const rejects = `${project.folder}/r.csv`;
		const more = ['--rejects', rejects, '--batch-size', '3', '--job', 'nightly'];
		const stop = new AbortController();
		const stopped = await project.run(words('-', ...more), {
			stdin: people(12),
			interrupts: stop.signal,
			connect: afterBatches(2, () => stop.abort(new Interrupted('SIGTERM'))),
		});
		expect({ code: stopped.code, kept: await count() }).toEqual({ code: 143, kept: 4 });
		expect(await project.json(words('-', ...more, '--resume'), { stdin: people(12), code: 9 })).toMatchObject(
			{
				read: 12,
				created: 8,
				unchanged: 0,
				rejected: 4,
			},
		);
		expect((await readFile(rejects, 'utf8')).match(/^bad/gm)).toHaveLength(4);
	});

	it('exits even if standard input delivers nothing more', async () => {
		const stdin = new PassThrough();
		const stop = new AbortController();
		stdin.write(`${people(6)}${'x'.repeat(400_000)}`);
		const running = project.run(words('-', '--rejects', `${project.folder}/r.csv`, '--batch-size', '3'), {
			stdin,
			interrupts: stop.signal,
			connect: afterBatches(1, () => void setImmediate(() => stop.abort(new Interrupted('SIGINT')))),
		});
		expect((await running).code).toBe(130);
	});

	it('exits with 74 if the disk of the rejects file is full, and loses no rejected row', async ({ skip }) => {
		if (!existsSync('/dev/full')) return skip('no /dev/full here');
		const path = await project.file('people.csv', people(12));
		const result = await project.run([
			...words(path, '--batch-size', '3', '--rejects', '/dev/full'),
			'-o',
			'json',
		]);
		expect({ code: result.code, error: errorOf(result) }).toMatchObject({
			code: 74,
			error: {
				code: 'disk_full',
				message: 'the rejects file /dev/full cannot be written: no space is left on the disk',
				hint: 'free some space, then run the same command with --resume',
			},
		});
		const rejects = ['--rejects', `${project.folder}/r.csv`];
		expect(
			await project.json(words(path, '--batch-size', '3', ...rejects, '--resume'), { code: 9 }),
		).toMatchObject({
			read: 12,
			created: 8,
			rejected: 4,
		});
		expect((await readFile(`${project.folder}/r.csv`, 'utf8')).match(/^bad/gm)).toHaveLength(4);
	});
});

describe('--max-errors in a resumed import', () => {
	it('limits the errors of all runs together', async () => {
		const path = await project.file('people.csv', people(12));
		const limited = (limit: number) =>
			project.run([
				...words(path, '--batch-size', '3', '--max-errors', String(limit), '--resume'),
				'-o',
				'json',
			]);
		for (const [limit, read, rejected] of [
			[1, 6, 2],
			[1, 6, 2],
			[2, 9, 3],
		] as const) {
			const { code, stdout, stderr } = await limited(limit);
			expect({ code, document: JSON.parse(stdout) }).toEqual({
				code: 9,
				document: { read, created: read - rejected, updated: 0, unchanged: 0, duplicate: 0, rejected },
			});
			expect(stderr).toContain(
				`${rejected} of ${read} rows were rejected, more than --max-errors ${limit} allows`,
			);
			expect(errorOf({ stderr })['hint']).toContain(`; ${rejected} rejected rows are in ${path}.rejects.csv`);
		}
		const whole = await limited(3);
		expect({ code: whole.code, document: JSON.parse(whole.stdout), error: errorOf(whole) }).toMatchObject({
			code: 9,
			document: { read: 12, created: 8, rejected: 4 },
			error: {
				message: '4 of 12 rows were rejected, more than --max-errors 3 allows',
			},
		});
		expect((await readFile(`${path}.rejects.csv`, 'utf8')).match(/^bad\d+,\d+/gm)).toHaveLength(4);
		const again = await limited(9);
		expect(JSON.parse(again.stdout)).toMatchObject({ read: 12, unchanged: 8, rejected: 4 });
		expect((await readFile(`${path}.rejects.csv`, 'utf8')).match(/^bad\d+,\d+/gm)).toHaveLength(4);
	});
});

describe('--resume', () => {
	it('prints the row at which it continues', async () => {
		const path = await project.file('people.csv', people(12));
		await project.run(words(path, '--batch-size', '3', '--max-errors', '1'));
		expect((await project.run(words(path, '--resume'))).stderr).toBe(
			`going on after the 6 rows of the earlier run\nhint: 4 rejected rows are in ${path}.rejects.csv; correct them and import that file\n`,
		);
	});

	it('leaves the rejects file of a finished import unchanged', async () => {
		const path = await project.file('a.csv', 'email,name\nbad1,A\n');
		await project.run(words(path));
		const rejects = await readFile(`${path}.rejects.csv`, 'utf8');
		await writeFile(path, 'email,name\nbad2,B\ncarl@example.com,Carl\n');
		expect(await project.run(words(path, '--resume', '--rejects', `${path}.rejects.csv`))).toEqual({
			code: 2,
			stdout: '',
			stderr:
				`error: the rejects file ${path}.rejects.csv exists already\n` +
				`hint: move it away, or name another with --rejects ${path}.rejects-2.csv\n`,
		});
		expect([await count(), await readFile(`${path}.rejects.csv`, 'utf8')]).toEqual([0, rejects]);
		expect(await project.run(words(path, '--resume'))).toMatchObject({
			code: 9,
			stderr:
				'there is nothing to resume: importing from the beginning\n' +
				`hint: 1 rejected row is in ${path}.rejects-2.csv; correct it and import that file\n`,
		});
		expect([await count(), await readFile(`${path}.rejects.csv`, 'utf8')]).toEqual([1, rejects]);
		const other = `${project.folder}/other.csv`;
		expect((await project.run(words(path, '--resume', '--rejects', other))).code).toBe(9);
		expect(await readFile(other, 'utf8')).toContain('bad2,B,2,invalid');
	});

	it('continues the numbered rejects file that the interrupted run wrote', async () => {
		const path = await project.file('people.csv', people(12));
		const mine = await project.file('people.csv.rejects.csv', 'mine');
		await project.run(words(path, '--batch-size', '3', '--max-errors', '1'));
		expect((await project.run(words(path, '--resume'))).stderr).toContain('going on after the 6 rows');
		expect((await readFile(`${path}.rejects-2.csv`, 'utf8')).match(/^bad\d+,\d+/gm)).toHaveLength(4);
		expect([await readFile(mine, 'utf8'), existsSync(`${path}.rejects-3.csv`)]).toEqual(['mine', false]);
	});

	it('never writes into the rejects file of another import', async () => {
		const path = await project.file('people.csv', people(12));
		const other = await project.file('other.csv', 'email,_line,_code,_error\nmine,99,invalid,x\n');
		await project.run(words(path, '--batch-size', '3', '--max-errors', '1'));
		expect(await project.run(words(path, '--resume', '--rejects', other))).toMatchObject({
			code: 2,
			stderr: expect.stringContaining(`the rejects file ${other} exists already`),
		});
		expect(await readFile(other, 'utf8')).toContain('mine,99');
	});
});

describe('--rejects', () => {
	it('accepts /dev/null but not a directory', async () => {
		const path = await project.file('people.csv', people(3));
		expect((await project.run(words(path, '--rejects', '/dev/null'))).code).toBe(9);
		expect(await project.run(words(path, '--rejects', project.folder))).toMatchObject({
			code: 2,
			stderr: `error: the rejects file ${project.folder} is a directory\n`,
		});
	});
});

describe('--rate', () => {
	it('delays batches to keep the given rate', async () => {
		let now = 0;
		const put: number[] = [];
		const none = { created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };
		const imports: Imports = {
			open: async () => ({ id: 's', position: 0 }),
			put: async () => {
				put.push(now);
				now += 100;
				return { position: 0, counts: none, rejects: [] };
			},
			finish: async () => none,
		};
		const sleep = async (ms: number) => {
			now += ms;
		};
		const { signal } = new AbortController();
		const paced = pacedImports(imports, 10, signal, { elapsedMs: () => now, sleep });
		for (let n = 0; n < 4; n += 1)
			await paced.put('s', { first: n * 5, columns: ['email', 'name'], cells: new Array(10).fill('x') });
		expect(put).toEqual([0, 500, 1_000, 1_500]);
		expect([batchRowsAt(10, 5_000), batchRowsAt(0.2, 5_000), batchRowsAt(1e6, 5_000)]).toEqual([
			10, 1, 5_000,
		]);
	});

	it('lets Ctrl-C interrupt the wait', async () => {
		const path = await project.file('people.csv', people(12));
		const stop = new AbortController();
		const { code, stdout } = await project.run([...words(path, '--rate', '1/h'), '-o', 'json'], {
			interrupts: stop.signal,
			connect: afterBatches(1, () => void setImmediate(() => stop.abort(new Interrupted('SIGINT')))),
		});
		expect({ code, document: JSON.parse(stdout) }).toMatchObject({
			code: 130,
			document: { read: 1, created: 1 },
		});
	});

	it.each(['x', '0', '-1/s', '10/d'])('rejects %j', async (rate) => {
		const path = await project.file('people.csv', people(3));
		expect(await project.run(words(path, `--rate=${rate}`))).toMatchObject({
			code: 2,
			stderr: `error: --rate "${rate}" is not a rate, such as 10/s, 600/m or 100/h\n`,
		});
	});
});

describe('contradictory options', () => {
	it('are rejected before the import reads anything', async () => {
		expect((await project.run(words('no.csv', '--job', 'x'))).stderr).toContain(
			'--job works only with standard input',
		);
		expect((await project.run(words('-', '--rejects', 'r', '--resume'))).stderr).toContain(
			'--resume needs a file, or --job NAME',
		);
		for (const share of ['x', '101%', '5%%', '-1'])
			expect((await project.run(words('no.csv', `--max-errors=${share}`))).stderr).toContain(
				`--max-errors: "${share}"`,
			);
	});
});
