import type { ChildProcess } from 'node:child_process';
import { copyFile, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { isBuilt, makeHome, programPath } from '../support/cli.js';
import { copyDatabase, describeDatabases } from '../support/databases.js';
import {
	asked,
	databaseCalls,
	type Ended,
	ended,
	expectHappened,
	type Fault,
	faultsOver,
	hasStrace,
	killAtEach,
	measurePoints,
	runNode,
	spread,
	startNode,
	timeLimit,
} from '../support/fault-points.js';
import {
	expectedTotals,
	expectImported,
	expectPeople,
	type ImportPlace,
	importKilled,
	prepareImport,
	type Totals,
	totalsOf,
} from '../support/import-file.js';
import { startKillingProxy } from '../support/killing-proxy.js';
import { type RunningServer, startServer } from '../support/running-server.js';

const size = (small: { rows: number; kills: number }) => ({
	rows: asked('MAILCTL_KILL_ROWS', small.rows),
	kills: asked('MAILCTL_KILLS', small.kills),
});

let home: string;
beforeEach(async () => {
	home = await makeHome();
});

async function copyOf({ file, db }: ImportPlace): Promise<ImportPlace> {
	const copy = join(await mkdtemp(join(tmpdir(), 'mailctl-kills-')), 'people.csv');
	await copyFile(file, copy);
	return { file: copy, db: await copyDatabase(db) };
}

describeDatabases('an import that is killed', (databases) => {
	const isFile = databases.kind === 'SQLite';
	const calls = isFile ? databaseCalls : 'write,writev,sendto';
	const faults = isFile ? asked('MAILCTL_FAULTS', 3) : 0;

	it.skipIf(!isBuilt)(
		'stores each person once on a server if the client is killed',
		async () => {
			const { rows, kills } = size({ rows: isFile ? 10_000 : 4_000, kills: 4 });
			const batch = Math.max(200, Math.ceil(rows / 100));
			const { file, db } = await prepareImport(await databases.create(), rows);
			const server: RunningServer = await startServer(db, ['--no-worker']);
			onTestFinished(async () => void (await server.stop()));
			const proxy = await startKillingProxy(server.baseUrl);
			onTestFinished(proxy.close);
			const argv = ['--base-url', proxy.baseUrl, 'subscribers', 'import', file, '-l', '1', '-o', 'json'];
			const { totals, killed } = await importKilled(
				[...argv, '--batch-size', String(batch)],
				{ HOME: home, MAILCTL_TOKEN: server.token },
				{ proxy, kills, span: Math.ceil(rows / batch / (kills + 1)) + 6 },
			);
			expect(killed).toBeGreaterThan(kills / 2);
			await expectImported(file, rows, totals);
			await expectPeople(db, rows);
		},
		timeLimit,
	);

	it.skipIf(!isBuilt || !hasStrace)(
		`keeps acknowledged rows if the server is killed${isFile ? ' or its disk fails' : ''} at any write (needs strace)`,
		async () => {
			const { rows, kills } = size({ rows: isFile ? 3_000 : 2_000, kills: 3 });
			const model = await prepareImport(await databases.create(), rows);
			const first = await startServer(model.db, ['--no-worker']);
			const port = new URL(first.baseUrl).port;
			await first.stop();
			const place = {
				env: { PATH: process.env['PATH'] ?? '', TERM: 'dumb', HOME: home, MAILCTL_TOKEN: first.token },
			};
			const serve = ({ db }: ImportPlace) => [
				programPath,
				'--db',
				db,
				'serve',
				'--port',
				port,
				'--no-worker',
			];
			const to = ['--base-url', first.baseUrl, '--retries', '0', '-l', '1', '-o', 'json', '--resume'];
			const importing = ({ file }: ImportPlace) =>
				runNode([programPath, 'subscribers', 'import', file, '--batch-size', '100', ...to], null, place);
			const measured = await copyOf(model);
			const work = async (server: ChildProcess) => {
				await listening(server);
				totalsOf(await importing(measured));
			};
			const { points } = await measurePoints({ calls, work }, serve(measured), place);
			const codes: (number | null)[] = [];
			const tryWith = async (fault: Fault) => {
				const at = await copyOf(model);
				const server = startNode(serve(at), fault, place);
				const end = ended(server);
				const told = (await listening(server)) ? await importing(at) : null;
				const what = `${JSON.stringify(fault)}: ${told?.code} ${told?.stderr}`;
				if (fault.does !== 'KILL' && told !== null) await expectReadable(first, what);
				server.kill('SIGTERM');
				const { code, stderr } = await end;
				expect([null, 6, 7, 9], what).toContain(told?.code ?? null);
				expect(`${told?.stderr}${stderr}`, what).not.toMatch(/^ {4}at |\.js:\d/m);

				const again = startNode(serve(at), null, place);
				const stopped = ended(again);
				expect(await listening(again)).toBe(true);
				const totals = totalsOf(told?.code === 9 ? told : await importing(at));
				again.kill('SIGTERM');
				expect(await stopped).toMatchObject({ code: 0 });
				await expectImported(at.file, rows, asOne(totals, rows));
				await expectPeople(at.db, rows);
				return code === 0 && told?.code !== 9 ? 74 : code;
			};
			for (const fault of faultsOver(points, { kills, faults })) {
				let code = await tryWith(fault);
				// On a busy machine a run makes fewer calls, because each call does more. Then the kill comes at half
				// the count.
				for (let { at } = fault; fault.does === 'KILL' && code === 0 && at > 1; ) {
					at = Math.floor(at / 2);
					code = await tryWith({ ...fault, at });
				}
				codes.push(code);
			}
			expectHappened(`serve, ${points.length} calls`, codes, { kills, faults });
		},
		timeLimit,
	);

	it.skipIf(!isBuilt || !hasStrace)(
		'stores each person once on a local database if it is killed at any write (needs strace)',
		async () => {
			const { rows, kills } = size({ rows: isFile ? 8_000 : 4_000, kills: isFile ? 5 : 4 });
			const model = await prepareImport(await databases.create(), rows);
			const batch = String(Math.max(200, Math.ceil(rows / 100)));
			const begin = async () => {
				const at = await copyOf(model);
				const argv = ['--db', at.db, 'subscribers', 'import', at.file, '-l', '1', '-o', 'json', '--resume'];
				const end: Ended | null = null;
				return { ...at, words: [programPath, ...argv, '--batch-size', batch], end: end as Ended | null };
			};
			const env = { PATH: process.env['PATH'] ?? '', TERM: 'dumb', HOME: home };
			const { points } = await measurePoints({ calls: `${calls},write` }, (await begin()).words, { env });
			const killed = await killAtEach(spread(points, kills), {
				begin,
				run: async (place, kill) => {
					const end = await runNode(place.words, kill, { env });
					if (end.code === null) return end;
					place.end = end;
					return { ...end, code: end.code === 9 ? 0 : end.code };
				},
				check: async ({ words, file, db, end }) => {
					const totals = totalsOf(end ?? (await runNode(words, null, { env })));
					await expectImported(file, rows, asOne(totals, rows));
					await expectPeople(db, rows);
				},
			});
			process.stderr.write(`${killed} kills over ${points.length} calls\n`);
			expect(killed).toBeGreaterThan(kills / 2);
		},
		timeLimit,
	);
});

/** Waits until the server listens, and returns false if it ends before that. */
function listening(server: ChildProcess): Promise<boolean> {
	return new Promise((resolve) => {
		let said = '';
		server.stderr?.on('data', (chunk: Buffer) => {
			said += chunk.toString();
			if (said.includes('listening on ')) resolve(true);
		});
		server.once('exit', () => resolve(false));
	});
}

/** Expects that the server still answers a read while the disk cannot be written. */
async function expectReadable({ baseUrl, token }: RunningServer, what: string): Promise<void> {
	const answer = await fetch(`${baseUrl}/sub/lists/`, { headers: { 'X-Secure-Token': token } });
	expect(answer.status, what).toBe(200);
}

/** After a kill that follows the last commit, the next run is a new import, which finds every row unchanged. */
function asOne(totals: Totals, rows: number): Totals {
	const { created, updated, unchanged } = expectedTotals(rows);
	return totals.unchanged === created + updated + unchanged
		? { ...totals, created, updated, unchanged }
		: totals;
}
