/** Runs before all tests: bundles the threads of the sources, and creates a temporary folder that is removed later. */
import {
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	statfsSync,
	statSync,
	writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { syncTwin } from '../scripts/sync-twin.mjs';

const prefix = 'mailctl-tests-';
/** A folder whose process is not visible is kept this long, because the process may run in another container. */
const leftAfterMs = 3_600_000;
let folder: string | null = null;

export async function setup(): Promise<void> {
	// One folder serves all projects of the run, because the path of a socket in a nested folder would be too long.
	if (tmpdir().includes(prefix)) return;
	const parent = process.env['TMPDIR'] ?? memoryFolder() ?? tmpdir();
	removeLeftovers(parent, Date.now());
	folder = mkdtempSync(join(parent, `${prefix}${process.pid.toString(36)}-`));
	process.env['TMPDIR'] = folder;
	await bundleThreads();
}

/** Removes the folders of killed runs if their process is gone and nothing has changed them for an hour. */
export function removeLeftovers(parent: string, now: number): void {
	for (const name of readdirSync(parent).filter((one) => one.startsWith(prefix))) {
		const [, pid] = /^([0-9a-z]+)-.{6}$/.exec(name.slice(prefix.length)) ?? [];
		const path = join(parent, name);
		const changed = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? now;
		if (pid === undefined || now - changed < leftAfterMs || isRunning(Number.parseInt(pid, 36))) continue;
		try {
			rmSync(path, { recursive: true, force: true });
		} catch {}
	}
}

function isRunning(pid: number): boolean {
	try {
		return process.kill(pid, 0);
	} catch (error) {
		return error instanceof Error && 'code' in error && error.code !== 'ESRCH';
	}
}

/**
 * Node 20 cannot load TypeScript, so `src/threads/spawn.ts` loads these bundles from the packages' cache. They include
 * packages, as the build does: loading a package's three hundred files doubles the start time of hundreds of threads.
 */
async function bundleThreads(): Promise<void> {
	const sources = join(import.meta.dirname, '../src/threads');
	const cache = join(import.meta.dirname, '../node_modules/.cache/threads');
	const { outputFiles } = await build({
		entryPoints: readdirSync(sources)
			.filter((name) => name.endsWith('.thread.ts'))
			.map((name) => join(sources, name)),
		...{ bundle: true, write: false, outdir: cache, external: ['better-sqlite3'] },
		...{ platform: 'node', target: 'node20.19', format: 'esm', minifyWhitespace: true, minifySyntax: true },
		// Bundled packages call `require` for modules of Node.js.
		banner: {
			js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
		},
		plugins: [syncTwin],
		define: { __VERSION__: '"0.0.0-source"' },
	});
	mkdirSync(cache, { recursive: true });
	writeFileSync(join(cache, 'package.json'), '{ "type": "module" }\n');
	// Renamed into place, because another run may be reading the files.
	for (const { path, contents } of outputFiles) {
		writeFileSync(`${path}.${process.pid}`, contents);
		renameSync(`${path}.${process.pid}`, path);
	}
}

export function teardown(): void {
	if (folder !== null) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

const memory = '/dev/shm';
/** The free memory that a run requires, four times what its files take. */
const roomBytes = 8 * 1024 ** 3;

/**
 * Returns a folder in memory, so that hundreds of databases do not wait for a disk. The folder keeps writes of killed
 * processes too. Returns null if the folder or its space is missing, or if it is mounted noexec, nodev or nosuid.
 */
function memoryFolder(): string | null {
	try {
		const options =
			readFileSync('/proc/mounts', 'utf8')
				.match(/^\S+ \/dev\/shm tmpfs (\S+)/m)?.[1]
				?.split(',') ?? [];
		if (!options.includes('rw') || options.some((option) => /^no(?:exec|dev|suid)$/.test(option)))
			return null;
		const { bavail, bsize } = statfsSync(memory);
		return bavail * bsize > roomBytes ? memory : null;
	} catch {
		return null;
	}
}
