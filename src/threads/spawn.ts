/** Starts a worker thread by the name of its entry file, from the build or beside the sources. */
import { existsSync } from 'node:fs';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * Starts `src/threads/NAME.thread.ts`. In the build this module may end up in any file of dist/ or of a folder in it,
 * so the entry is searched for beside it and one folder up. Tests run the sources, which Node 20 does not read; their
 * threads are bundled once before all of them (`test/global-setup.ts`).
 */
export function spawnThread(name: string, options: WorkerOptions = {}): Worker {
	const built = ['./threads/', '../threads/', './', '../../node_modules/.cache/threads/']
		.map((folder) => new URL(`${folder}${name}.thread.js`, import.meta.url))
		.find((url) => existsSync(url));
	if (built === undefined) throw new Error(`There is no thread called ${name} beside ${import.meta.url}.`);
	return new Worker(built, options);
}
