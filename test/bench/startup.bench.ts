// CPU time of short commands against an empty Node, in turn, on an idle database.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Bench, type BenchRow, median } from './bench.js';

const rounds = 25;
const bin = join(process.cwd(), 'bin/mailctl.js');

export const bench: Bench = {
	subject: `CPU seconds (user + system) of a whole process, median of ${rounds}`,
	run: async () => {
		const home = mkdtempSync(join(tmpdir(), 'mailctl-bench-'));
		const env = { ...process.env, HOME: home, XDG_CONFIG_HOME: '', XDG_DATA_HOME: '' };
		const mailctl = (...words: string[]) => cpuSeconds([bin, ...words], env);
		mailctl('lists', 'create', '--name', 'News', '--email-reason', 'asked');
		const samples = {
			empty: [] as number[],
			help: [] as number[],
			version: [] as number[],
			list: [] as number[],
		};
		for (let i = 0; i < rounds; i++) {
			samples.empty.push(cpuSeconds(['-e', '0'], env));
			samples.help.push(mailctl('--help'));
			samples.version.push(mailctl('--version'));
			samples.list.push(mailctl('lists', 'list', '-o', 'tsv'));
		}
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
			row('--help', samples.help, '≤ 1.35'),
			row('--version', samples.version, '≤ 1.35'),
			row('lists list -o tsv (local)', samples.list, '≤ 1.7'),
		];
	},
};

/** The operating system's own accounting of a finished child, as bash's `times` tells it. */
function cpuSeconds(words: readonly string[], env: NodeJS.ProcessEnv): number {
	const script = '"$0" "$@" >/dev/null 2>&1; times';
	const { stdout } = spawnSync('bash', ['-c', script, process.execPath, ...words], { env, encoding: 'utf8' });
	// The second line of `times` is the children's: user, then system.
	const [user = '', system = ''] = (stdout.trim().split('\n')[1] ?? '').split(' ');
	return seconds(user) + seconds(system);
}

function seconds(text: string): number {
	const [, minutes = '0', rest = '0'] = /^(\d+)m([\d.]+)s$/.exec(text) ?? [];
	return Number(minutes) * 60 + Number(rest);
}
