import { existsSync } from 'node:fs';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * Starts `src/threads/NAME.thread.ts`. The build may put this module into dist/ or a subfolder. Tests run
 * bundles of the sources (`test/global-setup.ts`).
 */
export function spawnThread(name: string, options: WorkerOptions = {}): Worker {
	const built = ['./threads/', '../threads/', './', '../../node_modules/.cache/threads/']
		.map((folder) => new URL(`${folder}${name}.thread.js`, import.meta.url))
		.find((url) => existsSync(url));
	if (built === undefined) throw new Error(`the thread ${name} is missing beside ${import.meta.url}`);
	return new Worker(built, options);
}
