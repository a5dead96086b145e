/** Starts a worker thread by the name of its entry file, from the build or from the sources. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * Starts `src/threads/NAME.thread.ts`. In the build this module may end up in any file of dist/ or of a folder in it,
 * so the entry is searched for beside it and one folder up. From the sources (tests) the entry is bundled in memory
 * first: Node 20 does not run TypeScript.
 */
export function spawnThread(name: string, options: WorkerOptions = {}): Worker {
	const built = ['./threads/', '../threads/', './']
		.map((folder) => new URL(`${folder}${name}.thread.js`, import.meta.url))
		.find((url) => existsSync(url));
	if (built !== undefined) return new Worker(built, options);
	const entry = fileURLToPath(new URL(`./${name}.thread.ts`, import.meta.url));
	if (!existsSync(entry)) throw new Error(`There is no thread called ${name} beside ${import.meta.url}.`);
	return new Worker(startFromSource(entry), { ...options, eval: true });
}

/** Its imports are resolved from the place of the entry. */
function startFromSource(entry: string): string {
	return `((require) => {
${bundleOf(entry)}
})(require('node:module').createRequire(${JSON.stringify(entry)}))`;
}

/** By entry. Bundling takes most of the time of starting a thread from the sources, and a test starts hundreds. */
const bundles = new Map<string, string>();

function bundleOf(entry: string): string {
	const known = bundles.get(entry);
	if (known !== undefined) return known;
	const { buildSync }: typeof import('esbuild') = createRequire(entry)('esbuild');
	const { outputFiles } = buildSync({
		entryPoints: [entry],
		bundle: true,
		write: false,
		packages: 'external',
		format: 'cjs',
		platform: 'node',
		target: 'node20.19',
		supported: { 'dynamic-import': false },
		define: { __VERSION__: '"0.0.0-source"' },
	});
	const text = outputFiles[0]?.text ?? '';
	bundles.set(entry, text);
	return text;
}
