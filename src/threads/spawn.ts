import { existsSync } from 'node:fs';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * Starts `src/threads/NAME.thread.ts`. The bundler may put this module into dist/ or a subfolder, so try several paths.
 * For tests, `test/global-setup.ts` builds the threads into node_modules/.cache.
 */
export function spawnThread(name: string, options: WorkerOptions = {}): Worker {
	const built = ['./threads/', '../threads/', './', '../../node_modules/.cache/threads/']
		.map((folder) => new URL(`${folder}${name}.thread.js`, import.meta.url))
		.find((url) => existsSync(url));
	if (built === undefined) throw new Error(`the thread ${name} is missing beside ${import.meta.url}`);
	return new Worker(built, options);
}
