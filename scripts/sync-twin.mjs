/**
 * Makes the synchronous twin of `src/store/core`. The store's operations are written once, as asynchronous functions for
 * a database at the other end of a connection. SQLite answers at once, and its transactions must not stay open across
 * turns of the event loop, so `src/store/sqlite` imports the same text without `async` and `await`.
 *
 * This works because only `Sql` is asynchronous in the core, which has no timers, promises or `for await` loops;
 * `test/store/sync-twin.test.ts` checks the sources. Files of SQL are imported as their text.
 */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

export function synchronous(text) {
	return text.replace(/\b(?:async|await)\s+/g, '');
}

const isOfCore = (path) => /[\\/]src[\\/]store[\\/]core[\\/]/.test(path);
const isOfDriver = (path) => /[\\/]store[\\/]sqlite[\\/]/.test(path);

function fileOf(specifier, importer) {
	return resolve(dirname(importer), specifier).replace(/\.js$/, '.ts');
}

const namespace = 'sync-twin';

/** For esbuild. A plug-in that loads sources itself asks `isTwin` and calls `synchronous`. */
export const syncTwin = {
	name: namespace,
	setup({ initialOptions, onResolve, onLoad }) {
		initialOptions.loader = { ...initialOptions.loader, '.sql': 'text' };
		onResolve({ filter: /^\./ }, ({ path: specifier, importer, namespace: from }) => {
			if (from !== namespace && !isOfDriver(importer)) return undefined;
			const path = fileOf(specifier, importer);
			if (isOfCore(path)) return { path, namespace };
			return from === namespace ? { path } : undefined;
		});
		onLoad({ filter: /\.ts$/, namespace }, ({ path }) => ({
			contents: synchronous(readFileSync(path, 'utf8')),
			loader: 'ts',
			resolveDir: dirname(path),
		}));
	},
};

export function isTwin(args) {
	return args.namespace === namespace;
}

const query = '?sync';

export const viteSyncTwin = {
	name: namespace,
	enforce: 'pre',
	resolveId(specifier, importer = '') {
		const isFromTwin = importer.endsWith(query);
		const from = importer.replace(query, '');
		if (!specifier.startsWith('.') || !(isFromTwin || isOfDriver(from))) return null;
		const path = fileOf(specifier, from);
		if (isOfCore(path)) return `${path}${query}`;
		return isFromTwin ? path : null;
	},
	load: (id) => {
		if (id.endsWith('.sql')) return `export default ${JSON.stringify(readFileSync(id, 'utf8'))};`;
		return id.endsWith(query) ? synchronous(readFileSync(id.slice(0, -query.length), 'utf8')) : null;
	},
};
