// Bundles src/ into dist/ with esbuild: one entry for the command line, one for each worker thread.
// Splitting turns every `await import()` into its own chunk, so that `--help` loads commander and nothing else.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { build } from 'esbuild';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const threads = existsSync('src/threads')
	? readdirSync('src/threads')
			.filter((name) => name.endsWith('.thread.ts'))
			.map((name) => `src/threads/${name}`)
	: [];

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
	define: { __VERSION__: JSON.stringify(version) },
	sourcemap: 'linked',
	sourcesContent: false,
	legalComments: 'none',
	logLevel: 'warning',
});

// What `mailctl demo` imports and sends.
cpSync('src/cli/demo', 'dist/demo', { recursive: true, filter: (path) => !path.endsWith('.ts') });
