import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { StoreError } from '../../../src/api/errors.js';
import { DatabaseMissing } from '../../../src/store/errors.js';
import { openStore } from '../../../src/store/open.js';
import { inspectSqlite } from '../../../src/store/sqlite/inspect.js';
import { schemaVersion } from '../../../src/store/sqlite/migrations.js';
import { fixedClock, noon } from '../../contract/store/fixture.js';

describe('inspecting a SQLite database', () => {
	let folder: string;
	let path: string;
	beforeEach(async () => {
		folder = mkdtempSync(join(tmpdir(), 'mailctl-inspect-'));
		path = join(folder, 'mailctl.db');
		const store = await openStore(path, { clock: fixedClock, mode: 'create' });
		await store.writes.putSettings({ values: { time_zone: 'Europe/Oslo' }, now: noon });
		await store.close();
		return () => rmSync(folder, { recursive: true, force: true });
	});

	it('reads the database without creating or changing a file', async () => {
		const before = readFileSync(path);
		const found = inspectSqlite(path);
		expect({
			schema: found.schema,
			bytes: found.bytes,
			newest: found.newest('records'),
			damage: [found.findDamage('quick'), found.findDamage('whole')],
			settings: await found.reads.getSettings(),
		}).toEqual({
			schema: { found: schemaVersion, known: schemaVersion },
			bytes: { file: before.length, log: 0 },
			newest: noon,
			damage: [[], []],
			settings: { time_zone: 'Europe/Oslo' },
		});
		found.close();
		expect(readdirSync(folder)).toEqual(['mailctl.db']);
		expect(readFileSync(path)).toEqual(before);
	});

	it('reads the write-ahead log beside the file, even through a link, and changes neither file', async () => {
		const writer = new Database(path);
		writer.exec("UPDATE settings SET value = 'UTC'");
		const left = join(folder, 'left.db');
		for (const suffix of ['', '-wal']) copyFileSync(path + suffix, left + suffix);
		writer.close();
		const before = [readFileSync(left), readFileSync(`${left}-wal`)];
		const link = join(folder, 'link.db');
		symlinkSync(left, link);
		const found = inspectSqlite(link);
		expect(await found.reads.getSettings()).toEqual({ time_zone: 'UTC' });
		expect(found.bytes.log).toBe(before[1]?.length);
		found.close();
		expect([readFileSync(left), readFileSync(`${left}-wal`)]).toEqual(before);
	});

	it('rejects files of other programs, and creates no file', () => {
		const other = join(folder, 'other.db');
		new Database(other).exec('CREATE TABLE t (a)').close();
		expect(failure(other)).toMatchObject({ code: 'not_a_database' });
		expect(failure(folder)).toEqual(new StoreError('not_a_database', `${folder} is a directory`));
		expect(failure('/dev/null')).toEqual(new StoreError('not_a_database', '/dev/null is not a regular file'));
		expect(failure(join(folder, 'none.db'))).toEqual(new DatabaseMissing(join(folder, 'none.db')));
		expect(readdirSync(folder).sort()).toEqual(['mailctl.db', 'other.db']);
	});
});

function failure(path: string): unknown {
	try {
		inspectSqlite(path).close();
		return null;
	} catch (error) {
		return error;
	}
}
