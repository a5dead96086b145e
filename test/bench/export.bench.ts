// Exports of a million subscribers, compared with sqlite3 writing the same columns; the two alternate.
import { closeSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from '../support/run-program.js';
import { type Bench, type BenchRow, median, program, type Run, skippedRow, timedNode } from './bench.js';
import { newPlace, type Place, serve } from './server.js';

const rows = Number(process.env['EXPORT_ROWS'] ?? 1_000_000);
const rounds = Number(process.env['ROUNDS'] ?? 3);

export const bench: Bench = {
	subject: `seconds of an export of ${rows} subscribers with two fields, median of ${rounds}, and its peak memory`,
	run: async () => {
		const place = newPlace();
		place.run('fields', 'create', '--variable', 'city', '--name', 'City', '-q');
		place.run('fields', 'create', '--variable', 'age', '--name', 'Age', '-q');
		if (!fill(place)) {
			place.remove();
			return [skippedRow('export', 'sqlite3 is missing')];
		}
		const server = await serve(place, '--no-worker');
		const remote = ['--base-url', server.url, '--token-file', `${place.path}.token`];
		try {
			const limit: number[] = [];
			const ours: Record<string, Run[]> = {
				csv: [],
				ndjson: [],
				remote: [],
				stats: [],
			};
			for (let round = 0; round < rounds; round += 1) {
				limit.push(seconds(() => plainExport(place)));
				ours['csv']?.push(await timed(place, ['export', join(place.folder, 'a.csv'), '--force']));
				ours['ndjson']?.push(await timed(place, ['export', join(place.folder, 'a.ndjson'), '--force']));
				ours['remote']?.push(
					await timed(place, ['export', join(place.folder, 'b.csv'), '--force', ...remote]),
				);
				ours['stats']?.push(await timed(place, ['stats', '-o', 'json']));
			}
			return Object.entries(ours).map(([what, runs]) => row(what, runs, limit));
		} finally {
			await server.stop();
			place.remove();
		}
	},
};

function fill({ path }: Place): boolean {
	const script = `
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
INSERT INTO subscribers (id, list_id, email, email_key, name, is_active, disable_reason, meta, source, created_at)
SELECT i, 1, '', 'person' || i || '@example.org', 'Person ' || i, i % 10 > 0,
	CASE i % 10 WHEN 0 THEN 'UNSUBSCRIBED' END, '{"city":"Oslo","age":"' || (i % 90) || '"}', 'IMPORT', 1700000000000000
FROM n;
INSERT INTO list_counters VALUES (1, 0, ${rows} - ${rows} / 10, ${rows} / 10);
UPDATE id_sequences SET last = ${rows};
`;
	return runProgram('sqlite3', [path], { input: script }).status === 0;
}

function plainExport({ path, folder }: Place): void {
	const output = openSync(join(folder, 'plain.csv'), 'w');
	const query = `SELECT email_key, name, is_active, disable_reason, meta ->> 'city', meta ->> 'age'
		FROM subscribers WHERE list_id = 1 ORDER BY id`;
	const { status } = runProgram('sqlite3', ['-csv', path, query], { stdio: ['ignore', output, 'inherit'] });
	closeSync(output);
	if (status !== 0 || statSync(join(folder, 'plain.csv')).size === 0) throw new Error('sqlite3 failed');
}

function seconds(work: () => void): number {
	const began = performance.now();
	work();
	return (performance.now() - began) / 1000;
}

async function timed({ env }: Place, words: readonly string[]): Promise<Run> {
	const [verb = '', ...rest] = words;
	return await timedNode(
		[program, 'subscribers', verb, '-l', '1', '-q', ...rest],
		rest.includes('--base-url') ? { ...env, MAILCTL_DB: '' } : env,
	);
}

function row(what: string, runs: readonly Run[], limit: readonly number[]): BenchRow {
	const ours = median(runs.map((run) => run.seconds));
	const peak = Math.max(...runs.map(({ peakMb }) => peakMb));
	return {
		what: names[what] ?? what,
		limit: 'sqlite3 -csv',
		limitMedian: `${median(limit).toFixed(2)} s`,
		oursMedian: `${ours.toFixed(2)} s, ${peak.toFixed(0)} MiB`,
		ratio: median(limit) / ours,
		goal: goals[what] ?? '–',
	};
}

const goals: Readonly<Record<string, string>> = {
	csv: '≥ 0.6, ≤ 200 MB',
	remote: '≥ 0.35, ≤ 200 MB',
	ndjson: '≤ 200 MB',
	stats: '≤ 200 MB',
};

const names: Readonly<Record<string, string>> = {
	remote: 'csv, from a server',
};
