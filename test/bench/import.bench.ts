// Imports compared with sqlite3's `.import` of the same rows into a table of the same page size with a unique index.
import { appendFileSync, copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from '../support/run-program.js';
import { type Bench, type BenchRow, median, program, type Run, timedNode } from './bench.js';
import { syncMs } from './disk.js';
import { newPlace, type Place } from './server.js';

const imported = Number(process.env['IMPORT_ROWS'] ?? 1_000_000);
const rounds = Number(process.env['ROUNDS'] ?? 3);
const before = Number(process.env['BEFORE'] ?? 0);
const large = Number(process.env['LARGE'] ?? 0);

export const bench: Bench = {
	subject: `rows checked and put, beside sqlite3 that only puts them; ROUNDS=${rounds} BEFORE=${before} LARGE=${large}`,
	run: async () => {
		const rows = await inPlace((place) => compare(place, short, 0));
		rows.push(...(await inPlace((place) => compare(place, usual, 0))));
		if (before > 0) rows.push(...(await inPlace((place) => compare(place, short, before))));
		if (large > 0) rows.push(...(await inPlace(memoryRows)));
		return rows;
	},
};

async function inPlace(measure: (place: Place) => Promise<BenchRow[]>): Promise<BenchRow[]> {
	const place = newPlace();
	try {
		return await measure(place);
	} finally {
		place.remove();
	}
}

async function compare(place: Place, rows: Rows, there: number): Promise<BenchRow[]> {
	for (const field of rows.fields) place.run('fields', 'create', '--variable', field, '--name', field, '-q');
	const others = there === 0 ? null : peopleFiles(place, rows, { name: 'others', from: 0, count: there });
	const people = peopleFiles(place, rows, { name: 'people', from: there, count: imported });
	const ours = savedDatabase(place, others);
	const limit = limitDatabase(place, others);
	const seconds: number[] = [];
	const runs: Run[] = [];
	for (let round = 0; round < rounds; round += 1) {
		if (limit !== null) seconds.push(limit.import(people));
		ours.restore();
		runs.push(await measuredImport(place, people));
	}
	const what = `import of ${imported} ${rows.what}${there === 0 ? '' : ` into ${there}`}`;
	const oursMedian = median(runs.map((run) => run.seconds));
	const fsync = `fdatasync ${syncMs(place.folder).toFixed(2)} ms`;
	return [
		{
			what,
			limit: limit === null ? 'sqlite3 is missing' : `sqlite3 .import, ${fsync}`,
			limitMedian: limit === null ? '' : `${median(seconds).toFixed(1)} s`,
			oursMedian: `${oursMedian.toFixed(1)} s`,
			ratio: limit === null ? null : median(seconds) / oursMedian,
			goal: there === 0 ? '≥ 0.6' : '≥ 0.7',
		},
		peakRow(what, Math.max(...runs.map((run) => run.peakMb))),
	];
}

async function memoryRows(place: Place): Promise<BenchRow[]> {
	const people = peopleFiles(place, short, { name: 'large', from: 0, count: large });
	const refused = refusedFile(place);
	return [
		peakRow(`import of ${large} rows`, (await measuredImport(place, people)).peakMb),
		peakRow(`${imported} rows that are all refused`, (await measuredImport(place, refused, 9)).peakMb),
	];
}

function refusedFile({ folder }: Place): Pick<PeopleFiles, 'csv'> {
	const csv = join(folder, 'refused.csv');
	writeFileSync(csv, `email,name\n${'nobody@example.org,Nobody,too,many\n'.repeat(imported)}`);
	return { csv };
}

function peakRow(what: string, peakMb: number): BenchRow {
	return {
		what: `peak memory, ${what}`,
		limit: '',
		limitMedian: '200 MB',
		oursMedian: `${Math.round(peakMb)} MB`,
		ratio: peakMb / 200,
		goal: '≤ 1',
	};
}

function savedDatabase(place: Place, others: PeopleFiles | null) {
	const saved = join(place.folder, 'saved.db');
	if (others !== null) place.run('subscribers', 'import', others.csv, '-l', '1', '-q');
	copyFileSync(place.path, saved);
	return {
		restore: () => {
			for (const end of ['-wal', '-shm']) rmSync(`${place.path}${end}`, { force: true });
			copyFileSync(saved, place.path);
		},
	};
}

function measuredImport({ env }: Place, { csv }: Pick<PeopleFiles, 'csv'>, exit: 0 | 9 = 0): Promise<Run> {
	return timedNode([program, 'subscribers', 'import', csv, '-l', '1', '-q'], env, exit);
}

function limitDatabase({ folder }: Place, others: PeopleFiles | null) {
	const path = join(folder, 'limit.db');
	const saved = join(folder, 'limit-saved.db');
	const schema = `PRAGMA page_size = 8192;
CREATE TABLE people (list_id INTEGER, email TEXT, name TEXT, is_active INTEGER, meta TEXT, source TEXT);
CREATE UNIQUE INDEX people_by_email ON people (email, list_id);
`;
	rmSync(saved, { force: true });
	if (runProgram('sqlite3', [saved], { input: schema }).status !== 0) return null;
	if (others !== null) importPlainly(saved, others);
	return {
		import: (people: PeopleFiles) => {
			copyFileSync(saved, path);
			return importPlainly(path, people);
		},
	};
}

function importPlainly(database: string, { sixColumns }: PeopleFiles): number {
	const began = performance.now();
	const input = `.import --csv ${sixColumns} people\n`;
	const { status, stderr } = runProgram('sqlite3', [database], { input });
	if (status !== 0) throw new Error(`sqlite3 ended with ${status}: ${stderr}`);
	return (performance.now() - began) / 1000;
}

interface PeopleFiles {
	csv: string;
	sixColumns: string;
}

interface Rows {
	what: string;
	fields: readonly string[];
	person(number: number, at: number): { email: string; name: string; meta: readonly string[] };
}

const short: Rows = {
	what: 'rows',
	fields: [],
	person: (number, at) => ({ email: `p${number}@example.org`, name: `Person ${at}`, meta: [] }),
};

const places = ['Berlin', 'Hamburg', 'Köln', 'Leipzig', 'Dortmund', 'Stuttgart', 'Essen'];
const names = ['Schneider', 'Hoffmann', 'Zimmermann', 'Krause', 'Baumgartner', 'Vogel', 'Lehmann'];

const usual: Rows = {
	what: 'rows with three fields',
	fields: ['city', 'plan', 'since'],
	person: (number, at) => {
		const name = names[number % names.length] ?? '';
		return {
			email: `${name.toLowerCase()}.${number}@mail${number % 50}.example-provider${number % 11}.org`,
			name: `Ingeborg ${name}`,
			meta: [
				places[at % places.length] ?? '',
				at % 3 === 0 ? 'pro' : 'free',
				`20${10 + (at % 15)}-0${1 + (at % 9)}-1${at % 10}`,
			],
		};
	},
};

function peopleFiles(
	{ folder }: Place,
	{ fields, person }: Rows,
	{ name, from, count }: { name: string; from: number; count: number },
): PeopleFiles {
	const files = { csv: join(folder, `${name}.csv`), sixColumns: join(folder, `${name}.six.csv`) };
	writeFileSync(files.csv, `${['email', 'name', ...fields].join(',')}\n`);
	writeFileSync(files.sixColumns, '');
	const atOnce = 100_000;
	for (let start = from; start < from + count; start += atOnce) {
		const people = Array.from({ length: Math.min(atOnce, from + count - start) }, (_, at) =>
			person(((start + at) * 7_919) % 20_000_003, start + at),
		);
		const rows = people.map(({ email, name, meta }) => `${[email, name, ...meta].join(',')}\n`);
		appendFileSync(files.csv, rows.join(''));
		const stored = people.map(({ email, name, meta }) => {
			const json = JSON.stringify(Object.fromEntries(fields.map((field, at) => [field, meta[at]])));
			return `1,${email},${name},1,"${json.replaceAll('"', '""')}",IMPORT\n`;
		});
		appendFileSync(files.sixColumns, stored.join(''));
	}
	return files;
}
