import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { viteSyncTwin } from './scripts/sync-twin.mjs';

/** These tests run programs, and kill them. */
const programs = ['test/e2e/**/*.test.ts', 'test/faults/**/*.test.ts'];
/** `npm test` leaves these out; `npm run test:all` runs them too. */
const long = 'test/**/*.long.test.ts';

/** These first: the longest files are theirs, and one that begins last would have the end of a run for itself. */
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
		// better-sqlite3 is a native addon: what crashes takes no other worker along.
		pool: 'forks',
		// Half of what tests take is waiting: for other processes, for the disk, for the end of a time.
		maxWorkers: 2 * availableParallelism(),
		// Times are shown in the zone of the machine, unless a call names one.
		env: { TZ: 'UTC' },
		sequence: { sequencer: ProgramsFirst },
		globalSetup: ['test/global-setup.ts'],
		setupFiles: ['test/setup.ts'],
		// For what never ends. No test has a time of its own unless the environment sets its size: how fast a machine is
		// states nothing, and a slow one may stand still for a minute.
		testTimeout: 300_000,
		hookTimeout: 300_000,
		// A process that ran a hundred others ends late on a busy machine; that is no failure.
		teardownTimeout: 60_000,
		projects: [
			{ extends: true, test: { name: 'architecture', include: ['test/architecture.test.ts'] } },
			{
				extends: true,
				test: {
					name: 'unit',
					include: ['test/**/*.test.ts'],
					// A worker keeps what it has loaded and compiled from file to file: a fifth of the time. `--isolate` gives each
					// file a process of its own, where one that crashes, or what one leaves to the next, is looked for.
					isolate: false,
					exclude: ['test/architecture.test.ts', long, ...programs],
				},
			},
			{ extends: true, test: { name: 'e2e', include: programs, exclude: [long] } },
			{ extends: true, test: { name: 'long', include: [long] } },
		],
	},
});
