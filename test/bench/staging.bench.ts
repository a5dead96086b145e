// Staging a campaign to a whole list, compared with sqlite3 inserting the same messages and indexes.
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isInstalled, runProgram } from '../support/run-program.js';
import { type Bench, type BenchRow, median, skippedRow } from './bench.js';
import { newPlace, type Place, peopleFile } from './server.js';

const rows = Number(process.env['STAGED_ROWS'] ?? 1_000_000);
const rounds = 3;
const what = `campaign staged to ${rows} subscribers`;
const goal = '≥ 100,000/s';

export const bench: Bench = {
	subject: `messages staged a second, median of ${rounds}`,
	run: async () => {
		if (!isInstalled('sqlite3')) return [skippedRow(what, 'sqlite3 is missing', goal)];
		const place = newPlace();
		try {
			place.run('engine', 'init', '--smtp', 'smtp://127.0.0.1:2525', '-q');
			place.run('engine', 'settings', 'set', 'public_url', 'https://mail.example.org', '-q');
			place.run('subscribers', 'import', peopleFile(place.folder, 'p', rows), '-l', '1', '-q');
			return [measure(place)];
		} finally {
			place.remove();
		}
	},
};

function measure(place: Place): BenchRow {
	const unstaged = join(place.folder, 'unstaged.db');
	copyFileSync(place.path, unstaged);
	const limit: number[] = [];
	const ours: number[] = [];
	for (let round = 0; round < rounds; round += 1) {
		for (const end of ['', '-wal', '-shm']) rmSync(place.path + end, { force: true });
		copyFileSync(unstaged, place.path);
		ours.push(perSecond(() => stage(place)));
		limit.push(perSecond(() => insertAgain(place)));
	}
	return {
		what,
		limit: 'sqlite3, one INSERT and its commit',
		limitMedian: `${Math.round(median(limit))}/s`,
		oursMedian: `${Math.round(median(ours))}/s`,
		ratio: median(ours) / median(limit),
		goal,
	};
}

function stage(place: Place): void {
	const campaign = [
		'--from',
		'desk@example.org',
		'--list',
		'1',
		'--subject',
		'News',
		'--text',
		'Dear #name#',
	];
	const sure = ['--campaign', 'j', '--yes', '--expect-count', String(rows), '--no-wait', '-q'];
	place.run('send', ...campaign, ...sure);
}

function insertAgain({ path, folder }: Place): void {
	const again = join(folder, 'again.db');
	rmSync(again, { force: true });
	const schema = runProgram('sqlite3', [
		path,
		"SELECT replace(sql, 'REFERENCES submissions (seq)', '') || ';' FROM sqlite_schema WHERE tbl_name = 'messages' AND sql <> '' ORDER BY rootpage",
	]).stdout;
	const input = `PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA cache_size = -16384;
${schema}
ATTACH '${path}' AS staged;
INSERT INTO main.messages SELECT * FROM staged.messages ORDER BY id;`;
	const { status, stderr } = runProgram('sqlite3', ['-bail', again], { input });
	if (status !== 0) throw new Error(`sqlite3 failed: ${stderr}`);
}

function perSecond(work: () => void): number {
	const began = performance.now();
	work();
	return rows / ((performance.now() - began) / 1_000);
}
