/** A new database, and commands on it as a script runs them. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CliOptions, type CliResult, cli } from './cli.js';
import { emptyDatabase } from './model.js';

export interface Project {
	readonly folder: string;
	readonly db: string;
	run(argv: readonly string[], options?: CliOptions): Promise<CliResult>;
	json(argv: readonly string[], options?: CliOptions & { code?: number }): Promise<unknown>;
	file(name: string, content: string | Buffer): Promise<string>;
}

interface ProjectOptions {
	smtp?: number;
	sender?: false;
	db?: string;
	env?: Readonly<Record<string, string>>;
}

export async function makeProject({ smtp, sender, ...more }: ProjectOptions = {}): Promise<Project> {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-project-'));
	const db = more.db ?? (await emptyDatabase(join(folder, 'news.db')));
	const env = { HOME: folder, ...more.env };
	const run: Project['run'] = (argv, options = {}) =>
		cli(['--db', db, ...argv], { ...options, env: { ...env, ...options.env } });
	const json: Project['json'] = async (argv, { code = 0, ...options } = {}) => {
		const result = await run([...argv, '-o', 'json'], options);
		if (result.code !== code)
			throw new Error(`mailctl ${argv.join(' ')} ended with ${result.code}: ${result.stderr}`);
		said(result);
		return JSON.parse(result.stdout);
	};
	await json([
		'engine',
		'init',
		...(sender === false ? [] : ['--sender', 'news@example.com']),
		...(smtp === undefined ? [] : ['--smtp', `smtp://127.0.0.1:${smtp}`]),
	]);
	return {
		folder,
		db,
		run,
		json,
		file: async (name, content) => {
			const path = join(folder, name);
			await writeFile(path, content);
			return path;
		},
	};
}

export function errorOf(result: Pick<CliResult, 'stderr'>): Record<string, unknown> {
	const error = said(result).at(-1)?.['error'];
	if (typeof error !== 'object' || error === null) throw new Error(result.stderr);
	return error as Record<string, unknown>;
}

export function said({ stderr }: Pick<CliResult, 'stderr'>): Record<string, unknown>[] {
	return stderr
		.split('\n')
		.slice(0, -1)
		.map((line) => JSON.parse(line));
}
