// Records what users see in test/goldens. With --check, compares it with the records and prints what differs.
// With --processes each call that needs no terminal runs as a separate process, and must print the same.
import { spawnSync } from 'node:child_process';

const words = process.argv.slice(2);
const unknown = words.filter((word) => !['--check', '--processes'].includes(word));
if (unknown.length > 0) {
	process.stderr.write(`unknown: ${unknown.join(' ')}; there are --check and --processes\n`);
	process.exitCode = 2;
} else {
	const files = ['test/e2e/golden', 'test/e2e/readme.long.test.ts', 'test/cli/examples.long.test.ts'];
	const update = words.includes('--check') ? [] : ['--update'];
	const { status } = spawnSync('npx', ['vitest', 'run', ...files, ...update], {
		stdio: 'inherit',
		env: { ...process.env, ...(words.includes('--processes') && { GOLDENS_PROCESSES: '1' }) },
	});
	process.exitCode = status ?? 1;
}
