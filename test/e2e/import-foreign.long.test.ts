/** `subscribers import` on a deployment of others that throttles: what a person sees, and what a second run finds. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { keepImports } from '../../src/cli/connect/imports.js';
import { Interrupted } from '../../src/cli/frame/errors.js';
import { type CliOptions, cli } from '../support/cli.js';
import { startWitness, type Witness, witnessMissing } from '../support/drf.js';
import { keptImports } from '../support/kept-rows.js';

const missing = await witnessMissing();

describe.skipIf(missing !== null)(`an import on a Django deployment (${missing ?? 'throttling'})`, () => {
	let witness: Witness;
	let home: string;
	let path: string;
	let jobs: string;

	beforeEach(async () => {
		witness = await startWitness({ pageSize: 1_000, maxPageSize: 1_000, flaky: true });
		home = await mkdtemp(join(tmpdir(), 'mailctl-import-'));
		path = join(home, 'people.csv');
		jobs = join(home, 'state', 'mailctl', 'jobs');
		await run(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	});
	afterEach(() => witness.stop());

	const run = (argv: readonly string[], more: CliOptions = {}) =>
		cli(['--base-url', witness.baseUrl, ...argv], {
			...more,
			env: { HOME: home, MAILCTL_TOKEN: witness.token, XDG_STATE_HOME: join(home, 'state') },
		});
	const importing = (...words: string[]) => [
		'subscribers',
		'import',
		path,
		'-l',
		'1',
		'-o',
		'json',
		...words,
	];
	const writePeople = (rows: number) =>
		writeFile(path, ['email', ...Array.from({ length: rows }, (_, at) => `p${at}@example.com`)].join('\n'));

	it('says on the progress line that it waits, counts each row once, and keeps nothing of it afterwards', async () => {
		await writePeople(6);
		const { code, stdout, stderr } = await run(importing(), { columns: 120 });
		expect({ code, totals: JSON.parse(stdout) }).toMatchObject({
			code: 0,
			totals: { read: 6, created: 6 },
		});
		expect(stderr).toContain('waiting 1 s, as the service asks');
		expect(await keptImports(jobs)).toEqual({ keys: [], rows: 0 });
	});

	it('that was interrupted goes on with --resume, and its totals are those of the whole', async () => {
		await writePeople(12);
		const stop = new AbortController();
		const heard = (text: string) => {
			if (text.includes('as the service asks')) stop.abort(new Interrupted('SIGINT'));
		};
		const words = importing('--concurrency', '1');
		const first = await run(words, { columns: 120, interrupts: stop.signal, heard });
		expect(first.code).toBe(130);
		expect((await keptImports(jobs)).keys).toHaveLength(1);
		const second = await run([...words, '--resume']);
		expect({ code: second.code, totals: JSON.parse(second.stdout) }).toMatchObject({
			code: 0,
			totals: { read: 12, created: 12 },
		});
		expect(await keptImports(jobs)).toEqual({ keys: [], rows: 0 });
	});

	it('that another process is at is refused, naming it', async () => {
		await writePeople(20);
		const stop = new AbortController();
		const heard = (text: string) => {
			if (text.includes('as the service asks')) stop.abort(new Interrupted('SIGINT'));
		};
		await run(importing('--concurrency', '1'), { columns: 120, interrupts: stop.signal, heard });
		const [key = ''] = (await keptImports(jobs)).keys;
		const where = { folder: jobs, deployment: witness.baseUrl, clock: systemClock };
		const other = await keepImports({ ...where, earlier: 'resume' })(key);
		const { code, stderr } = await run(importing('--resume'));
		expect({ code, error: JSON.parse(stderr) }).toMatchObject({
			code: 2,
			error: { error: { code: 'in_use', message: expect.stringContaining(`process ${process.pid} `) } },
		});
		await other.close();
	});
});
