// Bundles src/ into dist/ with esbuild: one entry for the command line, one for each worker thread.
// Splitting turns every `await import()` into its own chunk, so that `--help` loads commander and nothing else.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
	cpSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import nodeModule from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { build } from 'esbuild';
import { compiledFolder, loader } from '../bin/program.js';
import { isTwin, synchronous, syncTwin } from './sync-twin.mjs';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const sqliteVersion = () =>
	JSON.parse(readFileSync('node_modules/better-sqlite3/package.json', 'utf8')).version;

/** better-sqlite3 13 needs Node-API 10, and crashes an older Node. */
if (Number(process.versions.napi) < 10 && Number.parseInt(sqliteVersion(), 10) >= 13) {
	process.stderr.write(
		`Node.js ${process.versions.node} needs better-sqlite3 12, which is compiled now: this takes about two minutes\n`,
	);
	const folder = resolve(process.execPath, '../..');
	const hasHeaders = existsSync(join(folder, 'include/node/node.h'));
	const words = [
		'install',
		'--no-save',
		'--no-audit',
		'--no-fund',
		'--loglevel=error',
		'better-sqlite3@12.11.1',
	];
	const { status, stderr } = spawnSync('npm', words, {
		env: {
			...process.env,
			PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
			...(hasHeaders && { npm_config_nodedir: folder }),
		},
		encoding: 'utf8',
		maxBuffer: 64 * 1024 * 1024,
	});
	if (status !== 0) {
		const missing = ['c++', 'make', 'python3'].filter((name) => spawnSync(name, ['--version']).error);
		const why =
			missing.length > 0
				? `needs ${missing.join(', ')}: apt-get install g++ make python3`
				: hasHeaders || process.env.npm_config_nodedir
					? `failed: ${stderr.trim().split('\n').slice(-20).join('\n')}`
					: `needs the headers of Node.js, FOLDER/include/node/node.h: npm_config_nodedir=FOLDER npm ci`;
		process.stderr.write(
			`error: compiling better-sqlite3 12 ${why}\nNode.js 22.14 or newer compiles nothing\n`,
		);
		process.exit(1);
	}
}

const threads = existsSync('src/threads')
	? readdirSync('src/threads')
			.filter((name) => name.endsWith('.thread.ts'))
			.map((name) => `src/threads/${name}`)
	: [];

/** An absolute path, because a parent folder of the checkout may also be called src. */
const root = `${resolve('src')}${sep}`;
const sources = readdirSync('src', { recursive: true })
	.filter((name) => name.endsWith('.ts'))
	.map((name) => resolve('src', name));

/**
 * Exceptions from `shared`. The files of `shared` become one chunk, because Node reads one file faster than a dozen.
 */
const apart =
	/^(api\/(operations|bodies)|cli\/(frame\/(run|topics|connection|questions|man|timed)|config\/config-write))\.ts$/;
/** Small files that most commands load. Outside `shared`, each would become a separate chunk. */
const small = new RegExp(
	`^(${[
		'content/(hash|attachments|message-size|safe-values|fill-variables)',
		'engine/(settings|rules/[\\w-]+)',
		'(store|jobs)/errors?',
		'store/(operations|slices)',
		'delivery/dkim/keys',
		'cli/(connect/wrapping-keys|render/columns|commands/lists/offer)',
	].join('|')})\\.ts$`,
);
const shared = sources.filter((file) => {
	const path = relative(root, file);
	return (
		(/^(api\/|cli\/(tree\.ts$|(frame|config|verbs)\/))/.test(path) && !apart.test(path)) || small.test(path)
	);
});

/** Replaces `import.meta.url`, which CommonJS does not have. */
const sourcesAsCommonJs = {
	name: 'sources',
	setup({ onLoad }) {
		onLoad({ filter: /\.ts$/ }, (args) => {
			const source = readFileSync(args.path, 'utf8');
			const text = isTwin(args) ? synchronous(source) : source;
			const contents = text.replaceAll(
				'import.meta.url',
				"require('node:url').pathToFileURL(__filename).href",
			);
			return { contents, loader: 'ts', resolveDir: dirname(args.path) };
		});
	},
};

const frame = resolve('src/cli/frame/run.ts');
const local = resolve('src/cli/connect/local.ts');
/** Files that the program loads on demand, after the local engine. They import most of the engine's files. */
const afterLocal = new RegExp(
	`/(${[
		'connect/(backup|bounces|exchange|foreign-campaigns|imports|inspect|mail|migrate|notify|parts|serve)',
		'store/sqlite/moving',
		'threads/threaded-store',
	].join('|')})\\.ts$`,
);

/**
 * esbuild makes a chunk for each set of entries that share a module, and Node needs 0.3 ms for each chunk. If all
 * entries import the frame, esbuild merges it into one chunk instead of thirty. The same holds for the local engine and
 * `afterLocal`. The imports cost nothing, because the program has already loaded these files.
 */
function loadedBefore(path) {
	if (path === frame) return shared;
	return afterLocal.test(path) ? [...shared, frame, local] : [...shared, frame];
}

/**
 * Each `import()` gets an entry that first imports the files of `loadedBefore`. The same imports in the source file
 * would make cycles with the frame. In a cycle, a file may run before its constants exist.
 */
const entries = {
	name: 'entries',
	setup({ onResolve, onLoad }) {
		onResolve({ filter: /^\./ }, ({ path: specifier, importer, kind }) => {
			const path = resolve(dirname(importer), specifier).replace(/\.js$/, '.ts');
			const isOurs = kind === 'dynamic-import' && path.startsWith(root);
			return isOurs ? { path, namespace: 'entry' } : undefined;
		});
		onLoad({ filter: /./, namespace: 'entry' }, ({ path }) => {
			const before = loadedBefore(path).map((file) => `import ${JSON.stringify(file)};`);
			const contents = [...before, `export * from ${JSON.stringify(path)};`].join('\n');
			return { contents, resolveDir: dirname(path) };
		});
	},
};

/**
 * Delays built-in modules until a command calls one of their functions. `node:crypto` takes 3 ms of a short command,
 * `node:child_process` (which commander requires) 2.5 ms, and `node:readline` 0.6 ms.
 */
const lazyBuiltins = {
	name: 'lazy-builtins',
	setup({ onResolve, onLoad }) {
		const filter = /^node:(crypto|child_process|fs\/promises|net|readline)$/;
		onResolve({ filter }, ({ path, importer, kind }) => {
			if (/\bnode_modules\/commander\//.test(importer)) return { path, namespace: 'lazy-required' };
			return kind !== 'dynamic-import' && importer.startsWith(root)
				? { path, namespace: 'lazy', sideEffects: false }
				: undefined;
		});
		const load = (path) => `let known; const load = () => (known ??= process.getBuiltinModule('${path}'));`;
		const call = (name) => `(...words) => load().${name}(...words)`;
		// Only functions can be delayed. Importing a class or a constant fails the build.
		const functions = (path) =>
			Object.entries(process.getBuiltinModule(path))
				.filter(([name, value]) => typeof value === 'function' && /^[a-z]\w*$/.test(name))
				.map(([name]) => name);
		onLoad({ filter: /./, namespace: 'lazy' }, ({ path }) => ({
			contents: [load(path), ...functions(path).map((name) => `export const ${name} = ${call(name)};`)].join(
				'\n',
			),
		}));
		onLoad({ filter: /./, namespace: 'lazy-required' }, ({ path }) => ({
			contents: `${load(path)}\nmodule.exports = {${functions(path).map((name) => `${name}: ${call(name)}`)}};`,
		}));
	},
};

/**
 * Removes two unused parts. pg loads a native client if an environment variable selects it. undici's HTTP/2 client
 * would load four dozen modules of Node.
 */
const withoutUnused = {
	name: 'without-unused',
	setup({ onResolve, onLoad }) {
		onResolve({ filter: /^(pg-native|\.\/client-h2\.js)$/ }, ({ path }) => ({ path, namespace: 'none' }));
		onLoad({ filter: /./, namespace: 'none' }, () => ({ contents: '' }));
	},
};

/**
 * Bundles the JavaScript of better-sqlite3 12, because its dozen files take 4 ms to load. For another version of the
 * addon (13 on Node.js 22), loads the package's own files. Throws if this Node is too old for the addon.
 */
const sqlite = {
	name: 'sqlite',
	setup({ onResolve, onLoad }) {
		const its = sqliteVersion();
		const own = its.startsWith('12.')
			? `version === '${its}' ? require('./node_modules/better-sqlite3') : `
			: '';
		onResolve({ filter: /^better-sqlite3$/ }, ({ path, namespace }) =>
			namespace === 'sqlite' ? { path, external: true } : { path, namespace: 'sqlite' },
		);
		onResolve({ filter: /^bindings$/ }, ({ path }) => ({ path, namespace: 'addon' }));
		onLoad({ filter: /./, namespace: 'sqlite' }, () => ({
			contents: `const { version } = require('better-sqlite3/package.json');
				const { napi, node } = process.versions;
				if (Number.parseInt(version, 10) >= 13 && Number(napi) < 10)
					throw Object.assign(new Error(
						'SQLite (better-sqlite3 ' + version + ') needs Node-API 10, and Node.js ' + node + ' has ' + napi
					), { code: 'ERR_NODE_API' });
				module.exports = ${own}require('better-sqlite3');`,
			resolveDir: '.',
		}));
		// better-sqlite3 searches for its addon from the calling file, and would not find it from a bundle.
		onLoad({ filter: /./, namespace: 'addon' }, () => ({
			contents: "module.exports = () => require('better-sqlite3/build/Release/better_sqlite3.node');",
		}));
	},
};

// The build renames this folder at the end, so that a failed build leaves dist/ as it was.
const out = '.dist';
const modules = `${out}/modules`;
const usual = {
	bundle: true,
	platform: 'node',
	target: 'node20.19',
	external: ['better-sqlite3'],
	// cheerio's main file brings 1.6 MB of unused libraries for fetching pages and guessing encodings.
	alias: { cheerio: resolve('node_modules/cheerio/dist/browser/index.js') },
	loader: { '.sql': 'text' },
	define: { __VERSION__: JSON.stringify(version) },
	// Keep identifiers, so that stack traces stay readable.
	minifyWhitespace: true,
	minifySyntax: true,
	sourcemap: 'linked',
	sourcesContent: false,
	legalComments: 'none',
	logLevel: 'warning',
};
rmSync(out, { recursive: true, force: true });
const { metafile: ofProgram } = await build({
	...usual,
	metafile: true,
	entryPoints: ['src/cli/main.ts'],
	outdir: modules,
	outbase: 'src',
	splitting: true,
	format: 'esm',
	plugins: [entries, sourcesAsCommonJs, syncTwin, lazyBuiltins, sqlite, withoutUnused],
});
// Bundle each thread into one file, because chunks that threads share would split the chunks of the program.
const { metafile: ofThreads } = await build({
	...usual,
	metafile: true,
	entryPoints: threads,
	outdir: out,
	outbase: 'src',
	format: 'cjs',
	supported: { 'dynamic-import': false },
	plugins: [sourcesAsCommonJs, syncTwin, lazyBuiltins, sqlite],
});

/**
 * esbuild splits only ES modules, which Node loads slowly: 8 ms to start and 0.5 ms a file. So the chunks become
 * CommonJS, which `require` reads synchronously.
 */
// In a package of type "module", esbuild would mistake the default export of a chunk for the chunk itself.
writeFileSync(join(modules, 'package.json'), '{}\n');
const chunks = readdirSync(modules, { recursive: true }).filter((name) => name.endsWith('.js'));
for (const name of chunks) {
	const path = join(modules, name);
	writeFileSync(path, withPlainExports(readFileSync(path, 'utf8'), name));
}
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
	logOverride: { 'commonjs-variable-in-esm': 'silent' },
});
rmSync(modules, { recursive: true });
writeFileSync(`${out}/package.json`, '{ "type": "commonjs" }\n');

/**
 * Replaces esbuild's getters for exports by one assignment at the end of the chunk, which saves 3 ms. No export changes
 * after its chunk has run (a test checks the sources). Chunks do not import each other in cycles, because files that
 * the same entries reach share a chunk.
 */
function withPlainExports(code, name) {
	// The exports of a module in `__esm` have no values until a file requires the module.
	if (code.includes('__esm(')) throw new Error(`${name}: a CommonJS file requires an ES module`);
	return code.replace(/\bexport\{([^}]*)\};(?=\n\/\/# sourceMappingURL=\S+\n$)/, (statement, list) => {
		// Keep a chunk with a default export, because its importers need the `__esModule` mark that esbuild sets.
		if (/\bdefault\b/.test(list)) return statement;
		const properties = list.split(',').map((one) => one.split(' as ').reverse().join(':'));
		return `module.exports={${properties}};`;
	});
}

/** Returns the licences of the bundled packages, because each licence requires its text in every copy. */
function licences(inputs) {
	const folders = new Set(
		inputs.flatMap((path) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []),
	);
	return [...folders].sort().map((folder) => {
		const {
			name,
			version: its,
			license,
			repository,
		} = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
		const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
		// The MPL requires a link to the source.
		const text =
			file === undefined
				? `Licence: ${license}, https://spdx.org/licenses/${license}.html\nSource: ${repository?.url ?? repository}`
				: readFileSync(join(folder, file), 'utf8').trim();
		return `${name} ${its}\n\n${text}\n`;
	});
}
const bundled = [ofProgram, ofThreads].flatMap(({ inputs }) => Object.keys(inputs));
const rule = `\n${'-'.repeat(80)}\n\n`;
writeFileSync(`${out}/third-party-licences.txt`, [...new Set(licences(bundled))].join(rule));

cpSync('src/cli/demo', `${out}/demo`, { recursive: true, filter: (path) => !path.endsWith('.ts') });

const pages = resolve(out, 'pages');
await build({
	...usual,
	stdin: {
		contents: "export { manPages } from './src/cli/frame/man.js'; export { tree } from './src/cli/tree.js';",
		resolveDir: '.',
		loader: 'ts',
	},
	outdir: pages,
	outExtension: { '.js': '.mjs' },
	// Splitting keeps modules that commands load on demand out of this process.
	splitting: true,
	format: 'esm',
	sourcemap: false,
});
const { manPages, tree } = await import(pathToFileURL(`${pages}/stdin.mjs`).href);
mkdirSync(`${out}/man`);
for (const { file, text } of await manPages(tree, version)) writeFileSync(`${out}/man/${file}`, text);
rmSync(pages, { recursive: true });

if (nodeModule.enableCompileCache === undefined) await keepCompiled();
rmSync('dist', { recursive: true, force: true });
renameSync(out, 'dist');

/** Runs short commands on a local and a remote database, and stores the code that V8 compiled for them. */
async function keepCompiled() {
	const folder = resolve(out);
	const { load, scripts } = loader(folder);
	const home = mkdtempSync(join(tmpdir(), 'mailctl-build-'));
	const server = createServer((_, response) =>
		response.end('{"count":0,"next":null,"previous":null,"results":[]}'),
	);
	await once(server.listen(0, '127.0.0.1'), 'listening');
	const list = ['lists', 'list', '-o', 'tsv'];
	const remote = ['--base-url', `http://127.0.0.1:${server.address().port}`];
	const unread = () => new Writable({ write: (_text, _encoding, done) => done() });
	for (const argv of [
		['lists', 'create', '--name', 'News', '--email-reason', 'asked'],
		list,
		[...remote, ...list],
	])
		await load('cli/main.js').main({
			argv,
			env: { HOME: home, MAILCTL_TOKEN: 'none' },
			interrupts: new AbortController().signal,
			stdin: Readable.from([]),
			stdout: unread(),
			stderr: unread(),
		});
	server.close();
	rmSync(home, { recursive: true });
	// V8 refuses code made under other flags. `http/client/direct.ts` changes this flag, so restore its default.
	setFlagsFromString('--wasm-tiering-budget=1800000');
	for (const [path, script] of scripts) {
		const file = join(compiledFolder(folder), path);
		mkdirSync(dirname(file), { recursive: true });
		writeFileSync(file, script.createCachedData());
	}
}
