// Lists the files of src/ that one command runs: `node scripts/walk.mjs [--less FILE]… [--out FILE] -- WORDS…`. Builds
// each source file on its own, and lets V8 count the calls of each function in all threads. `--out` writes the counts.
// `--less` reads the counts of an earlier run, and leaves out functions that the earlier run called as often. An
// earlier run with fewer rows leaves the files that each row needs. An earlier `--help` removes functions that only
// load modules. SIGUSR2 starts a new count, for a server that has warmed up.
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { synchronous } from './sync-twin.mjs';

const { values, positionals } = parseArgs({
	options: { less: { type: 'string', multiple: true, default: [] }, out: { type: 'string' } },
	allowPositionals: true,
});
const folder = mkdtempSync(join(tmpdir(), 'mailctl-walk-'));
const sources = readdirSync('src', { recursive: true }).filter((name) => /(?<!\.d)\.ts$/.test(name));
await build({
	entryPoints: sources.map((name) => join('src', name)),
	outdir: join(folder, 'src'),
	outbase: 'src',
	format: 'esm',
	platform: 'node',
	define: { __VERSION__: '"0.0.0-walk"' },
	// Walks run on SQLite only, so build the core as its synchronous twin.
	plugins: [
		{
			name: 'core',
			setup: ({ onLoad }) => {
				onLoad({ filter: /[\\/]store[\\/]core[\\/].*\.ts$/ }, ({ path }) => ({
					contents: synchronous(readFileSync(path, 'utf8')),
					loader: 'ts',
				}));
				onLoad({ filter: /[\\/]store[\\/]\w+[\\/]migrations\.ts$/ }, ({ path }) => ({
					contents: readFileSync(path, 'utf8').replace(
						/import (\w+) from '(.*\.sql)';/,
						(_, name, file) =>
							`const ${name} = ${JSON.stringify(readFileSync(join(path, '..', file), 'utf8'))};`,
					),
					loader: 'ts',
				}));
			},
		},
	],
});
symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
cpSync('src/cli/demo', join(folder, 'src/cli/demo'), {
	recursive: true,
	filter: (path) => !path.endsWith('.ts'),
});
writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
writeFileSync(
	join(folder, 'run.js'),
	"import { main } from './src/cli/main.js';\nprocess.exitCode = await main();\n",
);
writeFileSync(
	join(folder, 'count.js'),
	`import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { isMainThread, threadId, Worker } from 'node:worker_threads';
const session = new Session();
session.connect();
let answer;
const post = (method, params) => session.post(method, params, (_, result) => (answer = result));
post('Profiler.enable');
post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const take = () => {
	post('Profiler.takePreciseCoverage');
	return answer.result.flatMap(({ url, functions }) => {
		const file = url.split(${JSON.stringify(`${folder}/`)})[1];
		if (!file?.startsWith('src/')) return [];
		// V8 reports the module itself as a function without a name at offset 0.
		return functions
			.map(({ functionName: name, ranges: [{ startOffset: at, count }] }) => ({ file, name, at, count }))
			.filter(({ name, at, count }) => count > 0 && (name !== '' || at > 0));
	});
};
if (isMainThread) process.on('SIGUSR2', take);
const path = ${JSON.stringify(join(folder, 'calls-'))} + threadId + '.json';
const calls = [];
const save = () => {
	calls.push(...take());
	writeFileSync(path, JSON.stringify(calls));
};
process.on('exit', save);
// A terminated thread runs no exit handlers, so save its counts regularly.
if (!isMainThread) setInterval(save, 50).unref();
const { terminate } = Worker.prototype;
Worker.prototype.terminate = function () {
	return new Promise((done) => setTimeout(() => done(terminate.call(this)), 300));
};
`,
);
const child = spawn(
	process.execPath,
	['--import', join(folder, 'count.js'), join(folder, 'run.js'), ...positionals],
	{ stdio: ['inherit', 2, 2] },
);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGUSR2']) process.on(signal, () => child.kill(signal));
await new Promise((done) => child.once('exit', done));

const calls = readdirSync(folder)
	.filter((name) => name.startsWith('calls-'))
	.flatMap((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')));
const sums = new Map();
for (const { file, name, at, count } of calls) {
	const key = `${file.replace(/\.js$/, '.ts')}\t${name}@${at}`;
	sums.set(key, (sums.get(key) ?? 0) + count);
}
if (values.out !== undefined) writeFileSync(values.out, JSON.stringify([...sums]));
const earlier = new Map();
for (const [key, count] of values.less.flatMap((file) => JSON.parse(readFileSync(file, 'utf8'))))
	earlier.set(key, Math.max(count, earlier.get(key) ?? 0));
const more = [...sums]
	.filter(([key, count]) => count > (earlier.get(key) ?? 0))
	.map(([key]) => key.split('\t')[0]);
for (const file of [...new Set(more)].sort()) console.log(file);
rmSync(folder, { recursive: true });
