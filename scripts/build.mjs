// Bundles src/ into dist/ with esbuild: one entry for the command line, one for each worker thread.
// Splitting turns every `await import()` into its own chunk, so that `--help` loads commander and nothing else.
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { build } from 'esbuild';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const threads = existsSync('src/threads')
	? readdirSync('src/threads')
			.filter((name) => name.endsWith('.thread.ts'))
			.map((name) => `src/threads/${name}`)
	: [];

const sources = readdirSync('src', { recursive: true })
	.filter((name) => name.endsWith('.ts'))
	.map((name) => resolve('src', name));

/** What some file asks for with `import()`; found beforehand, because esbuild reads files in no fixed order. */
const onDemand = new Set(
	sources.flatMap((file) =>
		[...readFileSync(file, 'utf8').matchAll(/\bimport\('(\.[^']+)\.js'\)/g)].map(([, path]) =>
			resolve(dirname(file), `${path}.ts`),
		),
	),
);

/** What commands share, in one chunk with the frame: one file is read faster than the dozen it would be cut into. */
const apart = /\/cli\/(main|frame|connect|connection|config-write|topics)\.ts$/;
const small = /\/src\/(content\/(hash|variable-names)|store\/errors|cli\/render\/columns)\.ts$/;
const shared = sources.filter(
	(file) =>
		/\/src\/api\//.test(file) ||
		small.test(file) ||
		(/\/src\/cli\/[a-z-]+\.ts$/.test(file) && !apart.test(file)),
);

/** Ends with each file what `besideOf` says is to be loaded before or with it. */
const loading = (besideOf) => ({
	name: 'sources',
	setup({ onLoad }) {
		onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
			// What a CommonJS file has instead.
			const text = readFileSync(path, 'utf8').replaceAll(
				'import.meta.url',
				"require('node:url').pathToFileURL(__filename).href",
			);
			const imports = besideOf(path).map((file) => `import ${JSON.stringify(file)};`);
			return { contents: [text, ...imports].join('\n'), loader: 'ts' };
		});
	},
});

const frame = resolve('src/cli/frame.ts');
const local = resolve('src/cli/connect/local.ts');
/** Only the local engine asks for these. */
const afterLocal = /\/(connect\/(exchange|ingest|mail|notify|serve)|threads\/threaded-store)\.ts$/;

/**
 * Splitting makes a chunk for each set of entries that share a module, and each chunk costs Node a third of a millisecond
 * to find and load. Whatever is loaded on demand is loaded after the frame, and some of it after the local engine; told
 * so, esbuild leaves all that those have anyway in one chunk each instead of thirty.
 */
function loadedBefore(path) {
	if (path === frame) return shared;
	if (!onDemand.has(path)) return [];
	return afterLocal.test(path) ? [frame, local] : [frame];
}

/**
 * Built-in modules that few calls use, loaded by the first call of one of their functions. The bundle's own imports,
 * and commander's: `node:crypto` is 3 ms of a short command, `node:child_process` 2.5, `node:readline` 0.6.
 */
const lazyBuiltins = {
	name: 'lazy-builtins',
	setup({ onResolve, onLoad }) {
		onResolve(
			{ filter: /^node:(crypto|child_process|fs\/promises|net|readline)$/ },
			({ path, importer, kind }) =>
				kind !== 'dynamic-import' && /\/src\/|\/commander\//.test(importer)
					? { path, namespace: 'lazy', sideEffects: false }
					: undefined,
		);
		onLoad({ filter: /./, namespace: 'lazy' }, ({ path }) => {
			// Functions only: asking for a class or a constant fails the build.
			const functions = Object.entries(process.getBuiltinModule(path))
				.filter(([name, value]) => typeof value === 'function' && /^[a-z]\w*$/.test(name))
				.map(([name]) => `export const ${name} = (...words) => load().${name}(...words);`);
			return {
				contents: [`const load = () => process.getBuiltinModule('${path}');`, ...functions].join('\n'),
			};
		});
		// As a module, `process` has all its properties read, and reading stdin opens it: 1.3 ms.
		// Commander's has a name of its own, because a module that others share is cut into a chunk.
		onResolve({ filter: /^node:process$/ }, ({ importer }) => ({
			path: importer.includes('/commander/') ? 'process of commander' : 'process',
			namespace: 'global',
		}));
		onLoad({ filter: /./, namespace: 'global' }, () => ({ contents: 'module.exports = process;' }));
	},
};

/** HTTP/2 is never offered to a deployment, and undici would load Node's part of it, 8 ms, for its first connection. */
const withoutHttp2 = {
	name: 'without-http2',
	setup({ onLoad }) {
		onLoad({ filter: /\/undici\/lib\/dispatcher\/client-h2\.js$/ }, () => ({
			contents: "module.exports = () => { throw new Error('HTTP/2 is no part of this build'); };",
		}));
	},
};

/**
 * The JavaScript of better-sqlite3 is a dozen files and a search for its addon, 5 ms of a short command; so it is bundled
 * and told where npm builds the addon. The two belong together: the package loads itself where another version was
 * installed, or the addon lies elsewhere.
 */
const bundledSqlite = {
	name: 'bundled-sqlite',
	setup({ onResolve, onLoad }) {
		const { resolve: find } = createRequire(import.meta.url);
		const { version } = JSON.parse(readFileSync(find('better-sqlite3/package.json'), 'utf8'));
		const addon = 'better-sqlite3/build/Release/better_sqlite3.node';
		onResolve({ filter: /^better-sqlite3$/ }, ({ path, namespace }) =>
			namespace === 'sqlite' ? { path, external: true } : { path, namespace: 'sqlite' },
		);
		onResolve({ filter: /^bindings$/ }, ({ path }) => ({ path, namespace: 'sqlite-addon' }));
		onLoad({ filter: /./, namespace: 'sqlite-addon' }, () => ({
			contents: `module.exports = () => require('${addon}');`,
		}));
		onLoad({ filter: /./, namespace: 'sqlite' }, () => ({
			contents: `
				const belongsTogether = () => {
					try {
						require('${addon}');
						return require('better-sqlite3/package.json').version === '${version}';
					} catch {
						return false;
					}
				};
				module.exports = belongsTogether() ? require(${JSON.stringify(find('better-sqlite3'))}) : require('better-sqlite3');`,
			resolveDir: process.cwd(),
		}));
	},
};

// Beside dist/ and renamed at the end: a build that fails leaves the last one as it was.
const out = '.dist';
const modules = `${out}/modules`;
const usual = {
	bundle: true,
	platform: 'node',
	target: 'node20.19',
	external: ['better-sqlite3/package.json', 'better-sqlite3/build/*'],
	define: { __VERSION__: JSON.stringify(version) },
	// Names stay, so that a stack says something; what is not read is not parsed.
	minifyWhitespace: true,
	minifySyntax: true,
	sourcemap: 'linked',
	sourcesContent: false,
	legalComments: 'none',
	logLevel: 'warning',
};
rmSync(out, { recursive: true, force: true });
await build({
	...usual,
	entryPoints: ['src/cli/main.ts'],
	outdir: modules,
	outbase: 'src',
	splitting: true,
	format: 'esm',
	plugins: [loading(loadedBefore), lazyBuiltins, bundledSqlite, withoutHttp2],
});
// A thread is one file of its own: sharing chunks with it would cut the program's into more.
await build({
	...usual,
	entryPoints: threads,
	outdir: out,
	outbase: 'src',
	format: 'cjs',
	supported: { 'dynamic-import': false },
	plugins: [loading(() => []), lazyBuiltins, bundledSqlite],
});

/**
 * esbuild splits ES modules only, and Node loads those slowly: one by one through promises and the thread pool, 8 ms to
 * start and half a millisecond a file. So the chunks become CommonJS, read at once where they are required.
 */
// Below a package of type "module" esbuild would take the default export of a chunk for the chunk itself.
writeFileSync(join(modules, 'package.json'), '{}\n');
const chunks = readdirSync(modules, { recursive: true }).filter((name) => name.endsWith('.js'));
await build({
	entryPoints: chunks.map((name) => join(modules, name)),
	outdir: out,
	outbase: modules,
	format: 'cjs',
	platform: 'node',
	target: 'node20.19',
	supported: { 'dynamic-import': false },
	minifyWhitespace: true,
	minifySyntax: true,
	sourcemap: 'linked',
	sourcesContent: false,
	logLevel: 'warning',
});
rmSync(modules, { recursive: true });
writeFileSync(`${out}/package.json`, '{ "type": "commonjs" }\n');

// What `mailctl demo` imports and sends.
cpSync('src/cli/demo', `${out}/demo`, { recursive: true, filter: (path) => !path.endsWith('.ts') });

rmSync('dist', { recursive: true, force: true });
renameSync(out, 'dist');
