import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { appendFile, mkdtemp, open, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createAppender } from '../../../src/jobs/foreign/ledger/append.js';
import { ledgerPath, listLedgers, removeLedger } from '../../../src/jobs/foreign/ledger/folder.js';
import type { LedgerHeader } from '../../../src/jobs/foreign/ledger/header.js';
import type { LedgerRecord } from '../../../src/jobs/foreign/ledger/lines.js';
import { openLedger } from '../../../src/jobs/foreign/ledger.js';

const header = (name: string, more: Partial<LedgerHeader> = {}): LedgerHeader => ({
	kind: 'test',
	version: 1,
	job: { name },
	...more,
});

let folder: string;
let path: string;

beforeEach(async () => {
	folder = join(await mkdtemp(join(tmpdir(), 'mailctl-ledger-')), 'state', 'jobs');
	path = ledgerPath(folder, 'one');
});

const openOne = (name = 'one') => openLedger(path, { header: header(name) });

async function recordsOf(name = 'one'): Promise<LedgerRecord[]> {
	const ledger = await openOne(name);
	const found: LedgerRecord[] = [];
	for await (const record of ledger.records) found.push(record);
	await ledger.close();
	return found;
}

async function write(...records: LedgerRecord[]): Promise<void> {
	const ledger = await openOne();
	await ledger.append(records);
	await ledger.close();
}

const bits = async (file: string) => (await stat(file)).mode & 0o777;

describe('a ledger', () => {
	it('gives back what earlier runs appended, in order, and says whether there were any', async () => {
		const first = await openOne();
		await Promise.all([first.append([{ n: 1 }, { n: 2, text: 'a\nb\u2028"' }]), first.append([{ n: 3 }])]);
		await first.close();
		const second = await openOne();
		await second.append([{ n: 4 }]);
		await second.close();
		expect([first.isNew, second.isNew]).toEqual([true, false]);
		expect(await recordsOf()).toEqual([{ n: 1 }, { n: 2, text: 'a\nb\u2028"' }, { n: 3 }, { n: 4 }]);
	});

	it('is for its owner alone, folder and all, and leaves nothing beside it', async () => {
		await write({ n: 1 });
		expect([await bits(folder), await bits(path)]).toEqual([0o700, 0o600]);
		expect(await readdir(folder)).toEqual(['one.jsonl']);
	});

	it('of another job, kind or version is refused, and stays as it is', async () => {
		await write({ n: 1 });
		const before = await readFile(path);
		const refused = (more: Partial<LedgerHeader>) =>
			openLedger(path, { header: header('one', more) }).catch((error: unknown) => error);
		expect(await refused({ job: { name: 'two' } })).toMatchObject({
			name: 'LedgerError',
			code: 'another_job',
		});
		expect(await refused({ kind: 'other' })).toMatchObject({ code: 'another_job' });
		expect(await refused({ version: 0 })).toMatchObject({ code: 'newer' });
		expect(await readFile(path)).toEqual(before);
	});

	it('is never made of a file that is none', async () => {
		await write({ n: 1 });
		for (const text of ['{"a":1}\n{"b":', 'subject\n', 'x', '[1]\n']) {
			await writeFile(path, text);
			await expect(openOne()).rejects.toMatchObject({ code: 'no_ledger' });
			expect(await readFile(path, 'utf8')).toBe(text);
		}
	});

	it('that cannot be written where it should be says so', async () => {
		await write({ n: 1 });
		path = join(path, 'two.jsonl');
		await expect(openOne()).rejects.toMatchObject({ name: 'LedgerError', code: 'unwritable' });
	});

	it('loses only what was torn, wherever it was torn', async () => {
		await write({ n: 1 }, { n: 2 });
		const whole = await readFile(path);
		const lastLine = whole.indexOf('{"n":2}');
		for (let size = 0; size < whole.length; size += 1) {
			await writeFile(path, whole.subarray(0, size));
			const kept = size >= lastLine ? [{ n: 1 }] : [];
			expect({ size, found: await recordsOf() }).toEqual({ size, found: kept });
			await write({ n: 9 });
			expect({ size, found: await recordsOf() }).toEqual({ size, found: [...kept, { n: 9 }] });
		}
	});

	it('takes an end of zeros, as a power cut leaves it, for torn', async () => {
		await write({ n: 1 });
		await truncate(path, (await stat(path)).size + 5000);
		await write({ n: 2 });
		expect(await recordsOf()).toEqual([{ n: 1 }, { n: 2 }]);
	});

	it('with damage in its middle is refused rather than believed', async () => {
		await write({ n: 1 });
		await appendFile(path, '{"n":\n{"n":3}\n');
		await expect(openOne()).rejects.toMatchObject({
			code: 'damaged',
			message: expect.stringContaining('line 3'),
		});
	});

	it('is listed by its header, and forgotten when told; other files are left out', async () => {
		await write({ n: 1 });
		await writeFile(join(folder, 'notes.jsonl'), 'hello\n');
		expect(await listLedgers(folder)).toEqual([
			{ path, header: header('one'), modifiedMs: expect.any(Number) },
		]);
		await removeLedger(path);
		await removeLedger(path);
		expect(await listLedgers(folder)).toEqual([]);
		expect(await listLedgers(join(folder, 'nowhere'))).toEqual([]);
		expect(await readdir(folder)).toEqual(['notes.jsonl']);
	});
});

describe('appending', () => {
	it('in one turn shares one sync', async () => {
		await write();
		const file = await open(path, 'r+');
		const datasync = file.datasync.bind(file);
		let syncs = 0;
		file.datasync = () => {
			syncs += 1;
			return datasync();
		};
		const { append } = bound(createAppender(file, 0));
		await Promise.all(Array.from({ length: 100 }, (_, at) => append(`${at}\n`)));
		expect(syncs).toBe(1);
		expect((await readFile(path, 'utf8')).split('\n').slice(0, 3)).toEqual(['0', '1', '2']);
		await file.close();
	});

	it('to a full disk is told, leaves nothing behind, and goes on when there is room again', async () => {
		await write();
		await writeFile(path, '');
		const file = await open(path, 'r+');
		const { write: writeReally } = bound(file);
		const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
		let writes = 0;
		// The half of it, as a disk that fills up does.
		const failing = async (bytes: Buffer, at: number, length: number, position: number) => {
			writes += 1;
			if (writes === 2) throw full;
			return writeReally(bytes, at, writes === 1 ? Math.floor(length / 2) : length, position);
		};
		const { append } = bound(createAppender(Object.assign(file, { write: failing }), 0));
		await expect(append('lost and gone\n')).rejects.toBe(full);
		expect(await readFile(path, 'utf8')).toBe('');
		await append('kept\n');
		expect(await readFile(path, 'utf8')).toBe('kept\n');
		await file.close();
	});
});

/** Methods that are called without their object. */
function bound<T extends object>(one: T): T {
	return new Proxy(one, {
		get: (target, name) => {
			const value: unknown = Reflect.get(target, name);
			return typeof value === 'function' ? value.bind(target) : value;
		},
	});
}

describe('a ledger of another process', () => {
	// Beside node_modules, so that the program finds its packages.
	const cache = fileURLToPath(new URL('../../../node_modules/.cache/', import.meta.url));
	const program = `${cache}ledger-program-${process.pid}.mjs`;

	beforeAll(async () => {
		mkdirSync(cache, { recursive: true });
		await build({
			entryPoints: [fileURLToPath(new URL('../../support/ledger-program.ts', import.meta.url))],
			outfile: program,
			bundle: true,
			platform: 'node',
			format: 'esm',
			packages: 'external',
			logLevel: 'error',
		});
	});

	/** Runs until it has acknowledged `upTo`, then is killed; gives what it acknowledged last. */
	async function killedAfter(upTo: number, meanwhile: (pid: number) => Promise<void> = async () => {}) {
		const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'pipe', 'inherit'] });
		const exit = once(child, 'exit');
		let last = 0;
		for await (const line of createInterface({ input: child.stdout })) {
			if (line === 'held') await meanwhile(child.pid ?? 0);
			else last = Number(line);
			if (last >= upTo) child.kill('SIGKILL');
		}
		await exit;
		return last;
	}

	it('is refused while that lives, naming it, and is free once that is killed', async () => {
		const second: unknown[] = [];
		const open = () => openLedger(path, { header: header('program') });
		await killedAfter(1, async (pid) => {
			for (let turn = 0; turn < 2; turn += 1) {
				const error = await open().catch((failure: unknown) => failure);
				second.push(error instanceof Error ? error.message : error, pid);
			}
		});
		const [message, pid] = second;
		expect(second).toEqual([message, pid, message, pid]);
		expect(message).toBe(`process ${pid} is at work on this job (${path})`);
		const third = await open();
		await expect(open()).rejects.toMatchObject({ code: 'in_use' });
		await expect(open()).rejects.toMatchObject({
			message: expect.stringContaining(`process ${process.pid}`),
		});
		await third.close();
	});

	it('that is killed again and again holds all it acknowledged, once and in order', async () => {
		let acknowledged = 0;
		for (const more of [40, 1, 90, 7]) {
			acknowledged = Math.max(acknowledged, await killedAfter(acknowledged + more));
			const found = (await recordsOf('program')).map(({ n }) => n);
			expect(found).toEqual(Array.from({ length: found.length }, (_, at) => at + 1));
			expect(found.length).toBeGreaterThanOrEqual(acknowledged);
		}
	}, 30_000);
});
