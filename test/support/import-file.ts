/** A file for imports that are killed, and their expected result. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { expect } from 'vitest';
import { cli, makeHome, startProgram } from './cli.js';
import { expectWhole, rowsOf } from './databases.js';
import { type Ended, ended, seeded } from './fault-points.js';
import type { KillingProxy } from './killing-proxy.js';

export interface Totals {
	read: number;
	created: number;
	updated: number;
	unchanged: number;
	duplicate: number;
	rejected: number;
}

type Kind = 'created' | 'updated' | 'unchanged' | 'duplicate' | 'rejected';

function kindOf(row: number): Kind {
	const place = row % 50;
	if (place === 7) return 'rejected';
	if (place === 13) return 'duplicate';
	if (place === 20) return 'updated';
	return place === 30 ? 'unchanged' : 'created';
}

function lineOf(row: number): string {
	if (kindOf(row) === 'rejected') return `nobody${row},N`;
	const person = kindOf(row) === 'duplicate' ? row - 1 : row;
	return `p${person}@example.com,Name ${person}`;
}

export async function writeRows(path: string, rows: number): Promise<void> {
	await writeLines(path, rows, lineOf);
}

export async function writeStanding(path: string, rows: number): Promise<void> {
	await writeLines(path, rows, (row) => {
		if (kindOf(row) === 'unchanged') return lineOf(row);
		return kindOf(row) === 'updated' ? `p${row}@example.com,Old` : null;
	});
}

async function writeLines(path: string, rows: number, line: (row: number) => string | null): Promise<void> {
	const file = createWriteStream(path);
	file.write('email,name\n');
	for (let row = 0; row < rows; row += 1) {
		const text = line(row);
		if (text !== null && !file.write(`${text}\n`)) await once(file, 'drain');
	}
	file.end();
	await finished(file);
}

export function expectedTotals(rows: number): Totals {
	const totals: Totals = { read: rows, created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 };
	for (let row = 0; row < rows; row += 1) totals[kindOf(row)] += 1;
	return totals;
}

export function expectedPeople(rows: number): number {
	const { created, updated, unchanged } = expectedTotals(rows);
	return created + updated + unchanged;
}

function expectedRejects(rows: number): string[] {
	return Array.from({ length: rows }, (_, row) => row).flatMap((row) => {
		const kind = kindOf(row);
		if (kind === 'rejected') return [`${row + 2} invalid`];
		return kind === 'duplicate' ? [`${row + 2} duplicate`] : [];
	});
}

async function readRejects(path: string): Promise<string[]> {
	const [, ...lines] = (await readFile(path, 'utf8')).trimEnd().split('\n');
	return lines.map((line) => {
		const [, , number, code] = line.split(',');
		return `${number} ${code}`;
	});
}

export interface ImportPlace {
	file: string;
	db: string;
}

export async function prepareImport(db: string, rows: number): Promise<ImportPlace> {
	const home = await makeHome();
	const file = join(await mkdtemp(join(tmpdir(), 'mailctl-import-')), 'people.csv');
	const run = async (...words: string[]) => {
		const { code, stderr } = await cli(['--db', db, ...words], { env: { HOME: home } });
		expect({ words, code, stderr: code === 0 ? '' : stderr }).toEqual({ words, code: 0, stderr: '' });
	};
	await run('engine', 'init');
	await run('lists', 'create', '--name', 'Readers', '--email-reason', 'r');
	await writeStanding(`${file}.standing`, rows);
	await run('subscribers', 'import', `${file}.standing`, '-l', '1');
	await writeRows(file, rows);
	return { file, db };
}

export async function expectPeople(db: string, rows: number): Promise<void> {
	await expectWhole(db);
	const [found = {}] = await rowsOf(
		db,
		`SELECT count(*) AS n, count(DISTINCT email_key) AS people,
			sum(CASE WHEN coalesce(nullif(email, ''), email_key) <> 'p' || substr(name, 6) || '@example.com' THEN 1 ELSE 0 END) AS odd FROM subscribers`,
	);
	const told = Object.entries(found).map(([name, value]) => [name, Number(value)]);
	expect(Object.fromEntries(told)).toEqual({ n: expectedPeople(rows), people: expectedPeople(rows), odd: 0 });
}

export function totalsOf({ code, stdout, stderr }: Ended): Totals {
	expect({ code, stderr: code === 9 ? '' : stderr }).toEqual({ code: 9, stderr: '' });
	return JSON.parse(stdout) as Totals; // compared with the expected totals
}

export async function expectImported(path: string, rows: number, totals: Totals): Promise<void> {
	expect(totals).toEqual(expectedTotals(rows));
	expect(await readRejects(`${path}.rejects.csv`)).toEqual(expectedRejects(rows));
}

export async function importKilled(
	argv: readonly string[],
	env: Readonly<Record<string, string>>,
	{ proxy, kills, span }: { proxy: KillingProxy; kills: number; span: number },
): Promise<{ totals: Totals; killed: number }> {
	const random = seeded();
	for (let killed = 0; ; ) {
		const child = startProgram([...argv, '--resume'], env);
		const when = random() < 0.5 ? 'before' : 'after';
		const at = 1 + Math.floor(random() * span);
		if (killed < kills) proxy.arm({ at, when, strike: () => child.kill('SIGKILL') });
		else proxy.disarm();
		const end = await ended(child);
		if (end.code !== null) {
			process.stderr.write(`${killed} kills of the client\n`);
			return { totals: totalsOf(end), killed };
		}
		killed += 1;
	}
}
