// CPU time of short commands on an idle database, compared with an empty Node.js process.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProgram } from '../support/run-program.js';
import { type Bench, type BenchRow, median } from './bench.js';

const rounds = Number(process.env['ROUNDS'] ?? 25);
const bin = join(process.cwd(), 'bin/mailctl.js');

export const bench: Bench = {
	subject: `CPU seconds (user + system) of a whole process, median of ${rounds}; ROUNDS`,
	run: async () => {
		const home = mkdtempSync(join(tmpdir(), 'mailctl-bench-'));
		const env = { ...process.env, HOME: home, XDG_CONFIG_HOME: '', XDG_DATA_HOME: '' };
		const mailctl = (...words: string[]) => cpuSeconds([bin, ...words], env);
		mailctl('lists', 'create', '--name', 'News', '--email-reason', 'asked');
		const database = join(home, '.local/share/mailctl/mailctl.db');
		const server = await startServer(env, database);
		const remote = ['--base-url', server.url, '--token-file', server.tokenFile];
		const samples = {
			empty: [] as number[],
			help: [] as number[],
			version: [] as number[],
			list: [] as number[],
			remote: [] as number[],
		};
		for (let i = 0; i < rounds; i++) {
			samples.empty.push(cpuSeconds(['-e', '0'], env));
			samples.help.push(mailctl('--help'));
			samples.version.push(mailctl('--version'));
			samples.list.push(mailctl('lists', 'list', '-o', 'tsv'));
			samples.remote.push(mailctl(...remote, 'lists', 'list', '-o', 'tsv'));
		}
		await server.stop();
		rmSync(home, { recursive: true });
		const row = (what: string, values: readonly number[], goal: string): BenchRow => ({
			what,
			limit: 'node -e 0',
			limitMedian: `${Math.round(median(samples.empty) * 1000)} ms`,
			oursMedian: `${Math.round(median(values) * 1000)} ms`,
			ratio: median(values) / median(samples.empty),
			goal,
		});
		return [
			row('--help', samples.help, '≤ 1.3'),
			row('--version', samples.version, '≤ 1.3'),
			row('lists list -o tsv (local)', samples.list, '≤ 2.1'),
			row('lists list -o tsv (remote)', samples.remote, '≤ 2.4'),
		];
	},
};

async function startServer(env: NodeJS.ProcessEnv, database: string) {
	const child = spawn(process.execPath, [bin, 'serve', '--db', database, '--port', '0'], {
		env,
		stdio: ['ignore', 'ignore', 'pipe'],
	});
	let said = '';
	for await (const chunk of child.stderr) {
		said += String(chunk);
		if (said.includes('listening on ')) break;
	}
	const url = /listening on (\S+)/.exec(said)?.[1] ?? '';
	const stop = async () => {
		child.kill('SIGTERM');
		await once(child, 'exit');
	};
	return { url, tokenFile: `${database}.token`, stop };
}

function cpuSeconds(words: readonly string[], env: NodeJS.ProcessEnv): number {
	const script = '"$0" "$@" >/dev/null 2>&1 || exit 1; times';
	const { status, stdout } = runProgram('bash', ['-c', script, process.execPath, ...words], {
		env,
	});
	if (status !== 0) throw new Error(`${words.join(' ')} failed`);
	const [user = '', system = ''] = (stdout.trim().split('\n')[1] ?? '').split(' ');
	return seconds(user) + seconds(system);
}

function seconds(text: string): number {
	const [, minutes = '0', rest = '0'] = /^(\d+)m([\d.]+)s$/.exec(text) ?? [];
	return Number(minutes) * 60 + Number(rest);
}
