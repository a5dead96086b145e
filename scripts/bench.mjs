// Runs test/bench/NAME.bench.ts (all of them without a name) and prints each row's ratio to its limit.
// A ratio divides medians of alternating measurements in one run: absolute times of a shared machine say little.
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { cpus } from 'node:os';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { syncTwin } from './sync-twin.mjs';

/** Benches get only these variables. NODE_EXTRA_CA_CERTS, for example, slows every start of Node. */
const inherited = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'NODE_OPTIONS', 'MAILCTL_CORPORA'];
const parameters =
	'ROUNDS ROWS SIZES MINUTES CLIENTS CONTENTS PARTS SAMPLES BEFORE LARGE IMPORT_ROWS STAGED_ROWS EXPORT_ROWS'.split(
		' ',
	);
for (const name of Object.keys(process.env))
	if (![...inherited, ...parameters].includes(name)) delete process.env[name];

const wanted = process.argv.slice(2);
const names = readdirSync('test/bench')
	.filter((file) => file.endsWith('.bench.ts'))
	.map((file) => file.replace('.bench.ts', ''));
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) {
	process.stderr.write(`no bench called ${unknown.join(', ')}; there are: ${names.join(', ')}\n`);
	process.exitCode = 2;
} else {
	// A folder inside the package, so that imports of other packages resolve.
	const folder = `node_modules/.cache/bench-${process.pid}`;
	mkdirSync(folder, { recursive: true });
	process.stdout.write(
		`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown processor'}\n`,
	);
	for (const name of names.filter((one) => wanted.length === 0 || wanted.includes(one)))
		await run(name, folder);
	rmSync(folder, { recursive: true, force: true });
}

async function run(name, folder) {
	const outfile = `${folder}/${name}.mjs`;
	await build({
		entryPoints: [`test/bench/${name}.bench.ts`],
		outfile,
		bundle: true,
		packages: 'external',
		platform: 'node',
		format: 'esm',
		logLevel: 'warning',
		plugins: [syncTwin],
		define: { __VERSION__: '"bench"' },
	});
	const { bench } = await import(pathToFileURL(outfile).href);
	process.stdout.write(`\n${name}: ${bench.subject}\n`);
	const rows = await bench.run();
	process.stdout.write(
		`${table(['what', 'limit', 'limit median', 'ours median', 'ratio', 'goal'], rows.map(cells))}\n`,
	);
}

function cells({ what, limit, limitMedian, oursMedian, ratio, goal }) {
	return [what, limit, limitMedian, oursMedian, ratio === null ? '–' : ratio.toFixed(2), goal];
}

function table(head, rows) {
	const widths = head.map((_, i) => Math.max(...[head, ...rows].map((row) => row[i].length)));
	return [head, ...rows]
		.map(
			(row) =>
				`  ${row
					.map((cell, i) => cell.padEnd(widths[i]))
					.join('  ')
					.trimEnd()}`,
		)
		.join('\n');
}
