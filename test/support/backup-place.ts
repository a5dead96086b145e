/** A folder with a database, and helpers for tests of backups. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import { programPath } from './cli.js';
import { copyOf, onceFor } from './model.js';
import { runProgram } from './run-program.js';

export function workplace(people = 2_000) {
	return placeIn(copyOf(modelOf(people)));
}

const modelOf = onceFor((people: number) => {
	const { folder, json, importFile } = placeIn(mkdtempSync(join(tmpdir(), 'mailctl-backup-')));
	json('engine', 'init', '--sender', 'news@example.com');
	json('lists', 'create', '--name', 'Readers', '--email-reason', 'r');
	if (people > 0) json(...importFile('a', people));
	return folder;
});

export function placeIn(folder: string) {
	const db = join(folder, 'news.db');
	const env = { PATH: process.env['PATH'] ?? '', HOME: folder, TERM: 'dumb', MAILCTL_DB: db };
	const run = (...words: string[]) =>
		runProgram(process.execPath, [programPath, ...words], { env, cwd: folder });
	const json = (...words: string[]) => {
		const { status, stdout, stderr } = run(...words, '-o', 'json');
		if (status !== 0) throw new Error(`${words.join(' ')} ended with ${status}: ${stderr}`);
		return JSON.parse(stdout);
	};
	const start = (...words: string[]) => {
		const child = spawn(process.execPath, [programPath, ...words], { env, cwd: folder, stdio: 'ignore' });
		onTestFinished(() => void child.kill('SIGKILL'));
		return child;
	};
	const importFile = (name: string, count: number) => {
		const rows = Array.from({ length: count }, (_, at) => `${name}${at}@example.com,Person ${at}`);
		writeFileSync(join(folder, `${name}.csv`), `email,name\n${rows.join('\n')}\n`);
		return ['subscribers', 'import', `${name}.csv`, '--list', 'Readers'];
	};
	return { folder, db, env, run, json, start, importFile };
}

export function look(path: string) {
	const db = new Database(path, { readonly: true, fileMustExist: true });
	const sound = db.pragma('integrity_check', { simple: true });
	const subscribers = db.prepare('SELECT count(*) FROM subscribers').pluck().get();
	db.close();
	return { sound, subscribers };
}

export const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
export const partsIn = (folder: string) => readdirSync(folder).filter((name) => /\.part/.test(name));

export function age(folder: string, names: readonly string[]) {
	const before = new Date(Date.now() - 2 * 3_600_000);
	for (const name of names) utimesSync(join(folder, name), before, before);
}
