/** A database of one's own and the commands on it, as a script would run them. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CliOptions, type CliResult, cli } from './cli.js';

export interface Project {
	readonly folder: string;
	readonly db: string;
	/** Runs one command line on the database. */
	run(argv: readonly string[], options?: CliOptions): Promise<CliResult>;
	/** The JSON document of a command that must end with 0 (or `code`). */
	json(argv: readonly string[], options?: CliOptions & { code?: number }): Promise<unknown>;
	/** Writes a file into the folder and gives its path. */
	file(name: string, content: string | Buffer): Promise<string>;
}

export interface ProjectOptions {
	/** Port of a mail server on this machine; absent: none is configured. */
	smtp?: number;
	/** The verified sender is news@example.com; false: there is none. */
	sender?: false;
}

export async function makeProject({ smtp, sender }: ProjectOptions = {}): Promise<Project> {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-project-'));
	const db = join(folder, 'news.db');
	const env = { HOME: folder };
	const run: Project['run'] = (argv, options = {}) =>
		cli(['--db', db, ...argv], { ...options, env: { ...env, ...options.env } });
	const json: Project['json'] = async (argv, { code = 0, ...options } = {}) => {
		const result = await run([...argv, '-o', 'json'], options);
		if (result.code !== code)
			throw new Error(`mailctl ${argv.join(' ')} ended with ${result.code}: ${result.stderr}`);
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

/** The one JSON line of a failed command with `-o json`. */
export function errorOf({ stderr }: CliResult): Record<string, unknown> {
	const lines = stderr.trimEnd().split('\n');
	const parsed: unknown = JSON.parse(lines.at(-1) ?? '');
	if (typeof parsed !== 'object' || parsed === null || !('error' in parsed)) throw new Error(stderr);
	return parsed.error as Record<string, unknown>;
}
