/**
 * "Files that are not plain CSV", each through the command: what is imported, what is rejected with its line, what is
 * refused. Whatever the file, the counts add up, and the plan of a dry run is what then happens.
 */
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import iconv from 'iconv-lite';
import { beforeEach, describe, expect, it } from 'vitest';
import { formatCsvRow } from '../../src/tables/write-csv.js';
import { makeProject, type Project } from '../support/project.js';
import { readTable } from '../tables/tables.js';

const corpora = process.env['MAILCTL_CORPORA'] ?? '../shared/corpora';

interface Counts {
	read: number;
	created: number;
	updated: number;
	unchanged: number;
	duplicate: number;
	rejected: number;
}

interface Imported {
	counts: Counts;
	/** `line code` of each rejected row. */
	rejects: string[];
	rejectColumns: string;
}

let project: Project;

beforeEach(async () => {
	project = await makeProject();
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	await project.json(['fields', 'create', '--variable', 'city', '--name', 'Home town']);
});

/** Tries it dry, does it, and compares: the counts add up, the plan was right, and the dry run wrote nothing. */
async function imported(
	content: string | Buffer,
	{ name = 'people.csv', args = [] as readonly string[] } = {},
): Promise<Imported> {
	const path = await project.file(name, content);
	const words = ['subscribers', 'import', path, '-l', '1', ...args];
	const before = await people();
	const plan = (await project.json([...words, '--dry-run'])) as Counts;
	expect(await people()).toEqual(before);
	const result = await project.run([...words, '-o', 'json']);
	const counts = JSON.parse(result.stdout) as Counts;
	expect(result.code).toBe(counts.rejected > 0 ? 9 : 0);
	expect(counts.read).toBe(
		counts.created + counts.updated + counts.unchanged + counts.duplicate + counts.rejected,
	);
	expect(plan).toMatchObject({ ...counts, unchecked: 0 });
	const rejectsPath = `${path}.rejects.csv`;
	const text = existsSync(rejectsPath) ? await readFile(rejectsPath, 'utf8') : '';
	const table = text === '' ? null : await readTable(text);
	const line = table?.header.lastIndexOf('_line') ?? 0;
	const rejects = (table?.rows ?? []).map(({ cells }) => cells.slice(line, line + 2).join(' '));
	expect(rejects).toHaveLength(counts.duplicate + counts.rejected);
	return { counts, rejects, rejectColumns: text.split('\n')[0] ?? '' };
}

async function people(): Promise<unknown[]> {
	const words = ['subscribers', 'list', '-l', '1', '--all', '--fields', 'email,name,meta'];
	return (await project.json(words)) as unknown[];
}

describe('what is imported', () => {
	const text = 'email,name,city\nann@example.com,Anna,Oslo\nbob@example.com,Bob,"Rome, Italy"\n';
	const both = [
		{ email: 'ann@example.com', name: 'Anna', meta: { city: 'Oslo' } },
		{ email: 'bob@example.com', name: 'Bob', meta: { city: 'Rome, Italy' } },
	];
	const records = both.map(({ email, name, meta }) => JSON.stringify({ email, name, meta })).join('\n');

	it.each<[string, string | Buffer]>([
		['UTF-8', text],
		['UTF-16 LE with BOM', iconv.encode(text, 'utf-16le', { addBOM: true })],
		['tabs', text.replace('Rome, Italy', 'Rome\0 Italy').replaceAll(',', '\t').replace('\0', ',')],
		['mixed line ends', text.replace('\n', '\r\n').replace('Oslo\n', 'Oslo\r')],
		['blank lines', `\n\r\n${text.replaceAll('\n', '\n\n')}`],
		['NDJSON with CRLF and BOM', `\uFEFF${records.replaceAll('\n', '\r\n')}\r\n`],
	])('%s', async (_, content) => {
		const { counts } = await imported(content);
		expect(counts).toMatchObject({ read: 2, created: 2 });
		expect(await people()).toEqual(both);
	});
});

describe('what is refused, exit 2, with nothing imported', () => {
	const zip = (entry: string) =>
		Buffer.concat([Buffer.from('PK\x03\x04'), Buffer.alloc(26), Buffer.from(entry)]);
	it.each<[string, string | Buffer, readonly string[], string]>([
		['an empty file', '', [], 'is empty'],
		['a zip archive', zip('people.csv'), [], 'is a zip archive'],
		['an unknown encoding', 'email\n', ['--encoding', 'klingon'], 'unknown encoding klingon'],
	])('%s', async (_, content, args, words) => {
		const path = await project.file('people.csv', content);
		const { code, stdout, stderr } = await project.run(['subscribers', 'import', path, '-l', '1', ...args]);
		expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
		expect(stderr).toContain(words);
		expect(existsSync(`${path}.rejects.csv`)).toBe(false);
		expect(await people()).toEqual([]);
	});
});

describe('names and cells that break things', () => {
	it('columns called as objects are: left out, nothing else', async () => {
		const { counts } = await imported('email,__proto__,constructor\na@example.com,1,2\n', {
			args: ['--ignore-unknown'],
		});
		expect(counts).toMatchObject({ read: 1, created: 1 });
		const line = '{"email":"b@example.com","__proto__":{"x":1},"meta":{"__proto__":"y","city":"Oslo"}}';
		await imported(line, { name: 'people.ndjson', args: ['--ignore-unknown'] });
		expect(await people()).toMatchObject([{ meta: {} }, { meta: { city: 'Oslo' } }]);
	});

	it('the naughty strings come back as they are, or are rejected by their length', async ({ skip }) => {
		const path = join(corpora, 'strings/blns.json');
		if (!existsSync(path)) return skip(`no corpora at ${corpora}`);
		const strings: string[] = JSON.parse(readFileSync(path, 'utf8'));
		const rows = strings.map((cell, n) => [`p${n}@example.com`, cell]);
		const { counts } = await imported([['email', 'city'], ...rows].map((row) => formatCsvRow(row)).join(''));
		expect(counts).toMatchObject({ read: strings.length, created: strings.length });
		// An empty cell says nothing about the field.
		const cities = strings.map((city) => ({ meta: city === '' ? {} : { city } }));
		expect(await people()).toMatchObject(cities);
	});
});
