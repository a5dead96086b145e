import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { viteSyncTwin } from './scripts/sync-twin.mjs';

/** Tests that start, and some kill, programs. */
const programs = ['test/e2e/**/*.test.ts', 'test/faults/**/*.test.ts'];
/** Only `npm run test:all` runs these. */
const long = 'test/**/*.long.test.ts';

/** Starts the longest files first: started last, one of them would prolong the run. */
class ProgramsFirst extends BaseSequencer {
	override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
		const sorted = await super.sort(files);
		const isProgram = ({ project }: TestSpecification) => project.name === 'e2e' || project.name === 'long';
		return [...sorted.filter(isProgram), ...sorted.filter((file) => !isProgram(file))];
	}
}

export default defineConfig({
	plugins: [viteSyncTwin],
	define: { __VERSION__: JSON.stringify('0.0.0-test') },
	test: {
		// better-sqlite3 is a native addon. In processes, a crash ends only its own worker.
		pool: 'forks',
		// Tests spend half of their time waiting for other processes, the disk and timers.
		maxWorkers: 2 * availableParallelism(),
		// Without --time-zone, the program prints times in the zone of the machine.
		env: { TZ: 'UTC' },
		sequence: { sequencer: ProgramsFirst },
		globalSetup: ['test/global-setup.ts'],
		setupFiles: ['test/setup.ts'],
		// Ends only tests that hang: a slow machine may stall for a minute, so no test has a shorter timeout.
		testTimeout: 300_000,
		hookTimeout: 300_000,
		// On a busy machine, a worker that started a hundred processes ends late.
		teardownTimeout: 60_000,
		projects: [
			{ extends: true, test: { name: 'architecture', include: ['test/architecture.test.ts'] } },
			{
				extends: true,
				test: {
					name: 'unit',
					include: ['test/**/*.test.ts'],
					// A worker keeps loaded modules from file to file, which saves a fifth of the time. To find a file that
					// crashes, or that affects the next one, run with `--isolate`.
					isolate: false,
					exclude: ['test/architecture.test.ts', long, ...programs],
				},
			},
			{ extends: true, test: { name: 'e2e', include: programs, exclude: [long] } },
			{ extends: true, test: { name: 'long', include: [long] } },
		],
	},
});
