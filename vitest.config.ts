import { defineConfig } from 'vitest/config';

export default defineConfig({
	define: { __VERSION__: JSON.stringify('0.0.0-test') },
	test: {
		// One process per file: better-sqlite3 is a native addon, and a crash must name its file.
		pool: 'forks',
		// The runner itself does little: left to itself it keeps a core, which is half of two.
		maxWorkers: '100%',
		globalSetup: ['test/global-setup.ts'],
		testTimeout: 30_000,
		hookTimeout: 30_000,
		// A process that ran a hundred others ends late on a busy machine; that is no failure.
		teardownTimeout: 60_000,
		projects: [
			{ extends: true, test: { name: 'architecture', include: ['test/architecture.test.ts'] } },
			{
				extends: true,
				test: {
					name: 'unit',
					include: ['test/**/*.test.ts'],
					exclude: ['test/architecture.test.ts', 'test/e2e/**'],
				},
			},
			{ extends: true, test: { name: 'e2e', include: ['test/e2e/**/*.test.ts'], testTimeout: 120_000 } },
		],
	},
});
