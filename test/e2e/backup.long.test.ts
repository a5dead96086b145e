import { once } from 'node:events';
import {
	existsSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { age, look, modeOf, partsIn, workplace } from '../support/backup-place.js';
import { programPath } from '../support/cli.js';
import {
	asked,
	databaseCalls,
	expectHappened,
	faultsOver,
	hasStrace,
	measurePoints,
	runNode,
	timeLimit,
} from '../support/fault-points.js';
import { runProgram } from '../support/run-program.js';

const kills = asked('MAILCTL_KILLS', 10);
const faults = asked('MAILCTL_FAULTS', 8);
const isRoot = process.getuid?.() === 0;

describe('engine backup', () => {
	it('writes one file that is a database, and prints a summary', () => {
		const { folder, db, json } = workplace();
		const open = new Database(db);
		open.pragma('user_version');
		json('subscribers', 'create', '--list', 'Readers', '--email', 'last@example.com');
		const made = json('engine', 'backup', 'copy.db');
		open.close();
		const file = join(folder, 'copy.db');
		expect(made).toEqual({
			database: db,
			file,
			size_bytes: statSync(file).size,
			schema_version: expect.any(Number),
			lists: 1,
			subscribers: 2_001,
			messages: 0,
			replaced: false,
			duration_ms: expect.any(Number),
		});
		expect(look(file)).toMatchObject({ sound: 'ok', subscribers: 2_001 });
		expect(readdirSync(folder).filter((name) => name.includes('copy'))).toEqual(['copy.db']);
		const { messages } = json('--db', file, 'engine', 'status');
		expect(messages).toEqual({});
	});

	it.each(['000', '022', '077', '777'])('creates a private file with umask %s', (umask) => {
		const { folder, env } = workplace(10);
		const line = `umask ${umask}; exec "${process.execPath}" "${programPath}" engine backup copy.db`;
		const { status, stderr } = runProgram('sh', ['-c', line], { env, cwd: folder });
		expect({ status, stderr }).toMatchObject({ status: 0 });
		expect(modeOf(join(folder, 'copy.db'))).toBe('600');
	});

	it('overwrites only with confirmation, and never the database or its log', () => {
		const { folder, db, run, json } = workplace(10);
		const file = join(folder, 'copy.db');
		writeFileSync(file, 'precious', { mode: 0o644 });
		expect(run('engine', 'backup', 'copy.db')).toMatchObject({
			status: 2,
			stderr: expect.stringContaining('--force replaces it'),
		});
		expect(readFileSync(file, 'utf8')).toBe('precious');
		symlinkSync(db, join(folder, 'link.db'));
		for (const name of ['news.db', 'link.db', 'news.db-wal', 'news.db-shm'])
			expect(run('engine', 'backup', name, '--force').stderr).toContain('is the database itself');
		expect(run('engine', 'backup', '/dev/null', '--force').status).toBe(2);
		expect(run('engine', 'backup', folder, '--force').status).toBe(2);
		expect(run('engine', 'backup', 'no/such/folder.db').status).toBe(2);
		expect(json('engine', 'backup', 'copy.db', '--dry-run', '--yes')).toMatchObject({ dry_run: true });
		expect(readFileSync(file, 'utf8')).toBe('precious');
		expect(json('engine', 'backup', 'copy.db', '--force')).toMatchObject({ replaced: true });
		expect(modeOf(file)).toBe('600');
		expect(json('engine', 'backup', 'copy.db', '--yes')).toMatchObject({ replaced: true });
		expect(look(file)).toMatchObject({ sound: 'ok', subscribers: 10 });
		expect(partsIn(folder)).toEqual([]);
	});

	it('makes intact copies while serve, a worker and an import are running', async () => {
		const { folder, run, start, json, importFile } = workplace(20_000);
		const serve = start('serve', '--port', '0', '--no-worker');
		run('engine', 'settings', 'set', 'smtp_url', 'smtp://127.0.0.1:9');
		const worker = start('worker');
		const busy = start(...importFile('b', 60_000));
		const counts: number[] = [];
		for (let at = 0; busy.exitCode === null && at < 60; at += 1) {
			const { status, stderr } = run('engine', 'backup', `copy${at}.db`);
			expect({ status, stderr }).toMatchObject({ status: 0 });
			const { sound, subscribers } = look(join(folder, `copy${at}.db`));
			expect(sound).toBe('ok');
			counts.push(Number(subscribers));
			await new Promise((resolve) => setImmediate(resolve));
		}
		if (busy.exitCode === null) await once(busy, 'exit');
		expect(busy.exitCode).toBe(0);
		expect(counts).toEqual([...counts].sort((a, b) => a - b));
		expect(json('engine', 'status').subscribers).toBe(80_000);
		serve.kill('SIGTERM');
		worker.kill('SIGTERM');
		await Promise.all([serve, worker].map((child) => (child.exitCode === null ? once(child, 'exit') : null)));
	});

	it('rejects a damaged database', () => {
		const { folder, db, run } = workplace(5_000);
		const bytes = readFileSync(db);
		bytes.fill(0x5a, bytes.length - 3 * 8_192, bytes.length - 8_192);
		writeFileSync(db, bytes);
		const { status, stderr } = run('engine', 'backup', 'copy.db');
		expect({ status, stderr }).toMatchObject({ status: 74, stderr: expect.stringContaining('damaged') });
		expect(existsSync(join(folder, 'copy.db'))).toBe(false);
		expect(partsIn(folder)).toEqual([]);
	});

	it.skipIf(!isRoot)('leaves no file on a full disk, and reports that the disk is full', (context) => {
		const { folder, run } = workplace(20_000);
		const small = join(folder, 'small');
		mkdirSync(small);
		const mounted = runProgram('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', small]);
		if (mounted.status !== 0) return context.skip('no tmpfs can be mounted here');
		onTestFinished(() => void runProgram('umount', [small]));
		const { status, stderr } = run('engine', 'backup', 'small/copy.db');
		expect({ status, stderr }).toMatchObject({
			status: 74,
			stderr: expect.stringContaining('no space left on the disk of small/copy.db'),
		});
		expect(readdirSync(small)).toEqual([]);
	});

	it.skipIf(!hasStrace)(
		'that is killed or fails leaves the old backup or a complete new one (needs strace)',
		async () => {
			const { folder, env, run, json } = workplace(3_000);
			const file = join(folder, 'copy.db');
			json('engine', 'backup', 'copy.db');
			const before = Number(look(file).subscribers);
			json('subscribers', 'create', '--list', 'Readers', '--email', 'last@example.com');
			const words = [programPath, 'engine', 'backup', 'copy.db', '--force'];
			const place = { env, cwd: folder };
			const calls = `${databaseCalls},rename,unlink,link`;
			const { points } = await measurePoints({ calls }, words, place);
			const codes: (number | null)[] = [];
			for (const fault of faultsOver(points, { kills, faults })) {
				const { code, stderr } = await runNode(words, fault, place);
				const what = `${JSON.stringify(fault)}: ${code} ${stderr}`;
				codes.push(code);
				expect(fault.does === 'KILL' ? [0, null] : [0, 74], what).toContain(code);
				const { sound, subscribers } = look(file);
				expect(sound).toBe('ok');
				expect(code === 0 ? [before + 1] : [before, before + 1], what).toContain(subscribers);
				for (const name of partsIn(folder)) expect(modeOf(join(folder, name))).toBe('600');
			}
			expectHappened(`a backup, ${points.length} calls`, codes, { kills, faults });
			expect(json('engine', 'backup', 'copy.db', '--force')).toMatchObject({ replaced: true });
			expect(look(file)).toMatchObject({ sound: 'ok', subscribers: 3_001 });
			const left = partsIn(folder);
			expect(left.length).toBeGreaterThan(0);
			age(folder, left);
			const { status, stderr } = run('engine', 'backup', 'other.db');
			expect(status).toBe(0);
			for (const name of left.filter((one) => one.endsWith('.part')))
				expect(stderr.replace(/\s+/g, ' ')).toContain(`removed ${name}`);
			expect(partsIn(folder)).toEqual([]);
		},
		timeLimit,
	);

	it('removes partial files of the same backup that are over an hour old', () => {
		const { folder, run } = workplace(10);
		const [own, other] = ['.copy.db.0123456789ab.backup.part', '.2026.db.0123456789ab.backup.part'];
		const young = '.copy.db.ba9876543210.backup.part';
		const strange = ['.copy.db.part', '.o.csv.0123456789ab.part', 'copy.db.0123456789ab.backup.part'];
		const old = [own, other, `${other}-journal`, ...strange];
		for (const name of [...old, young]) writeFileSync(join(folder, name), 'half');
		age(folder, old);
		const { status, stderr } = run('engine', 'backup', 'copy.db');
		expect({ status, stderr }).toMatchObject({
			status: 0,
			stderr: expect.stringContaining(`removed ${own}`),
		});
		expect(partsIn(folder).sort()).toEqual([young, ...strange].sort());
	});
});
