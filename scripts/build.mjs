// Bundles src/ into dist/ with esbuild: one entry for the command line, one for each worker thread.
// Splitting turns every `await import()` into its own chunk, so that `--help` loads commander and nothing else.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { build } from 'esbuild';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const threads = existsSync('src/threads')
	? readdirSync('src/threads')
			.filter((name) => name.endsWith('.thread.ts'))
			.map((name) => `src/threads/${name}`)
	: [];

const frame = resolve('src/cli/frame.ts');

/**
 * Splitting makes a chunk for each set of entries that share a module, and each chunk costs Node half a millisecond
 * to find and load. Whatever is loaded on demand is loaded after the frame; told so, esbuild leaves all that the
 * frame has anyway in one chunk instead of thirty.
 */
const afterTheFrame = {
	name: 'after-the-frame',
	setup({ onResolve, onLoad }) {
		const onDemand = new Set();
		onResolve({ filter: /^\.{1,2}\// }, ({ kind, path, resolveDir }) => {
			const file = resolve(resolveDir, path).replace(/\.js$/, '.ts');
			if (kind === 'dynamic-import' && file !== frame && existsSync(file)) onDemand.add(file);
			return undefined;
		});
		onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) =>
			onDemand.has(path)
				? { contents: `${readFileSync(path, 'utf8')}\nimport ${JSON.stringify(frame)};\n`, loader: 'ts' }
				: undefined,
		);
	},
};

rmSync('dist', { recursive: true, force: true });
await build({
	entryPoints: ['src/cli/main.ts', ...threads],
	outdir: 'dist',
	outbase: 'src',
	bundle: true,
	splitting: true,
	format: 'esm',
	platform: 'node',
	target: 'node20.19',
	// The native addon finds its binary beside its own files; bundling it would lose it.
	external: ['better-sqlite3'],
	// CommonJS packages inside an ES module bundle still call require().
	banner: {
		js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
	},
	plugins: [afterTheFrame],
	define: { __VERSION__: JSON.stringify(version) },
	// Names stay, so that a stack says something; what is not read is not parsed.
	minifyWhitespace: true,
	minifySyntax: true,
	sourcemap: 'linked',
	sourcesContent: false,
	legalComments: 'none',
	logLevel: 'warning',
});

// What `mailctl demo` imports and sends.
cpSync('src/cli/demo', 'dist/demo', { recursive: true, filter: (path) => !path.endsWith('.ts') });
