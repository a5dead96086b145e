/** `subscribers import` on a deployment of others that throttles: what a person sees, and what a second run finds. */
import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Interrupted } from '../../src/cli/errors.js';
import { openImportLedger } from '../../src/jobs/foreign/import-ledger.js';
import { listLedgers } from '../../src/jobs/foreign/ledger/folder.js';
import { type CliOptions, cli } from '../support/cli.js';
import { startWitness, type Witness, witnessMissing } from '../support/drf.js';

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
		expect(await readdir(jobs)).toEqual([]);
	});

	it('that was interrupted goes on with --resume, and its totals are those of the whole', async () => {
		await writePeople(12);
		const stop = new AbortController();
		const heard = (text: string) => {
			if (text.includes('waiting')) stop.abort(new Interrupted('SIGINT'));
		};
		const words = importing('--concurrency', '1');
		const first = await run(words, { columns: 120, interrupts: stop.signal, heard });
		expect(first.code).toBe(130);
		const [kept] = await listLedgers(jobs);
		expect(kept?.header).toMatchObject({ kind: 'import', job: { deployment: witness.baseUrl } });
		const second = await run([...words, '--resume']);
		expect({ code: second.code, totals: JSON.parse(second.stdout) }).toMatchObject({
			code: 0,
			totals: { read: 12, created: 12 },
		});
		expect(await readdir(jobs)).toEqual([]);
	});

	it('that another process is at is refused, naming it', async () => {
		await writePeople(20);
		const stop = new AbortController();
		const heard = (text: string) => {
			if (text.includes('waiting')) stop.abort(new Interrupted('SIGINT'));
		};
		await run(importing('--concurrency', '1'), { columns: 120, interrupts: stop.signal, heard });
		const [kept] = await listLedgers(jobs);
		const header: unknown = JSON.parse((await readFile(kept?.path ?? '', 'utf8')).split('\n')[0] ?? '');
		const { job } = header as { job: { deployment: string; key: string } }; // as the test above has seen it
		const other = await openImportLedger(kept?.path ?? '', job);
		const { code, stderr } = await run(importing('--resume'));
		expect({ code, error: JSON.parse(stderr) }).toMatchObject({
			code: 6,
			error: { error: { code: 'in_use', message: expect.stringContaining(`process ${process.pid} `) } },
		});
		await other.close();
	});
});
