import { readFile, rm, writeFile } from 'node:fs/promises';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { makeProject } from '../../support/project.js';

async function mailed() {
	const project = await makeProject({ smtp: 9 });
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	await project.json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com']);
	await project.json(['subscribers', 'create', '-l', '1', '--email', 'off@example.com', '--inactive']);
	const mail = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--no-wait'];
	await project.json([...mail, '--list', '1', '--campaign', 'May', '--yes', '--expect-count', '1']);
	return project;
}

function spoil(path: string, sql: string) {
	const db = new Database(path);
	db.pragma('foreign_keys = OFF');
	db.exec(sql);
	db.close();
}

function rows(path: string, sql: string): unknown[] {
	const db = new Database(path, { readonly: true });
	try {
		return db.prepare(sql).all();
	} finally {
		db.close();
	}
}

const well = { orphans: [], lists: [], figures: 0, campaigns: [], repaired: false };

describe('engine check', () => {
	it('reports no problem for a healthy database', async () => {
		const { db, json } = await mailed();
		expect(await json(['engine', 'check'])).toEqual({ database: db, ...well });
	});

	it('reports counters that differ from the rows, and corrects the counters with --repair', async () => {
		const { db, json, run } = await mailed();
		spoil(
			db,
			`UPDATE list_counters SET active = 7;
			UPDATE daily_figures SET count = count + 1 WHERE type = 'CREATED';
			UPDATE quarter_figures SET count = count + 2 WHERE type = 'CREATED';
			INSERT INTO quarter_figures VALUES ('', 1, 'COMPLAINED', 'all', 0, 3);
			UPDATE campaigns SET has_open_work = 0`,
		);
		const wrong = {
			lists: [
				{
					list_id: 1,
					name: 'Readers',
					active: { kept: 7, counted: 1 },
					inactive: { kept: 1, counted: 1 },
				},
			],
			figures: 4,
			campaigns: ['May'],
		};
		expect(await json(['engine', 'check'], { code: 11 })).toMatchObject({ ...wrong, repaired: false });
		expect(await run(['engine', 'check'])).toMatchObject({
			code: 11,
			stderr: expect.stringContaining('engine check --repair'),
		});
		expect(await json(['engine', 'check', '--repair', '-n'])).toMatchObject(wrong);
		expect(await json(['engine', 'check'], { code: 11 })).toMatchObject(wrong);
		expect(await json(['engine', 'check', '--repair'])).toMatchObject({ ...wrong, repaired: true });
		expect(await json(['engine', 'check'])).toMatchObject(well);
		expect(await json(['lists', 'get', '1'])).toMatchObject({ active_subscribers_count: 1 });
	});

	it.each([
		['quarter_figures', "INSERT INTO quarter_figures VALUES ('', 1, 'SENT', 'all', 0, 3)", 'quarter = 1'],
		['link_figures', "INSERT INTO link_figures VALUES ('c', 'x', 0, 'all', 0, 5, 2)", 'link = 0'],
		[
			'bounce_figures',
			"INSERT INTO bounce_figures VALUES ('', 1, 'example.com', 'HARDBOUNCED', '5.1.1', 0, 2)",
			'quarter = 1',
		],
		['bounced_figures', "INSERT INTO bounced_figures VALUES (1, -1, 1, '', '', 0, 2)", 'hard = 1'],
		['list_joined', 'INSERT INTO list_joined VALUES (1, 1, 0, 5)', 'quarter = 1'],
		['counters', "UPDATE counters SET count = 9 WHERE name = 'messages'", 'count = 9'],
	])('corrects a wrong figure in the table %s if --repair is given', async (table, tampering, where) => {
		const { db, json } = await mailed();
		spoil(db, tampering);
		expect(await json(['engine', 'check'], { code: 11 })).toMatchObject({ ...well, figures: 1 });
		expect(await json(['engine', 'check', '--repair'])).toMatchObject({ figures: 1, repaired: true });
		expect(await json(['engine', 'check'])).toMatchObject(well);
		expect(rows(db, `SELECT * FROM ${table} WHERE ${where}`)).toEqual([]);
	});

	it('reports rows whose parent row is missing, and does not repair them', async () => {
		const { db, json } = await mailed();
		spoil(db, "UPDATE subscribers SET list_id = 77 WHERE email_key = 'off@example.com'");
		const found = await json(['engine', 'check', '--repair'], { code: 11 });
		expect(found).toMatchObject({ orphans: ['row 2 of subscribers has no parent in lists'], repaired: true });
	});

	it('prints what to do about a damaged file, and changes nothing', async () => {
		const { db, folder, json, run } = await mailed();
		const rows = Array.from({ length: 3_000 }, (_, at) => `p${at}@example.com`);
		await writeFile(`${folder}/p.csv`, ['email', ...rows].join('\n'));
		await json(['subscribers', 'import', `${folder}/p.csv`, '-l', '1']);
		const bytes = await readFile(db);
		bytes.fill(0x5a, bytes.length - 3 * 8_192, bytes.length - 8_192);
		await writeFile(db, bytes);
		for (const log of ['-wal', '-shm']) await rm(db + log, { force: true });
		const { code, stderr } = await run(['engine', 'check', '--repair']);
		const hint = `hint: stop all processes that use the database, copy the file, then run mailctl --db ${db} engine restore BACKUP\n`;
		expect({ code, stderr }).toMatchObject({ code: 74, stderr: expect.stringContaining(hint) });
		expect(await readFile(db)).toEqual(bytes);
	});
});
